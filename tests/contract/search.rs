//! Finding people by the beginning of a name or an address.

use chancery_testkit::{World, on_both_engines};
use chancery_userstore::user::search_reads;
use serde_json::{Value, json};

use crate::{
    each, encode, id,
    members::{explain, server_context},
};

/// Creates people: login name, first name, last name, e-mail address.
async fn people(world: &World, people: &[[&str; 4]]) -> Value {
    let text = |text: &str| if text.is_empty() { json!(null) } else { json!(text) };
    let people: Vec<Value> = people
        .iter()
        .map(|[login, first, last, address]| {
            json!({ "loginName": login, "firstName": text(first), "lastName": text(last), "emailAddress": text(address) })
        })
        .collect();
    world.admin.post(&world.path("/User/batch"), json!(people)).await.is(200).json()
}

/// The login names that a text matches, in order.
async fn find(world: &World, text: &str) -> Vec<String> {
    let matches =
        world.admin.get(&world.path(&format!("/User/search?q={}", encode(text)))).await.is(200).json();
    each(&matches, "loginName").into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    /// The whole login name first, then the whole e-mail address, then login name, last name, first name and address; each
    /// person once, folded as names are.
    async fn the_best_match_is_first(world: World) {
        let all = people(&world, &[
            ["a", "Lovely", "Zuse", ""],
            ["b", "", "Lovelace", "lovelace@example.com"],
            ["c", "Ada", "Lovelace", ""],
            ["d", "", "LOVE", ""],
            ["e", "", "", "lovebird@example.com"],
            ["lovejoy", "Love", "Love", "love@example.com"],
            ["love", "", "", ""],
            ["love@example.com.example", "", "", ""],
            ["glove", "Glove", "Glove", "glove@example.com"],
        ]).await;
        let names = ["love", "love@example.com.example", "lovejoy", "d", "b", "c", "a", "e"];
        assert_eq!(find(&world, "love").await, names);
        assert_eq!(find(&world, "  ＬＯＶＥ ").await, names);
        assert_eq!(find(&world, "Love@Example.com").await, ["lovejoy", "love@example.com.example"]);
        assert_eq!(find(&world, "nobody").await, [""; 0]);
        let group = world.group("g").await;
        let path = world.path(&format!("/User/{}/groups", id(&all[2])));
        world.admin.post(&path, json!({ "relatedIds": [group["id"]] })).await.expect(202);
        let matches = world.admin.get(&world.path("/User/search?q=c&count=1")).await.is(200).json();
        assert_eq!(matches, json!([world.admin.get(&world.path(&format!("/User/{}", id(&all[2])))).await.is(200).json()]));
        let list = world.admin.get(&world.path("/User/search?q=love&count=3")).await.is(200);
        assert_eq!((each(&list.json(), "loginName"), list.next()), (names[..3].to_vec(), None));
    }

    /// "first last" and "last, first", as far as they are typed.
    async fn both_names_find_in_both_spellings(world: World) {
        people(&world, &[
            ["a", "Ada", "Lovelace", ""],
            ["b", "Ada Augusta", "Lovelace", ""],
            ["c", "Ada", "Van Love", ""],
            ["d", "", "Lovelace", ""],
            ["e", "Love", "Adams", ""],
        ]).await;
        for (text, names) in [
            ("ada love", &["a"][..]),
            ("ADA\u{a0}Lovelace", &["a"]),
            ("ada augusta love", &["b"]),
            ("ada van love", &["c"]),
            ("ada a", &["b"]),
            ("lovelace, a", &["a", "b"]),
            ("Lovelace,ada a", &["b"]),
            ("lovelace,", &["d", "a", "b"]),
            ("van love, ada", &["c"]),
            ("love ada", &["e"]),
            ("love, a", &[]),
            (", ada", &[]),
        ] {
            assert_eq!(find(&world, text).await, names, "{text}");
        }
    }

    /// A text is literal: no pattern, and no other character matches.
    async fn a_text_means_itself(world: World) {
        people(&world, &[["a_b", "", "100% Off", ""], ["axb", "", "1000", ""], ["%", "", "", ""]]).await;
        for (text, names) in [("a_", &["a_b"][..]), ("%", &["%"]), ("100%", &["a_b"]), ("_", &[]), ("\'", &[]), ("\\", &[])] {
            assert_eq!(find(&world, text).await, names, "{text}");
        }
        let long = "x".repeat(201);
        for query in [
            "", "?q=", "?q=%20", "?q=a%00b", &format!("?q={long}"), "?q=a&count=0", "?q=a&count=101", "?q=a&count=x", "?q=a&q=b",
            "?q=a&filter=id%20pr", "?count=5",
        ] {
            world.admin.get(&world.path(&format!("/User/search{query}"))).await.problem(400, "invalid-request");
        }
        assert_eq!(find(&world, &long[..200]).await, [""; 0]);
    }

    /// People of another store, and those in quarantine, are invisible; a caller who may not list people finds none.
    async fn invisible_people_are_not_found(world: World) {
        let all = people(&world, &[["ada", "Ada", "", ""], ["adam", "", "", ""]]).await;
        let store = world.other_store("other").await;
        let other_store = "/api/userstore/v2/other/administration/User";
        world.admin.post(other_store, json!({ "loginName": "adele" })).await.expect(201);
        world.admin.delete(&world.path(&format!("/User/{}", id(&all[0])))).await.expect(204);
        assert_eq!(find(&world, "ad").await, ["adam"]);
        let matches = world.admin.get(&format!("{other_store}/search?q=ad")).await.is(200).json();
        assert_eq!(each(&matches, "loginName"), ["adele"]);
        let admin = world.client("elsewhere", &[("UserStoreAdmin", None, Some(store))]).await;
        admin.get(&format!("{other_store}/search?q=ad")).await.expect(200);
        admin.get(&world.path("/User/search?q=ad")).await.problem(404, "not-found");
        world.anonymous.get(&world.path("/User/search?q=ad")).await.expect(401);
        let reader = world.client("reader", &[("AuditTrailReader", None, None)]).await;
        reader.get(&world.path("/User/search?q=ad")).await.expect(403);
    }

    /// A store full of one name costs the same as another: each read is the beginning of a range of an index, in its order.
    async fn a_store_full_of_one_name_stays_bounded(world: World) {
        let many: Vec<Value> = (0..3000)
            .map(|number| {
                let last = (number % 3 > 0).then_some("Same");
                json!({ "loginName": format!("same{number:05}"), "firstName": "Same", "lastName": last, "emailAddress": "same@example.com" })
            })
            .collect();
        world.admin.post(&world.path("/User/batch"), json!(many)).await.expect(200);
        for text in ["same", "same same", "same, same", "same@example.com"] {
            let path = world.path(&format!("/User/search?q={}", encode(text)));
            assert_eq!(world.admin.get(&path).await.is(200).json().as_array().unwrap().len(), 20, "{text}");
            assert_eq!(world.admin.get(&format!("{path}&count=100")).await.is(200).json().as_array().unwrap().len(), 100, "{text}");
        }
        let context = server_context(&world).await;
        for analyzed in [false, true] {
            if analyzed {
                world.sql(vec![("ANALYZE user_account", vec![])]).await;
            }
            for sql in search_reads(&context, "same a, b", 20) {
                let plan = explain(&world, sql).await.join("\n");
                assert!(plan.contains("user_account__store__"), "{plan}");
                for costly in ["SCAN t", "Seq Scan", "Sort", "TEMP B-TREE", "Filter: ((first", "Filter: ((last"] {
                    assert!(!plan.contains(costly), "{costly}: {plan}");
                }
            }
        }
    }
}
