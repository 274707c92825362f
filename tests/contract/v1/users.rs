//! Users, groups and their entries.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{UNKNOWN_ID, at, ids, names};
use crate::{each, id, pointers};

on_both_engines! {
    async fn crud_and_batches(world: World) {
        for (resource, name) in [("User", "loginName"), ("Group", "name")] {
            let (all, admin) = (at(&format!("/{resource}")), &world.admin);
            let created_first = admin.post(&all, json!({ name: "a", "nonsense": 1 })).await.is(201).json();
            assert!(created_first.get("concurrencyToken").is_none(), "{created_first}");
            let one = format!("{all}/{}", id(&created_first));
            assert_eq!(admin.get(&one).await.is(200).json(), created_first);
            assert_eq!(admin.get(&all).await.is(200).json(), json!([created_first]));
            let put = admin.put(&one, json!({ "id": created_first["id"], name: "b", "nonsense": {} })).await.is(202).json();
            assert_eq!((&put["id"], &put[name]), (&created_first["id"], &json!("b")));
            let replace = json!([{ "op": "replace", "path": format!("/{name}"), "value": "c" }]);
            assert_eq!(admin.patch(&one, replace).await.is(202).json()[name], "c");
            let upsert = format!("{all}/createorupdate");
            let updated = admin.post(&upsert, json!({ "id": created_first["id"], name: "d" })).await.is(201).json();
            assert_eq!((&updated["id"], &updated[name]), (&created_first["id"], &json!("d")));
            let created = admin.post(&upsert, json!({ name: "e" })).await.is(201).json();
            assert_ne!(created["id"], created_first["id"]);
            let batch = format!("{all}/batch");
            let two = admin.post(&batch, json!([{ name: "f" }, { name: "g" }])).await.is(200).json();
            assert_eq!(each(&two, name), ["f", "g"]);
            let swapped = json!([{ "id": two[1]["id"], name: "h" }, { "id": two[0]["id"], name: "i" }]);
            assert_eq!(each(&admin.put(&batch, swapped).await.is(200).json(), name), ["h", "i"]);
            let patch = json!([{ "ids": [two[0]["id"]], "patch": [{ "op": "replace", "path": format!("/{name}"), "value": "j" }] }]);
            assert_eq!(each(&admin.patch(&batch, patch).await.is(202).json(), name), ["j"]);
            let either = json!([{ name: "k" }, { "id": two[0]["id"], name: "l" }]);
            let either = admin.post(&format!("{upsert}/batch"), either).await.is(200).json();
            assert_eq!((each(&either, name), &either[1]["id"]), (vec!["k", "l"], &two[0]["id"]));
            assert!(!either.to_string().contains("concurrencyToken"));
            admin.delete_with(&batch, json!([two[0]["id"], two[1]["id"], either[0]["id"], created["id"]])).await.expect(204);
            assert!(admin.delete(&one).await.is(204).bytes.is_empty());
            admin.get(&one).await.problem(404, "not-found");
            assert_eq!(admin.get(&all).await.is(200).json(), json!([]));
        }
    }

    /// Lock state, counters and unknown members of a body are ignored.
    async fn read_only_and_unknown_members_are_ignored(world: World) {
        let body = json!({
            "loginName": "ada", "isUserLocked": true, "failedUserLoginAttempts": 7, "lockedUntil": "2099-01-01T00:00:00Z",
            "isInitialPassword": true, "externalUniqueIdentifier": "x", "userProfiles": [{ "key": "k", "value": "v" }],
            "concurrencyToken": "none", "phoneNumber": "+49301234567",
        });
        let user = world.admin.post(&at("/User"), body).await.is(201).json();
        for (member, value) in [
            ("isUserLocked", json!(false)), ("failedUserLoginAttempts", json!(0)), ("lockedUntil", json!(null)),
            ("isInitialPassword", json!(false)), ("externalUniqueIdentifier", json!(null)), ("userProfiles", json!([])),
        ] {
            assert_eq!(user[member], value, "{member}");
        }
        let (one, new) = (at(&format!("/User/{}", id(&user))), world.path(&format!("/User/{}", id(&user))));
        assert_eq!(world.admin.get(&new).await.is(200).json()["phoneNumber"], json!(null), "a name of version 2 is none here");
        world.admin.post(&format!("{new}/state"), json!({ "isUserLocked": true })).await.expect(200);
        let opened = json!({ "loginName": "ada", "isUserLocked": false, "lockedUntil": null, "concurrencyToken": 7 });
        assert_eq!(world.admin.put(&one, opened.clone()).await.is(202).json()["isUserLocked"], true);
        let mut element = opened;
        element["id"] = user["id"].clone();
        for path in ["/User/createorupdate/batch", "/User/createorupdate"] {
            let body = if path.ends_with("batch") { json!([element]) } else { element.clone() };
            let answer = world.admin.post(&at(path), body).await.json();
            let user = if answer.is_array() { &answer[0] } else { &answer };
            assert_eq!(user["isUserLocked"], true, "{path}: {answer}");
        }
        let with_other_id = json!({ "id": UNKNOWN_ID, "loginName": "ada" });
        assert_eq!(pointers(&world.admin.put(&one, with_other_id).await.problem(400, "invalid-request")), ["/id"]);
    }

    async fn a_put_retains_members_of_version_2(world: World) {
        let body = json!({ "loginName": "ada", "firstName": "Ada", "phoneNumber": "+49301234567", "locale": "de-DE", "nickname": "A", "isUserActive": false });
        let before = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let (one, new) = (at(&format!("/User/{}", id(&before))), world.path(&format!("/User/{}", id(&before))));
        let seen = world.admin.get(&one).await.is(200).json();
        for hidden in ["phoneNumber", "phoneNumberConfirmed", "locale", "nickname", "concurrencyToken"] {
            assert!(seen.get(hidden).is_none(), "{hidden} in {seen}");
        }
        let element = json!({ "id": before["id"], "loginName": "ada", "lastName": "L" });
        world.admin.put(&one, element.clone()).await.expect(202);
        world.admin.put(&at("/User/batch"), json!([element])).await.expect(200);
        world.admin.post(&at("/User/createorupdate"), element.clone()).await.expect(201);
        world.admin.post(&at("/User/createorupdate/batch"), json!([element])).await.expect(200);
        world.admin.patch(&one, json!([{ "op": "add", "path": "/lastName", "value": "M" }])).await.expect(202);
        let after = world.admin.get(&new).await.is(200).json();
        for retained in ["phoneNumber", "locale", "nickname", "isUserActive"] {
            assert_eq!(after[retained], before[retained], "{retained}");
        }
        assert_eq!((&after["firstName"], &after["lastName"]), (&json!(null), &json!("M")));
        assert_ne!(after["concurrencyToken"], before["concurrencyToken"]);
    }

    async fn links_are_replaced_only_when_present(world: World) {
        let (a, b) = (world.group("a").await, world.group("b").await);
        let user = json!({ "loginName": "ada", "memberOfGroups": ids(&[&a, &b]) });
        let user = world.admin.post(&at("/User"), user).await.is(201).json();
        assert_eq!(names(&user["memberOfGroups"]), ["a", "b"]);
        assert_eq!(user["memberOfGroups"][0].as_object().unwrap().len(), 2, "shallow: id and name");
        let one = at(&format!("/User/{}", id(&user)));
        for (body, expected) in [
            (json!({ "loginName": "ada", "memberOfGroups": ids(&[&b, &b]) }), &["b"][..]),
            (json!({ "loginName": "ada" }), &["b"]),
            (json!({ "loginName": "ada", "memberOfGroups": null }), &["b"]),
            (json!({ "loginName": "ada", "memberOfGroups": ids(&[&a]) }), &["a"]),
        ] {
            let user = world.admin.put(&one, body.clone()).await.is(202).json();
            assert_eq!(names(&user["memberOfGroups"]), expected, "{body}");
        }
        let unknown = json!({ "loginName": "x", "memberOfGroups": [{ "id": a["id"] }, { "id": UNKNOWN_ID }] });
        for answer in [world.admin.put(&one, unknown.clone()).await, world.admin.post(&at("/User"), unknown.clone()).await] {
            assert_eq!(pointers(&answer.problem(400, "invalid-request")), ["/memberOfGroups/1/id"]);
        }
        let mut element = unknown;
        element["id"] = user["id"].clone();
        let new = json!({ "loginName": "y", "memberOfGroups": [{ "id": UNKNOWN_ID }, { "id": a["id"] }, { "id": UNKNOWN_ID }] });
        for (path, elements) in [("/User/batch", json!([element])), ("/User/createorupdate/batch", json!([element, new]))] {
            let answer = if path == "/User/batch" { world.admin.put(&at(path), elements).await } else { world.admin.post(&at(path), elements).await };
            let expected = ["/0/memberOfGroups/1/id", "/1/memberOfGroups/0/id"];
            assert_eq!(pointers(&answer.problem(400, "invalid-request")), expected[..if path == "/User/batch" { 1 } else { 2 }]);
        }
        assert_eq!(world.admin.get(&one).await.is(200).json()["loginName"], "ada", "nothing was done");
        let wrong = json!({ "loginName": "ada", "memberOfGroups": "all" });
        assert_eq!(pointers(&world.admin.put(&one, wrong).await.problem(400, "invalid-request")), ["/memberOfGroups"]);
        let batch = json!([{ "id": user["id"], "loginName": "ada", "memberOfGroups": [] }]);
        assert_eq!(world.admin.put(&at("/User/batch"), batch).await.is(200).json()[0]["memberOfGroups"], json!([]));
    }

    async fn groups_have_three_sets(world: World) {
        let (ada, other, group) = (world.user("ada").await, world.group("other").await, world.group("g").await);
        let one = at(&format!("/Group/{}", id(&group)));
        let put = async |sets: Value| {
            let mut body = json!({ "name": "g" });
            body.as_object_mut().unwrap().extend(sets.as_object().unwrap().clone());
            world.admin.put(&one, body).await
        };
        let shown = put(json!({ "memberUsers": ids(&[&ada]), "parentGroups": ids(&[&other]) })).await.is(202).json();
        assert_eq!(each(&shown["memberUsers"], "loginName"), ["ada"]);
        assert_eq!((names(&shown["parentGroups"]), &shown["memberGroups"]), (vec!["other"], &json!([])));
        assert_eq!(put(json!({})).await.is(202).json(), shown);
        // a group can move from one set to the other in one request
        for (source, to) in [("parentGroups", "memberGroups"), ("memberGroups", "parentGroups")] {
            let shown = put(json!({ source: [], to: ids(&[&other]) })).await.is(202).json();
            assert_eq!((&shown[source], names(&shown[to])), (&json!([]), vec!["other"]));
        }
        put(json!({ "parentGroups": ids(&[&other]), "memberGroups": ids(&[&other]) })).await.problem(409, "conflict");
        for set in ["memberUsers", "parentGroups", "memberGroups"] {
            let problem = put(json!({ set: [{ "id": UNKNOWN_ID }] })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{set}/0/id")]);
        }
        let emptied = put(json!({ "memberUsers": [], "parentGroups": [] })).await.is(202).json();
        assert_eq!((&emptied["memberUsers"], &emptied["parentGroups"]), (&json!([]), &json!([])));
    }

    async fn createorupdate_matches_by_key(world: World) {
        let (one, many) = (at("/User/createorupdate"), at("/User/createorupdate/batch"));
        let own = json!({ "id": UNKNOWN_ID, "loginName": "own" });
        for name in ["own", "changed"] {
            let row = world.admin.post(&one, json!({ "id": UNKNOWN_ID, "loginName": name })).await.is(201).json();
            assert_eq!((&row["id"], &row["loginName"]), (&own["id"], &json!(name)));
        }
        assert_eq!(world.admin.get(&at("/User")).await.is(200).json().as_array().unwrap().len(), 1);
        let created = world.admin.post(&many, json!([{ "loginName": "b" }, { "loginName": "c" }])).await.is(200).json();
        assert_eq!(each(&created, "loginName"), ["b", "c"]);
        let mixed = json!([{ "id": created[1]["id"], "loginName": "c2" }, { "loginName": "d" }, { "id": created[0]["id"], "loginName": "b2" }]);
        let mixed = world.admin.post(&many, mixed).await.is(200).json();
        assert_eq!(each(&mixed, "loginName"), ["c2", "d", "b2"]);
        assert_eq!((&mixed[0]["id"], &mixed[2]["id"]), (&created[1]["id"], &created[0]["id"]));
        let twice = json!([{ "id": created[0]["id"], "loginName": "x" }, { "id": created[0]["id"], "loginName": "y" }]);
        assert_eq!(pointers(&world.admin.post(&many, twice).await.problem(400, "invalid-request")), ["/1/id"]);
        assert_eq!(pointers(&world.admin.post(&many, json!([{ "firstName": "x" }])).await.problem(400, "invalid-request")), ["/0/loginName"]);
        assert_eq!(pointers(&world.admin.post(&one, json!({ "id": "x", "loginName": "x" })).await.problem(400, "invalid-request")), ["/id"]);
        // a deleted row cannot be created again with its id
        world.admin.delete(&at(&format!("/User/{UNKNOWN_ID}"))).await.expect(204);
        let again = json!({ "id": UNKNOWN_ID, "loginName": "again" });
        assert_eq!(pointers(&world.admin.post(&one, again.clone()).await.problem(409, "conflict")), ["/id"]);
        assert_eq!(pointers(&world.admin.post(&many, json!([{ "loginName": "e" }, again])).await.problem(409, "conflict")), ["/1/id"]);
        let group = world.group("g").await;
        world.admin.delete(&at(&format!("/Group/{}", id(&group)))).await.expect(204);
        let again = json!({ "id": group["id"], "name": "h" });
        assert_eq!(pointers(&world.admin.post(&at("/Group/createorupdate"), again).await.problem(409, "conflict")), ["/id"]);
        assert_eq!(world.admin.get(&at("/User")).await.is(200).json().as_array().unwrap().len(), 3);
    }

    async fn metadata_entries_have_compound_keys(world: World) {
        let (group, other) = (world.group("g").await, world.group("h").await);
        let (ada, bob) = (world.user("ada").await, world.user("bob").await);
        let metadata = |group: &Value| at(&format!("/Group/{}/GroupMetadata", id(group)));
        let profiles = |user: &Value| at(&format!("/user/{}/UserProfile", id(user)));
        let admin = &world.admin;
        for (mine, theirs, owner) in [(metadata(&group), metadata(&other), "groupId"), (profiles(&ada), profiles(&bob), "userId")] {
            let entry = |key: &str, value: &str| json!({ "key": key, "value": value });
            let others_before = json!([admin.post(&theirs, entry("k", "theirs")).await.is(201).json(), admin.post(&theirs, entry("a", "theirs")).await.is(201).json()]);
            let created = admin.post(&mine, json!({ "key": "k", "value": "v", "unknown": 1 })).await.is(201).json();
            let members: Vec<&String> = created.as_object().unwrap().keys().collect();
            assert_eq!(members.len(), 4, "{members:?}");
            assert_eq!((&created["key"], &created["value"], &created["instanceId"]), (&json!("k"), &json!("v"), &group["instanceId"]));
            assert_ne!(created[owner], others_before[0][owner]);
            let one = format!("{mine}/k");
            assert_eq!(admin.get(&one).await.is(200).json(), created);
            for list in [mine.clone(), format!("{mine}/{owner}")] {
                assert_eq!(admin.get(&list).await.is(200).json(), json!([created]), "{list}");
            }
            assert_eq!(pointers(&admin.post(&mine, entry("k", "x")).await.problem(409, "conflict")), ["/key"]);
            assert_eq!(admin.put(&one, json!({ "value": "w" })).await.is(202).json()["value"], "w");
            let patch = json!([{ "op": "replace", "path": "/value", "value": "x" }]);
            assert_eq!(admin.patch(&one, patch.clone()).await.is(202).json()["value"], "x");
            let upsert = format!("{mine}/createorupdate");
            assert_eq!(admin.post(&upsert, entry("k", "y")).await.is(201).json()["value"], "y");
            assert_eq!(admin.post(&upsert, entry("n", "new")).await.is(201).json()["value"], "new");
            assert_eq!(pointers(&admin.post(&upsert, json!({ "value": "x" })).await.problem(400, "invalid-request")), ["/key"]);
            let batch = format!("{mine}/batch");
            let two = admin.post(&batch, json!([entry("a", "1"), entry("b", "2")])).await.is(200).json();
            assert_eq!(each(&two, "key"), ["a", "b"]);
            let taken = json!([entry("c", "x"), entry("a", "x")]);
            assert_eq!(pointers(&admin.post(&batch, taken).await.problem(409, "conflict")), ["/1/key"]);
            let put = admin.put(&batch, json!([entry("b", "3"), entry("a", "4")])).await.is(200).json();
            assert_eq!((each(&put, "key"), each(&put, "value")), (vec!["b", "a"], vec!["3", "4"]));
            admin.put(&batch, json!([entry("a", "x"), entry("none", "x")])).await.problem(404, "not-found");
            let patched = admin.patch(&batch, json!([{ "ids": ["b", "a"], "patch": patch }])).await.is(202).json();
            assert_eq!((each(&patched, "key"), each(&patched, "value")), (vec!["b", "a"], vec!["x", "x"]));
            let either = admin.post(&format!("{upsert}/batch"), json!([entry("a", "5"), entry("d", "6")])).await.is(200).json();
            assert_eq!(each(&either, "value"), ["5", "6"]);
            assert_eq!(pointers(&admin.delete_with(&batch, json!(["a", "none"])).await.problem(404, "not-found")), ["/1"]);
            admin.delete_with(&batch, json!(["a", "b", "d"])).await.expect(204);
            assert!(admin.delete(&format!("{mine}/n")).await.is(204).bytes.is_empty());
            assert_eq!(each(&admin.get(&mine).await.is(200).json(), "value"), ["y"]);
            let left = admin.get(&theirs).await.is(200).json();
            for entry in others_before.as_array().unwrap() {
                assert!(left.as_array().unwrap().contains(entry), "{entry} in {left}");
            }
            assert_eq!(left.as_array().unwrap().len(), 2);
        }
        let shown = json!([{ "key": "k", "value": "y" }]);
        assert_eq!(admin.get(&at(&format!("/Group/{}", id(&group)))).await.is(200).json()["metadata"], shown);
        let user = admin.get(&at(&format!("/User/{}", id(&ada)))).await.is(200).json();
        assert_eq!(user["userProfiles"], shown);
        // entries in a body of the user are ignored
        let mut sent = user.clone();
        sent["userProfiles"] = json!([]);
        assert_eq!(admin.put(&at(&format!("/User/{}", id(&ada))), sent).await.is(202).json()["userProfiles"], shown);
    }
}
