//! Lists: whole, filtered, sorted, page by page.

use chancery_testkit::{Engine, World, on_both_engines};
use serde_json::{Value, json};

use crate::{each, encode, members::plan};

async fn people(world: &World) {
    let people = json!([
        { "loginName": "ada", "firstName": "Ada", "lastName": "Lovelace", "emailAddress": "ada@x.org", "isUserActive": true },
        { "loginName": "Bob", "firstName": "Bob", "lastName": null, "isUserActive": false },
        { "loginName": "eve", "firstName": "Éve", "lastName": "lovelace", "userValidTo": "2026-06-01T00:00:00Z" },
        { "loginName": "dan", "firstName": null, "lastName": "Ångström" },
        { "loginName": "cia", "firstName": "a%_\"\\b", "lastName": "Zed", "birthdate": "1990-01-01" },
    ]);
    world.admin.post(&world.path("/User/batch"), people).await.expect(200);
}

async fn logins(world: &World, query: &str) -> Vec<String> {
    let users = world.admin.get(&world.path(&format!("/User?{query}"))).await.is(200).json();
    each(&users, "loginName").into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    async fn filters(world: World) {
        people(&world).await;
        for (filter, expected) in [
            ("loginName eq \"ADA\"", "ada"),
            ("lastName eq \"LOVELACE\"", "ada eve"),
            ("loginName sw \"b\" or loginName ew \"VE\"", "Bob eve"),
            ("lastName co \"love\" and isUserActive eq true", "ada eve"),
            ("lastName ne \"lovelace\"", "Bob cia dan"),
            ("not (lastName eq \"lovelace\")", "Bob cia dan"),
            ("lastName pr", "ada cia dan eve"),
            ("not (lastName pr)", "Bob"),
            ("lastName eq null", "Bob"),
            ("isUserActive ne true", "Bob"),
            ("firstName co \"%_\"", "cia"),
            ("firstName eq \"a%_\\\"\\\\B\"", "cia"),
            ("firstName sw \"é\"", "eve"),
            ("lastName sw \"å\"", "dan"),
            ("userValidTo lt \"2026-06-01T00:00:01+00:00\"", "eve"),
            ("userValidTo ge \"2027-01-01T00:00:00Z\"", ""),
            ("not (userValidTo ge \"2027-01-01T00:00:00Z\") and loginName sw \"a\"", "ada"),
            ("failedUserLoginAttempts eq 0 and birthdate sw \"1990\"", "cia"),
            ("loginName gt \"bob\" and loginName le \"dan\"", "cia dan"),
            ("(loginName eq \"ada\" or loginName eq \"bob\") and not (firstName ew \"b\")", "ada"),
            ("NOT (LOGINNAME eq \"ada\") AND emailAddress PR", ""),
        ] {
            let mut names = logins(&world, &format!("filter={}", encode(filter))).await;
            names.sort_unstable();
            assert_eq!(names.join(" "), expected, "{filter}");
        }
    }

    async fn filters_look_into_groups(world: World) {
        people(&world).await;
        let group = world.group("Sales").await;
        let ada = world.admin.get(&world.path("/User/loginname/ada")).await.is(200).json();
        let users = world.path(&format!("/Group/{}/users", group["id"].as_str().unwrap()));
        world.admin.put(&users, json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        for (filter, expected) in [
            (format!("memberOfGroups.id eq {}", group["id"]), 1),
            ("memberOfGroups[name sw \"sa\" and id pr]".to_owned(), 1),
            ("memberOfGroups pr".to_owned(), 1),
            ("not (memberOfGroups pr)".to_owned(), 4),
            ("memberOfGroups.name eq \"none\"".to_owned(), 0),
        ] {
            assert_eq!(logins(&world, &format!("filter={}", encode(&filter))).await.len(), expected, "{filter}");
        }
    }

    async fn sorts_with_empty_values_last(world: World) {
        people(&world).await;
        assert_eq!(logins(&world, "sortBy=lastName").await[4], "Bob");
        assert_eq!(logins(&world, "sortBy=lastName&sortOrder=descending").await[4], "Bob");
        assert_eq!(logins(&world, "sortBy=loginName").await, ["ada", "Bob", "cia", "dan", "eve"]);
        assert_eq!(logins(&world, "sortBy=loginName&sortOrder=DESCENDING").await, ["eve", "dan", "cia", "Bob", "ada"]);
        // ties by key: ids created one after another are in order
        assert_eq!(logins(&world, "sortBy=lastName&filter=lastName%20sw%20%22love%22&sortOrder=descending").await, ["ada", "eve"]);
        assert_eq!(logins(&world, "sortBy=isUserActive").await[0], "Bob");
    }

    async fn pages_contain_the_whole_list(world: World) {
        let users: Vec<Value> = (0..53).map(|number| {
            json!({ "loginName": format!("u{number:02}"), "lastName": if number % 5 == 0 { json!(null) } else { json!(format!("L{}", number % 7)) } })
        }).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        for order in ["", "sortBy=lastName", "sortBy=lastName&sortOrder=descending", "sortOrder=descending", "sortBy=isUserActive&filter=lastName%20pr"] {
            let whole = logins(&world, order).await;
            for count in [1, 7, 53, 1000] {
                let mut pages: Vec<String> = Vec::new();
                let mut next = Some(world.path(&format!("/User?{order}&count={count}&includeTotal=true")));
                let mut first = true;
                while let Some(address) = next {
                    let answer = world.admin.get(&address).await.is(200);
                    if first {
                        assert_eq!(answer.header("x-total-count"), Some(whole.len().to_string().as_str()));
                    }
                    first = false;
                    let page = answer.json();
                    assert!(!page.as_array().unwrap().is_empty() || whole.is_empty());
                    pages.extend(each(&page, "loginName").into_iter().map(str::to_owned));
                    next = answer.next();
                }
                assert_eq!(pages, whole, "{order} by {count}");
            }
        }
    }

    async fn a_page_goes_on_when_its_last_item_is_gone(world: World) {
        people(&world).await;
        let first = world.admin.get(&world.path("/User?count=2&sortBy=loginName")).await.is(200);
        let last = first.json()[1]["id"].as_str().unwrap().to_owned();
        world.admin.delete(&world.path(&format!("/User/{last}"))).await.expect(204);
        let rest = world.admin.get(&first.next().unwrap()).await.is(200).json();
        assert_eq!(each(&rest, "loginName"), ["cia", "dan"]);
    }

    async fn a_long_list_streams_whole(world: World) {
        let users: Vec<Value> = (0..3000).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let list = world.admin.get(&world.path("/User")).await.is(200).json();
        let ids = each(&list, "id");
        assert_eq!(ids.len(), 3000);
        assert!(ids.is_sorted(), "in key order");
    }

    /// An answer around the bound between complete and streamed is complete, however fast it is produced.
    async fn pages_around_the_streaming_bound_are_whole(world: World) {
        let users: Vec<Value> = (0..120).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        for _ in 0..10 {
            for count in [60, 79, 80, 85, 100] {
                let page = world.admin.get(&world.path(&format!("/User?count={count}"))).await.is(200);
                assert_eq!(page.header("content-type"), Some("application/json"));
                assert_eq!(page.json().as_array().unwrap().len(), count);
            }
        }
    }

    async fn bad_parameters_are_named(world: World) {
        people(&world).await;
        let cursor = world.admin.get(&world.path("/User?count=1")).await.is(200).next().unwrap();
        let cursor = cursor.rsplit("cursor=").next().unwrap().to_owned();
        for (query, word) in [
            ("filter=nothing%20pr".to_owned(), "column 1"),
            ("filter=loginName%20eq".to_owned(), "column"),
            ("filter=isUserActive%20co%20%22x%22".to_owned(), "isUserActive"),
            ("filter=id%20eq%20%22x%22".to_owned(), "UUID"),
            ("filter=quarantinedOn%20pr".to_owned(), "quarantinedOn"),
            ("filter=memberOfGroups%20eq%20%22x%22".to_owned(), "memberOfGroups"),
            ("sortBy=nothing".to_owned(), "nothing"),
            ("sortBy=instanceId".to_owned(), "instanceId"),
            ("sortOrder=up".to_owned(), "sortOrder"),
            ("count=0".to_owned(), "count"),
            ("count=1001".to_owned(), "count"),
            ("cursor=AAAA".to_owned(), "cursor"),
            (format!("sortBy=loginName&cursor={cursor}"), "cursor"),
            (format!("filter=loginName%20pr&cursor={cursor}"), "cursor"),
            ("includeTotal=1".to_owned(), "includeTotal"),
            ("counts=1".to_owned(), "counts"),
            ("count=1&count=2".to_owned(), "twice"),
            ("filter=%ff".to_owned(), "UTF-8"),
        ] {
            let problem = world.admin.get(&world.path(&format!("/User?{query}"))).await.problem(400, "invalid-request");
            assert!(problem["detail"].as_str().unwrap().contains(word), "{query}: {}", problem["detail"]);
        }
        // a cursor of another list is foreign
        world.admin.get(&world.path(&format!("/Group?cursor={cursor}"))).await.problem(400, "invalid-request");
    }

    /// Locked or inactive users are found without reading all the others, on both engines.
    async fn a_state_of_few_is_found_by_its_index(world: World) {
        let users: Vec<Value> = (0..3000).map(|number| json!({ "loginName": format!("u{number:05}"), "isUserActive": number != 9 })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
        let locked = json!([{ "id": users[7]["id"], "isUserLocked": true }]);
        world.admin.post(&world.path("/User/state/batch"), locked).await.expect(200);
        if world.engine == Engine::Postgres {
            world.sql(vec![("ANALYZE user_account", vec![])]).await;
        }
        for (filter, login_name, index) in [
            ("isUserLocked eq true", "u00007", "user_account__store__locked"),
            ("isUserActive eq false and loginName pr", "u00009", "user_account__store__inactive"),
        ] {
            let plan = plan(&world, "GetUsers", filter).await.join("\n");
            assert!(plan.contains(index), "{plan}");
            let matches = world.admin.get(&world.path(&format!("/User?filter={}", encode(filter)))).await.is(200).json();
            assert_eq!(each(&matches, "loginName"), [login_name]);
            let others = world.admin.get(&world.path(&format!("/User?includeTotal=true&count=1&filter={}", encode(&format!("not ({filter})"))))).await.is(200);
            assert_ne!(others.header("x-total-count").unwrap(), "1");
        }
    }
}
