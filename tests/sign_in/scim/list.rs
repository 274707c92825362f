//! Lists: filters, sort order, pages by index and by cursor, searches.

use chancery_testkit::{Client, on_both_engines};
use serde_json::{Value as Json, json};

use super::{at, error, group, ids, of_provider, one, operations, own, user};
use crate::{each, encode, id};

async fn matches_of(client: &Client, filter: &str) -> Vec<String> {
    let list = client
        .get(&at(&format!("/Users?attributes=userName&filter={}", encode(filter))))
        .await
        .is(200)
        .json();
    each(&list["Resources"], "userName").into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    async fn filters_select_users(world: World) {
        let client = own(&world).await;
        for (name, more) in [
            ("ada", json!({ "externalId": "x1", "emails": [{ "value": "a@example.com", "type": "work" }], "name": { "familyName": "Lovelace" } })),
            ("bob", json!({ "active": false, "name": { "familyName": "Babbage" } })),
            ("Carl", json!({})),
        ] {
            let mut body = more;
            body["userName"] = json!(name);
            client.post(&at("/Users"), body).await.expect(201);
        }
        let ada = client.get(&at(&format!("/Users?filter={}", encode("userName eq \"ADA\"")))).await.is(200).json();
        let ada = ada["Resources"][0].clone();
        let team = group(&client, "team", &[&ada]).await;
        for (filter, names) in [
            ("userName eq \"ADA\"".to_owned(), vec!["ada"]), ("externalId eq \"x1\"".to_owned(), vec!["ada"]),
            ("externalId eq \"X1\"".to_owned(), vec![]), ("emails.value eq \"A@example.com\"".to_owned(), vec!["ada"]),
            ("emails[type eq \"work\" and value eq \"a@example.com\"]".to_owned(), vec!["ada"]),
            ("active eq false".to_owned(), vec!["bob"]), ("name.familyName sw \"b\"".to_owned(), vec!["bob"]),
            ("userName pr and not (userName eq \"bob\")".to_owned(), vec!["ada", "Carl"]),
            ("title eq null and active eq true".to_owned(), vec!["ada", "Carl"]), ("id eq \"nobody\"".to_owned(), vec![]),
            ("groups.value eq null".to_owned(), vec!["bob", "Carl"]),
            (format!("groups.value eq \"{}\"", id(&team)), vec!["ada"]), (format!("id eq \"{}\"", id(&ada)), vec!["ada"]),
            ("urn:ietf:params:scim:schemas:core:2.0:User:userName eq \"bob\"".to_owned(), vec!["bob"]),
        ] {
            assert_eq!(matches_of(&client, &filter).await, names, "{filter}");
        }
        for filter in ["userName is \"x\"", "nobody eq 1", "roles.value eq \"x\"", "(userName pr", "active gt true"] {
            let answer = client.get(&at(&format!("/Users?filter={}", encode(filter)))).await;
            assert_eq!(error(&answer, 400).0, "invalidFilter", "{filter}");
        }
        let ordered = client.get(&at("/Users?sortBy=userName&sortOrder=descending&attributes=userName")).await.is(200).json();
        assert_eq!(each(&ordered["Resources"], "userName"), ["Carl", "bob", "ada"]);
        let ordered = client.get(&at("/Users?sortBy=name.familyName&attributes=userName")).await.is(200).json();
        assert_eq!(each(&ordered["Resources"], "userName"), ["bob", "ada", "Carl"], "who has none comes last");
    }

    async fn pages_have_each_user_once(world: World) {
        let client = own(&world).await;
        let mut all = Vec::new();
        for number in 0..7 {
            let mut body = json!({ "userName": format!("u{number}") });
            if number % 2 == 0 {
                body["name"] = json!({ "familyName": format!("F{number}") });
            }
            all.push(id(&client.post(&at("/Users"), body).await.is(201).json()).to_owned());
        }
        for order in ["", "&sortBy=userName", "&sortBy=name.familyName", "&sortBy=name.familyName&sortOrder=descending"] {
            let (mut by_cursor, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = client.get(&at(&format!("/Users?count=2{order}&cursor={cursor}"))).await.is(200).json();
                assert_eq!(page.get("totalResults"), None);
                by_cursor.extend(ids(&page));
                match page["nextCursor"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            let mut sorted = by_cursor.clone();
            sorted.sort();
            assert_eq!(sorted, all, "by cursor {order}");
            let mut by_index = Vec::new();
            for start in [1, 3, 5, 7, 9] {
                let page = client.get(&at(&format!("/Users?count=2&startIndex={start}{order}"))).await.is(200).json();
                assert_eq!((&page["totalResults"], &page["startIndex"]), (&json!(7), &json!(start)));
                by_index.extend(ids(&page));
            }
            assert_eq!(by_index, by_cursor, "by index {order}");
        }
        let counted = client.get(&at("/Users?count=0")).await.is(200).json();
        assert_eq!((&counted["totalResults"], ids(&counted).len()), (&json!(7), 0));
        let from_start = client.get(&at("/Users?startIndex=-4&count=-1")).await.is(200).json();
        assert_eq!((&from_start["startIndex"], ids(&from_start).len()), (&json!(1), 0));
        let next = client.get(&at("/Users?count=2&cursor=")).await.is(200).json();
        let next = next["nextCursor"].as_str().unwrap();
        for path in [format!("/Users?filter=userName%20pr&cursor={next}"), "/Users?cursor=x".to_owned(), format!("/Groups?cursor={next}")] {
            assert_eq!(error(&client.get(&at(&path)).await, 400).0, "invalidCursor", "{path}");
        }
        let another = own(&world).await;
        assert_eq!(error(&another.get(&at(&format!("/Users?cursor={next}"))).await, 400).0, "invalidCursor");
    }

    async fn search_by_post(world: World) {
        let client = own(&world).await;
        let ada = user(&client, "ada").await;
        let team = group(&client, "ada", &[]).await;
        let body = json!({ "filter": "userName eq \"ada\"", "attributes": ["userName"], "startIndex": 1, "count": 10 });
        let list = client.post(&at("/Users/.search"), body).await.is(200).json();
        assert_eq!(list["Resources"], json!([{ "id": ada["id"], "userName": "ada", "schemas": ada["schemas"] }]));
        let both = client.post(&at("/.search"), json!({ "filter": "id pr" })).await.is(200).json();
        assert_eq!((&both["totalResults"], ids(&both)), (&json!(2), vec![id(&ada).to_owned(), id(&team).to_owned()]));
        let one = client.post(&at("/.search"), json!({ "filter": "displayName eq \"ADA\"", "startIndex": 1 })).await.is(200).json();
        assert_eq!(ids(&one), [id(&team)]);
        assert_eq!(error(&client.post(&at("/.search"), json!({ "filter": "nobody pr" })).await, 400).0, "invalidFilter");
    }

    async fn discovery_documents_are_served(world: World) {
        let client = own(&world).await;
        let config = world.anonymous.get(&at("/ServiceProviderConfig")).await.is(200);
        assert_eq!(config.header("content-type"), Some("application/scim+json"));
        assert_eq!(config.json()["filter"]["maxResults"], 1000);
        let schemas = client.get(&at("/Schemas")).await.is(200).json();
        let named: Vec<&str> = each(&schemas["Resources"], "id");
        assert_eq!(named.len(), 3);
        for name in named {
            assert_eq!(client.get(&at(&format!("/Schemas/{name}"))).await.is(200).json()["id"], name);
        }
        assert_eq!(client.get(&at("/ResourceTypes/Group")).await.is(200).json()["endpoint"], "/Groups");
        error(&client.get(&at("/Schemas?filter=id%20pr")).await, 403);
        error(&client.get(&at("/Schemas/nobody")).await, 404);
        error(&client.post(&at("/Schemas"), json!({})).await, 405);
        error(&world.anonymous.get(&at("/Schemas")).await, 401);
        error(&client.get(&at("/Me")).await, 501);
        let plain = client.send(http::Method::GET, &at("/Users"), &[("accept", "application/json")], Vec::new()).await.is(200);
        assert_eq!(plain.header("content-type"), Some("application/json"));
        let _: Json = plain.json();
    }

    /// A link to a resource outside of the directory's reach is found by no filter.
    async fn links_outside_the_reach_are_not_found(world: World) {
        let client = own(&world).await;
        let ada = user(&client, "ada").await;
        let hidden = world.admin.post(&world.path("/Group"), json!({ "name": "hidden" })).await.is(201).json();
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&hidden))), json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        let by_hand = world.user("zoe").await;
        let team = group(&client, "team", &[]).await;
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&team))), json!({ "relatedIds": [by_hand["id"]] })).await.expect(202);
        let count = |client: Client, path: String| async move { client.get(&at(&path)).await.is(200).json()["totalResults"].clone() };
        let lowest_id = "00000000-0000-0000-0000-000000000000";
        for (of, filter, others) in [
            ("Users", format!("groups.value eq \"{}\"", id(&hidden)), 1), ("Users", format!("groups.value gt \"{lowest_id}\""), 2),
            ("Users", "groups pr".to_owned(), 2), ("Users", format!("groups[value eq \"{}\"]", id(&hidden)), 1),
            ("Groups", format!("members.value eq \"{}\"", id(&by_hand)), 1), ("Groups", format!("members.value gt \"{lowest_id}\""), 2),
            ("Groups", "members pr".to_owned(), 2), ("Groups", "members.type eq \"User\"".to_owned(), 2),
        ] {
            let path = format!("/{of}?filter={}", encode(&filter));
            assert_eq!(count(client.clone(), path.clone()).await, 0, "{filter}");
            let page = client.get(&at(&format!("{path}&cursor="))).await.is(200).json();
            assert_eq!(ids(&page), [""; 0], "{filter}");
            assert_eq!(count(world.admin.clone(), path).await, others, "{filter}");
        }
        let without = format!("/Users?filter={}", encode("not (groups pr)"));
        assert_eq!(count(client.clone(), without).await, 1);
    }

    /// A person of a provider may be in groups that an administrator created.
    async fn links_outside_a_provider_are_not_found(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let ada = client.post(&format!("{base}/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let body = json!({ "displayName": "own", "members": [{ "value": ada["id"] }] });
        let own = client.post(&format!("{base}/Groups"), body).await.is(201).json();
        for (of, filter, count) in [
            ("Users", format!("groups.value eq \"{}\"", id(&own)), 1), ("Users", "groups pr".to_owned(), 1),
            ("Groups", format!("members.value eq \"{}\"", id(&ada)), 1), ("Groups", "members pr".to_owned(), 1),
            ("Users", format!("groups.value eq \"{}\"", id(&ada)), 0),
        ] {
            let list = client.get(&format!("{base}/{of}?filter={}", encode(&filter))).await.is(200).json();
            assert_eq!(list["totalResults"], count, "{filter}");
        }
    }

    async fn lists_are_sorted_by_the_last_change(world: World) {
        let client = own(&world).await;
        let mut users = Vec::new();
        for name in ["ada", "bob", "carl"] {
            users.push(user(&client, name).await);
        }
        let patch = operations(&json!([{ "op": "replace", "path": "nickName", "value": "A" }]));
        client.patch(&one("Users", &users[0]), patch).await.expect(200);
        for (order, names) in [("", ["bob", "carl", "ada"]), ("&sortOrder=descending", ["ada", "carl", "bob"])] {
            let path = format!("/Users?sortBy=meta.lastModified&attributes=userName{order}");
            let list = client.get(&at(&path)).await.is(200).json();
            assert_eq!(each(&list["Resources"], "userName"), names, "{order}");
            let (mut by_cursor, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = client.get(&at(&format!("{path}&count=1&cursor={cursor}"))).await.is(200).json();
                by_cursor.extend(each(&page["Resources"], "userName").into_iter().map(str::to_owned));
                match page["nextCursor"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            assert_eq!(by_cursor, names, "by cursor {order}");
        }
        for (start, name) in [(1, "bob"), (2, "carl"), (3, "ada")] {
            let list = client.get(&at(&format!("/Users?sortBy=meta.lastModified&count=1&startIndex={start}"))).await.is(200).json();
            assert_eq!(each(&list["Resources"], "userName"), [name]);
        }
        group(&client, "team", &[]).await;
        client.get(&at("/Groups?sortBy=meta.lastModified")).await.expect(200);
    }

    async fn filter_errors_name_scims_attributes(world: World) {
        let client = own(&world).await;
        let (partner, base) = of_provider(&world, "partner").await;
        for (client, base) in [(client, at("")), (partner, base)] {
            for (filter, name) in [("active eq \"yes\"", "active"), ("userName sw \"\"", "userName"), ("externalId gt 7", "externalId")] {
                let (word, detail) = error(&client.get(&format!("{base}/Users?filter={}", encode(filter))).await, 400);
                assert!(word == "invalidFilter" && detail.contains(&format!("Column 1: {name} ")), "{detail}");
            }
            client.get(&format!("{base}/Users?filter={}", encode("active eq \"True\""))).await.expect(200);
            for other in ["title", "displayName"] {
                let (_, detail) = error(&client.get(&format!("{base}/Users?sortBy={other}")).await, 400);
                assert!(detail.contains(other), "{detail}");
            }
        }
    }
}
