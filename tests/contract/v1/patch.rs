//! JSON Patch of version 1.

use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::{Value, json};

use super::{UNKNOWN_ID, at, ids, names};
use crate::{each, id, pointers};

on_both_engines! {
    async fn every_operation_in_any_letter_case(world: World) {
        let user = world.admin.post(&at("/User"), json!({ "loginName": "ada", "firstName": "A" })).await.is(201).json();
        let one = at(&format!("/User/{}", id(&user)));
        for (patch, first, last) in [
            (json!([{ "OP": "TEST", "Path": "/FIRSTNAME", "Value": "A" }, { "op": "Replace", "path": "/firstname", "value": "B", "from": null }]), json!("B"), json!(null)),
            (json!([{ "op": "copy", "from": "/FirstName", "path": "/LastName" }]), json!("B"), json!("B")),
            (json!([{ "op": "add", "path": "/firstName", "value": "C" }, { "op": "test", "path": "/firstName", "value": "C" }]), json!("C"), json!("B")),
            (json!([{ "op": "move", "from": "/firstName", "path": "/lastName", "operationType": 3 }]), json!(null), json!("C")),
            (json!([{ "op": "remove", "path": "/lastName" }]), json!(null), json!(null)),
            (json!([{ "op": "test", "path": "/lastName", "value": null }]), json!(null), json!(null)),
            (json!([{ "op": "remove", "path": "/loginName" }, { "op": "add", "path": "/loginName", "value": "eve" }]), json!(null), json!(null)),
            (json!([{ "op": "copy", "from": "/id", "path": "/firstName" }]), user["id"].clone(), json!(null)),
            (json!([]), user["id"].clone(), json!(null)),
        ] {
            let patched = world.admin.patch(&one, patch.clone()).await.is(202).json();
            assert_eq!((&patched["firstName"], &patched["lastName"]), (&first, &last), "{patch}");
            assert!(patched.get("concurrencyToken").is_none());
            assert_eq!(world.admin.get(&one).await.is(200).json(), patched);
        }
        assert_eq!(world.admin.get(&one).await.is(200).json()["loginName"], "eve");
        let group = world.group("g").await;
        let patch = json!([{ "op": "test", "path": "/NAME", "value": "g" }, { "op": "replace", "path": "/Name", "value": "h" }]);
        let path = at(&format!("/Group/{}", id(&group)));
        assert_eq!(world.admin.patch(&path, patch).await.is(202).json()["name"], "h");
        world.admin.patch(&at(&format!("/User/{UNKNOWN_ID}")), json!([])).await.problem(404, "not-found");
    }

    /// A set is an array in the body; patching it leaves the row itself unchanged.
    async fn sets_are_patched(world: World) {
        let (a, b) = (world.group("a").await, world.group("b").await);
        let user = world.user("ada").await;
        let (one, new) = (at(&format!("/User/{}", id(&user))), world.path(&format!("/User/{}", id(&user))));
        let add = |group: &Value| json!({ "op": "add", "path": "/memberOfGroups/-", "value": { "id": group["id"] } });
        let patched = world.admin.patch(&one, json!([add(&a), add(&b), add(&b)])).await.is(202).json();
        assert_eq!(names(&patched["memberOfGroups"]), ["a", "b"]);
        let rest = patched["memberOfGroups"][1].clone();
        let patched = world.admin.patch(&one, json!([{ "op": "remove", "path": "/MemberOfGroups/0" }])).await.is(202).json();
        assert_eq!(patched["memberOfGroups"], json!([rest]));
        assert_eq!(world.admin.get(&new).await.is(200).json()["concurrencyToken"], user["concurrencyToken"]);
        world.admin.patch(&one, json!([{ "op": "add", "path": "/memberOfGroups/-", "value": { "id": UNKNOWN_ID } }])).await.problem(400, "invalid-request");
        let problem = world.admin.patch(&one, json!([{ "op": "remove", "path": "/memberOfGroups/7" }])).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/0/path"]);
        assert_eq!(world.admin.get(&one).await.is(200).json(), patched);
        let both = json!([{ "op": "replace", "path": "/firstName", "value": "Ada" }, { "op": "replace", "path": "/memberOfGroups", "value": ids(&[&a]) }]);
        let patched = world.admin.patch(&one, both).await.is(202).json();
        assert_eq!((&patched["firstName"], names(&patched["memberOfGroups"])), (&json!("Ada"), vec!["a"]));
        assert_ne!(world.admin.get(&new).await.is(200).json()["concurrencyToken"], user["concurrencyToken"]);

        let group = at(&format!("/Group/{}", id(&b)));
        let all = json!([
            { "op": "add", "path": "/memberUsers/0", "value": { "id": user["id"] } }, { "op": "add", "path": "/parentGroups/-", "value": { "id": a["id"] } },
        ]);
        let patched = world.admin.patch(&group, all).await.is(202).json();
        assert_eq!((each(&patched["memberUsers"], "loginName"), names(&patched["parentGroups"])), (vec!["ada"], vec!["a"]));
        let moved = json!([{ "op": "move", "from": "/parentGroups/0", "path": "/memberGroups/-" }]);
        let patched = world.admin.patch(&group, moved).await.is(202).json();
        assert_eq!((&patched["parentGroups"], names(&patched["memberGroups"])), (&json!([]), vec!["a"]));
    }

    async fn both_patch_media_types_are_accepted(world: World) {
        let user = world.user("ada").await;
        let one = at(&format!("/User/{}", id(&user)));
        let patch = json!([{ "op": "replace", "path": "/firstName", "value": "A" }]).to_string().into_bytes();
        for media in ["application/json", "application/json-patch+json", "Application/JSON-Patch+json; charset=utf-8"] {
            world.admin.send(Method::PATCH, &one, &[("content-type", media)], patch.clone()).await.expect(202);
        }
        for media in ["application/merge-patch+json", "text/plain"] {
            let answer = world.admin.send(Method::PATCH, &one, &[("content-type", media)], patch.clone()).await;
            assert_eq!(answer.header("accept-patch"), Some("application/json, application/json-patch+json"));
            answer.problem(415, "unsupported-media-type");
        }
    }

    async fn a_failed_patch_changes_nothing(world: World) {
        let user = world.admin.post(&at("/User"), json!({ "loginName": "ada", "firstName": "A" })).await.is(201).json();
        let one = at(&format!("/User/{}", id(&user)));
        let good = json!({ "op": "replace", "path": "/firstName", "value": "B" });
        let failed = json!([good, { "op": "test", "path": "/lastName", "value": "other" }]);
        assert_eq!(pointers(&world.admin.patch(&one, failed).await.problem(409, "conflict")), ["/1"]);
        for path in ["/id", "/isUserLocked", "/lockedUntil", "/failedUserLoginAttempts", "/instanceId", "/userProfiles", "/userProfiles/-", "", "/phoneNumber", "/concurrencyToken", "/nothing", "firstName"] {
            let patch = json!([good, { "op": "add", "path": path, "value": null }]);
            assert_eq!(pointers(&world.admin.patch(&one, patch).await.problem(400, "invalid-request")), ["/1/path"], "{path:?}");
        }
        for (operation, expected) in [
            (json!({ "op": "move", "from": "/id", "path": "/firstName" }), "/1/from"),
            (json!({ "op": "copy", "from": "/nothing", "path": "/firstName" }), "/1/from"),
            (json!({ "op": "copy", "path": "/firstName" }), "/1/from"),
            (json!({ "op": "replace", "path": "/firstName" }), "/1/value"),
            (json!({ "op": "replace", "path": "/emailAddress", "value": "nonsense" }), "/1/value"),
            (json!({ "op": "replace", "value": "x" }), "/1/path"),
            (json!({ "op": "change", "path": "/firstName", "value": "x" }), "/1/op"),
            (json!("replace"), "/1/op"),
        ] {
            let problem = world.admin.patch(&one, json!([good, operation])).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [expected], "{operation}");
        }
        for path in ["/loginName", "/isUserActive"] {
            let problem = world.admin.patch(&one, json!([good, { "op": "remove", "path": path }])).await.problem(400, "invalid-request");
            assert!(pointers(&problem)[0].starts_with("/1/"), "{problem}");
        }
        world.admin.patch(&one, json!({ "firstName": "B" })).await.problem(400, "invalid-request");
        assert_eq!(world.admin.get(&one).await.is(200).json(), user);
    }

    /// A changed address is not confirmed, even if the previous one was.
    async fn a_new_address_is_not_confirmed(world: World) {
        let body = json!({ "loginName": "ada", "emailAddress": "a@example.com", "emailAddressConfirmed": true });
        let user = world.admin.post(&at("/User"), body).await.is(201).json();
        let one = at(&format!("/User/{}", id(&user)));
        let address = |address: &str| json!({ "op": "replace", "path": "/emailAddress", "value": address });
        let patched = world.admin.patch(&one, json!([{ "op": "replace", "path": "/firstName", "value": "A" }])).await.is(202).json();
        assert_eq!(patched["emailAddressConfirmed"], true);
        assert_eq!(world.admin.patch(&one, json!([address("b@example.com")])).await.is(202).json()["emailAddressConfirmed"], false);
        let both = json!([{ "op": "replace", "path": "/emailAddressConfirmed", "value": true }, address("c@example.com")]);
        assert_eq!(world.admin.patch(&one, both).await.is(202).json()["emailAddressConfirmed"], true);
        let batch = json!([{ "ids": [user["id"]], "patch": [address("d@example.com")] }]);
        assert_eq!(world.admin.patch(&at("/User/batch"), batch).await.is(202).json()[0]["emailAddressConfirmed"], false);
    }

    async fn a_batch_patch_is_atomic(world: World) {
        let (a, b, c) = (world.user("a").await, world.user("b").await, world.user("c").await);
        let (batch, all) = (at("/User/batch"), at("/User"));
        let name = |name: &str| json!({ "op": "add", "path": "/firstName", "value": name });
        let patch = json!([{ "ids": [c["id"], a["id"]], "patch": [name("x")] }, { "ids": [b["id"]], "patch": [name("y")] }]);
        let patched = world.admin.patch(&batch, patch).await.is(202).json();
        assert_eq!((each(&patched, "loginName"), each(&patched, "firstName")), (vec!["c", "a", "b"], vec!["x", "x", "y"]));
        let before = world.admin.get(&all).await.is(200).json();
        for (second, status, kind, expected) in [
            (json!({ "ids": [b["id"], UNKNOWN_ID], "patch": [name("z")] }), 404, "not-found", "/1/ids/1"),
            (json!({ "ids": [b["id"], a["id"]], "patch": [name("z")] }), 400, "invalid-request", "/1/ids/1"),
            (json!({ "ids": ["x"], "patch": [name("z")] }), 400, "invalid-request", "/1/ids/0"),
            (json!({ "ids": [b["id"]] }), 400, "invalid-request", "/1"),
            (json!({ "ids": [b["id"]], "patch": [{ "op": "test", "path": "/firstName", "value": "z" }] }), 409, "conflict", "/1/patch/0"),
            (json!({ "ids": [b["id"]], "patch": [name("z"), { "op": "remove", "path": "/id" }] }), 400, "invalid-request", "/1/patch/1/path"),
            (json!({ "ids": [b["id"]], "patch": [{ "op": "add", "path": "/emailAddress", "value": "z" }] }), 400, "invalid-request", "/1/patch/0/value"),
            (json!({ "ids": [b["id"]], "patch": [{ "op": "add", "path": "/loginName", "value": "C" }] }), 409, "conflict", "/1/patch/0/value"),
        ] {
            let patch = json!([{ "ids": [a["id"]], "patch": [name("z")] }, second]);
            let problem = world.admin.patch(&batch, patch).await.problem(status, kind);
            assert_eq!(pointers(&problem), [expected], "{second}");
        }
        assert_eq!(world.admin.get(&all).await.is(200).json(), before);
        let group = world.group("g").await;
        let join = json!([{ "ids": [a["id"], b["id"]], "patch": [{ "op": "add", "path": "/memberOfGroups/-", "value": { "id": group["id"] } }] }]);
        let joined = world.admin.patch(&batch, join).await.is(202).json();
        assert!(joined.as_array().unwrap().iter().all(|user| names(&user["memberOfGroups"]) == ["g"]), "{joined}");
        assert_eq!(world.admin.patch(&batch, json!([])).await.is(202).json(), json!([]));
    }

    async fn patches_have_size_limits(world: World) {
        let user = world.user("ada").await;
        let one = at(&format!("/User/{}", id(&user)));
        let tests = |count: usize| -> Value { (0..count).map(|_| json!({ "op": "test", "path": "/loginName", "value": "ada" })).collect() };
        world.admin.patch(&one, tests(1000)).await.expect(202);
        world.admin.patch(&one, tests(1001)).await.problem(413, "payload-too-large");
        let batch = json!([{ "ids": [user["id"]], "patch": tests(1001) }]);
        world.admin.patch(&at("/User/batch"), batch).await.problem(413, "payload-too-large");
        let ids: Vec<&Value> = (0..10_001).map(|_| &user["id"]).collect();
        world.admin.patch(&at("/User/batch"), json!([{ "ids": ids, "patch": [] }])).await.problem(413, "payload-too-large");
        // repeated ids and large values in many rows are refused
        let twice = json!([{ "ids": [user["id"]], "patch": [] }, { "ids": [user["id"]], "patch": [] }]);
        let problem = world.admin.patch(&at("/User/batch"), twice).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/1/ids/0"]);
        let many: Vec<Value> = (0..20).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let many = world.admin.post(&at("/User/batch"), json!(many)).await.is(200).json();
        let large = json!([{ "op": "add", "path": "/firstName", "value": "x".repeat(1 << 20) }]);
        let batch = json!([{ "ids": each(&many, "id"), "patch": large }]);
        assert_eq!(pointers(&world.admin.patch(&at("/User/batch"), batch).await.problem(400, "invalid-request")), ["/0/patch/0"]);
        // each copy into itself would nest it twice as deep
        let within = |levels: usize| format!("/firstName{}", "/0".repeat(levels));
        let nested = (0..19).fold(json!([]), |inner, _| json!([inner]));
        let deep = json!([
            { "op": "add", "path": "/firstName", "value": nested },
            { "op": "copy", "from": "/firstName", "path": within(20) },
        ]);
        assert_eq!(pointers(&world.admin.patch(&one, deep).await.problem(400, "invalid-request")), ["/1/path"]);
    }
}
