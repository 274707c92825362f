//! Users: every operation of this release.

use chancery_testkit::on_both_engines;
use serde_json::json;

use crate::{id, pointers};

on_both_engines! {
    /// A newcomer's first steps.
    async fn is_created_read_changed_and_deleted(world: World) {
        let created = world.admin.post(&world.path("/User"), json!({
            "loginName": "ada", "firstName": "Ada", "emailAddress": "ada@example.com", "emailAddressConfirmed": true,
            "birthdate": "1815-12-10T00:00:00Z", "userValidFrom": "2026-01-01T01:00:00+01:00",
        })).await.is(201);
        let user = created.json();
        assert_eq!(user["birthdate"], "1815-12-10");
        assert_eq!(user["userValidFrom"], "2026-01-01T00:00:00.000Z");
        assert_eq!(user["isUserActive"], true);
        assert_eq!(user["memberOfGroups"], json!([]));
        let one = world.path(&format!("/User/{}", user["id"].as_str().unwrap()));
        let read = world.admin.get(&one).await.is(200);
        assert_eq!(read.json(), user);
        assert_eq!(read.header("etag"), created.header("etag"));

        let mut body = user.clone();
        body["lastName"] = json!("Lovelace");
        body["isUserLocked"] = json!(true);
        let changed = world.admin.put(&one, body).await.is(202).json();
        assert_eq!(changed["lastName"], "Lovelace");
        assert_eq!(changed["isUserLocked"], false, "lock state is not the caller's to set");
        assert_ne!(changed["concurrencyToken"], user["concurrencyToken"]);

        world.admin.delete(&one).await.expect(204);
        world.admin.get(&one).await.problem(404, "not-found");
        world.admin.delete(&one).await.problem(404, "not-found");
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json(), json!([]));
        // in quarantine the login name and the id stay taken
        let again = world.admin.post(&world.path("/User"), json!({ "loginName": "ADA" })).await;
        assert_eq!(again.problem(409, "conflict")["errors"][0]["pointer"], "/loginName");
        let again = world.admin.post(&world.path("/User"), json!({ "loginName": "x", "id": user["id"] })).await;
        assert_eq!(again.problem(409, "conflict")["errors"][0]["pointer"], "/id");
    }

    async fn is_found_by_login_name_without_regard_to_case(world: World) {
        let path = world.path("/User/loginname/");
        for (name, look_up) in [("Ada@Example.com", "ADA%40example.COM"), ("stra\u{df}e", "STRASSE"), ("a/b c%", "A%2Fb%20c%25")] {
            let user = world.user(name).await;
            let user_found = world.admin.get(&format!("{path}{look_up}")).await.is(200).json();
            assert_eq!(user_found["id"], user["id"], "{name}");
            assert_eq!(user_found["loginName"], *name);
        }
        world.admin.get(&format!("{path}nobody")).await.problem(404, "not-found");
    }

    async fn brings_its_own_id_once(world: World) {
        let own = "0192F0C1-2B3A-1C4D-8E5F-6A7B8C9D0E1F";
        let body = json!({ "loginName": "ada", "id": own });
        let user = world.admin.post(&world.path("/User"), body.clone()).await.is(201).json();
        assert_eq!(id(&user), own.to_lowercase());
        let problem = world.admin.post(&world.path("/User"), json!({ "loginName": "b", "id": own })).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/id"]);
    }

    async fn takes_its_store_or_none(world: World) {
        let store = world.user("ada").await["instanceId"].clone();
        world.admin.post(&world.path("/User"), json!({ "loginName": "b", "instanceId": store })).await.expect(201);
        let other = json!({ "loginName": "c", "instanceId": "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f" });
        let problem = world.admin.post(&world.path("/User"), other).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/instanceId"]);
        // the store is addressed by its id or its name, in any case
        let by_id = format!("/api/userstore/v2/{}/administration/User", store.as_str().unwrap());
        assert_eq!(world.admin.get(&by_id).await.is(200).json().as_array().unwrap().len(), 2);
        world.admin.get("/api/userstore/v2/DEFAULT/administration/User").await.expect(200);
        world.admin.get("/api/userstore/v2/none/administration/User").await.problem(404, "not-found");
    }

    async fn put_replaces_and_patch_changes(world: World) {
        let body = json!({ "loginName": "ada", "firstName": "Ada", "nickname": "A", "isUserActive": false });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let one = world.path(&format!("/User/{}", id(&user)));
        let put = json!({ "id": id(&user), "lastName": "L", "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.put(&one, put).await.is(202).json();
        assert_eq!((&user["loginName"], &user["lastName"]), (&json!("ada"), &json!("L")));
        assert_eq!(user["firstName"], json!(null), "a missing member that can be empty becomes empty");
        assert_eq!(user["isUserActive"], json!(false), "no PUT reactivates by leaving out");

        let patch = json!({ "firstName": "Augusta", "lastName": null, "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.patch(&one, patch).await.is(202).json();
        assert_eq!((&user["firstName"], &user["lastName"]), (&json!("Augusta"), &json!("L")));

        let merge = json!({ "lastName": null, "concurrencyToken": user["concurrencyToken"] }).to_string().into_bytes();
        let merge_type = [("content-type", "application/merge-patch+json")];
        let user = world.admin.send(http::Method::PATCH, &one, &merge_type, merge).await.is(202).json();
        assert_eq!(user["lastName"], json!(null));
        let merge = json!({ "loginName": null, "concurrencyToken": user["concurrencyToken"] }).to_string().into_bytes();
        let answer = world.admin.send(http::Method::PATCH, &one, &merge_type, merge).await;
        assert_eq!(pointers(&answer.problem(400, "invalid-request")), ["/loginName"]);
    }

    async fn a_new_address_is_not_confirmed(world: World) {
        let body = json!({ "loginName": "ada", "emailAddress": "a@x.org", "emailAddressConfirmed": true,
            "phoneNumber": "+49 30 1", "phoneNumberConfirmed": true });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let one = world.path(&format!("/User/{}", id(&user)));
        let patch = json!({ "emailAddress": "b@x.org", "phoneNumber": "+49 30 2", "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.patch(&one, patch).await.is(202).json();
        assert_eq!((&user["emailAddressConfirmed"], &user["phoneNumberConfirmed"]), (&json!(false), &json!(false)));

        let email = format!("{one}/emailaddress");
        let body = json!({ "emailAddress": "c@x.org", "emailAddressConfirmed": true, "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.put(&email, body).await.is(202).json();
        assert_eq!((&user["emailAddress"], &user["emailAddressConfirmed"]), (&json!("c@x.org"), &json!(true)));
        assert_eq!(user["phoneNumber"], "+49 30 2", "nothing else changes");
        let body = json!({ "emailAddress": "d@x.org", "concurrencyToken": user["concurrencyToken"] });
        assert_eq!(world.admin.put(&email, body.clone()).await.is(202).json()["emailAddressConfirmed"], false);
        world.admin.put(&email, body).await.problem(409, "concurrency-conflict");
    }

    /// An absent address is not confirmed, with any body.
    async fn no_address_is_not_confirmed(world: World) {
        let body = json!({ "loginName": "ada", "emailAddressConfirmed": true, "phoneNumberConfirmed": true });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        assert_eq!((&user["emailAddressConfirmed"], &user["phoneNumberConfirmed"]), (&json!(false), &json!(false)));
        let one = world.path(&format!("/User/{}", id(&user)));
        let there = json!({ "emailAddress": "a@x.org", "emailAddressConfirmed": true, "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.patch(&one, there).await.is(202).json();
        assert_eq!(user["emailAddressConfirmed"], true);
        let gone = json!({ "emailAddress": null, "emailAddressConfirmed": true, "concurrencyToken": user["concurrencyToken"] });
        let user = world.admin.put(&format!("{one}/emailaddress"), gone).await.is(202).json();
        assert_eq!((&user["emailAddress"], &user["emailAddressConfirmed"]), (&json!(null), &json!(false)));
        let merge = json!({ "phoneNumber": null, "phoneNumberConfirmed": true, "concurrencyToken": user["concurrencyToken"] });
        let merge_type = [("content-type", "application/merge-patch+json")];
        let answer = world.admin.send(http::Method::PATCH, &one, &merge_type, merge.to_string().into_bytes()).await;
        assert_eq!(answer.is(202).json()["phoneNumberConfirmed"], false);
    }

    async fn values_out_of_bounds_are_all_named(world: World) {
        let body = json!({ "loginName": "x".repeat(257), "emailAddress": "nobody", "locale": "de_AT", "zoneinfo": "a b",
            "birthdate": "10.12.1815", "userValidFrom": "soon", "isUserActive": "yes", "phoneNumber": 7 });
        let problem = world.admin.post(&world.path("/User"), body).await.problem(400, "invalid-request");
        let mut named = pointers(&problem);
        named.sort_unstable();
        let expected = ["/birthdate", "/emailAddress", "/isUserActive", "/locale", "/loginName", "/phoneNumber", "/userValidFrom", "/zoneinfo"];
        assert_eq!(named, expected);
        let body = json!({ "loginName": "a", "userValidFrom": "2026-02-01T00:00:00Z", "userValidTo": "2026-01-01T00:00:00Z" });
        let problem = world.admin.post(&world.path("/User"), body).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/userValidTo"]);
    }

    async fn a_store_does_not_see_another_s_users(world: World) {
        world.other_store("other").await;
        let user = world.user("ada").await;
        let other = format!("/api/userstore/v2/other/administration/User/{}", id(&user));
        world.admin.get(&other).await.problem(404, "not-found");
        world.admin.delete(&other).await.problem(404, "not-found");
        // login names are unique per store
        world.admin.post("/api/userstore/v2/other/administration/User", json!({ "loginName": "ada" })).await.expect(201);
        assert_eq!(world.admin.get(&world.path("/User")).await.is(200).json().as_array().unwrap().len(), 1);
    }
}
