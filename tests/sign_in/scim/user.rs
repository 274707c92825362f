//! Users: values that are written are read back, in SCIM and in version 2.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{ENTERPRISE, at, directory, error, of_provider, one, operations, own, user};
use crate::id;

on_both_engines! {
    async fn written_values_are_read_back(world: World) {
        let client = own(&world).await;
        let mut body = json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE], "userName": "ada", "externalId": "x-1",
            "name": { "givenName": "Ada", "familyName": "Lovelace" }, "title": "Countess", "locale": "en-GB",
            "emails": [{ "value": "home@example.com", "type": "home" }, { "value": "ada@example.com", "type": "work", "primary": true }],
            "phoneNumbers": [{ "value": "+44 20 123", "type": "mobile" }], "roles": [{ "value": "author" }], "unknown": 1,
        });
        body[ENTERPRISE] = json!({ "department": "Engines", "costCenter": "7" });
        let answer = client.post(&at("/Users"), body.clone()).await.is(201);
        let created = answer.json();
        assert_eq!(answer.header("location"), created["meta"]["location"].as_str());
        assert_eq!(answer.header("etag"), created["meta"]["version"].as_str());
        let read = client.get(&one("Users", &created)).await.is(200);
        assert_eq!(read.header("etag"), created["meta"]["version"].as_str());
        assert_eq!(read.json(), created);
        for name in ["userName", "externalId", "title", "locale", "emails", "roles", ENTERPRISE] {
            assert_eq!(created[name], body[name], "{name}");
        }
        assert_eq!(created["phoneNumbers"], json!([{ "value": "+44 20 123", "type": "mobile" }]));
        assert_eq!((&created["active"], &created["name"]["formatted"]), (&json!(true), &json!("Ada Lovelace")));
        assert!(created["meta"]["created"].is_string() && created["meta"]["lastModified"].is_string(), "{created}");

        let row = world.admin.get(&world.path(&format!("/User/{}", id(&created)))).await.is(200).json();
        assert_eq!((&row["loginName"], &row["emailAddress"], &row["phoneNumber"]), (&json!("ada"), &json!("ada@example.com"), &json!("+44 20 123")));
        assert_eq!((&row["externalUniqueIdentifier"], &row["emailAddressConfirmed"]), (&json!("x-1"), &json!(false)));
        let entries = world.admin.get(&world.path(&format!("/user/{}/UserProfile", id(&created)))).await.is(200).json();
        assert_eq!(entries.as_array().unwrap().len(), 3, "{entries}");
    }

    async fn a_put_replaces_and_a_patch_changes(world: World) {
        let client = own(&world).await;
        let created = client
            .post(&at("/Users"), json!({ "userName": "ada", "title": "Countess", "nickName": "A", "active": false }))
            .await
            .is(201)
            .json();
        let path = one("Users", &created);
        let put = client.put(&path, json!({ "userName": "ada", "nickName": "B" })).await.is(200).json();
        assert_eq!((&put["title"], &put["nickName"], &put["active"]), (&json!(null), &json!("B"), &json!(false)));
        let same = client.put(&path, json!({ "userName": "ada", "nickName": "B" })).await.is(200).json();
        assert_eq!(same["meta"]["version"], put["meta"]["version"], "nothing changed");
        let patch = operations(&json!([
            { "op": "Replace", "value": { "active": "True", "name.familyName": "King" } },
            { "op": "Add", "path": "emails[type eq \"work\"].value", "value": "a@example.com" },
            { "op": "remove", "path": "nickName" },
            { "op": "replace", "path": format!("{ENTERPRISE}:department"), "value": "Engines" },
        ]));
        let patched = client.patch(&path, patch).await.is(200).json();
        assert_eq!((&patched["active"], &patched["nickName"], &patched["name"]["familyName"]), (&json!(true), &json!(null), &json!("King")));
        assert_eq!(patched["emails"], json!([{ "value": "a@example.com", "type": "work", "primary": true }]));
        assert_eq!(patched[ENTERPRISE]["department"], "Engines");
        let version = patched["meta"]["version"].as_str().unwrap();
        let if_match = |tag: &str| [("if-match", tag.to_owned()), ("content-type", "application/json".to_owned())];
        for (tag, status) in [("W/\"stale\"", 412), (version, 200)] {
            let body = operations(&json!([{ "op": "replace", "path": "title", "value": "x" }])).to_string().into_bytes();
            let headers = if_match(tag);
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            client.send(http::Method::PATCH, &path, &headers, body).await.expect(status);
        }
        let now = client.get(&path).await.is(200).json()["meta"]["version"].as_str().unwrap().to_owned();
        for (tag, status) in [(version, 200), (&now, 304)] {
            client.send(http::Method::GET, &path, &[("if-none-match", tag)], Vec::new()).await.expect(status);
        }
    }

    async fn errors_use_scims_names(world: World) {
        let client = own(&world).await;
        let created = user(&client, "ada").await;
        let path = one("Users", &created);
        assert_eq!(error(&client.post(&at("/Users"), json!({ "userName": "ADA" })).await, 409).0, "uniqueness");
        let (word, detail) = error(&client.post(&at("/Users"), json!({ "userName": "bob", "emails": [{ "value": "no address" }] })).await, 400);
        assert!(word == "invalidValue" && detail.contains("/emails"), "{detail}");
        for (operation, word) in [
            (json!({ "op": "replace", "path": "nobody", "value": 1 }), "invalidPath"),
            (json!({ "op": "replace", "path": "id", "value": "x" }), "mutability"),
            (json!({ "op": "replace", "path": "ims[type eq \"x\"].value", "value": "y" }), ""),
            (json!({ "op": "replace", "path": "emails[value eq \"none\"]", "value": { "display": "x" } }), "noTarget"),
            (json!({ "op": "move", "path": "title" }), "invalidSyntax"),
        ] {
            let answer = client.patch(&path, operations(&json!([operation]))).await;
            if word.is_empty() { answer.expect(200) } else { assert_eq!(error(&answer, 400).0, word, "{operation}") }
        }
        error(&client.get(&at("/Users/7")).await, 404);
        error(&client.get(&at("/Nobody")).await, 404);
        error(&client.send(http::Method::POST, &at("/Users"), &[("content-type", "text/plain")], b"x".to_vec()).await, 415);
        let dry = client.post(&at("/Users?dryRun=true"), json!({ "userName": "carl" })).await.is(201).json();
        error(&client.get(&one("Users", &dry)).await, 404);
    }

    /// A password must obey the store's rules, and is never returned.
    async fn a_password_must_obey_the_stores_rules(world: World) {
        let client = own(&world).await;
        let body = json!({ "userName": "ada", "password": "four lively grey herons" });
        let created = client.post(&at("/Users"), body).await.is(201).json();
        assert!(!created.to_string().contains("herons"));
        let (word, detail) = error(&client.post(&at("/Users"), json!({ "userName": "bob", "password": "short" })).await, 400);
        assert!(word == "invalidValue" && detail.contains("password"), "{detail}");
        let list = client.get(&at("/Users?filter=userName%20eq%20%22bob%22")).await.is(200).json();
        assert_eq!(list["totalResults"], 0, "the user was not made without the password");
        let patch = operations(&json!([{ "op": "replace", "path": "password", "value": "nine quiet blue whales" }]));
        let changed = client.patch(&one("Users", &created), patch).await.is(200).json();
        assert_ne!(changed["meta"]["version"], created["meta"]["version"]);
        let verify = world.path("").replace("/administration", "/PublicAdmin/user/loginname/ada/password/change");
        let body = json!({ "oldPassword": "nine quiet blue whales", "newPassword": "six noisy red foxes" });
        world.anonymous.post(&verify, body).await.expect(200);
    }

    /// - Effect of `ScimToken.confirmsEmail`: Addresses that the directory writes count as confirmed.
    async fn a_directory_may_confirm_addresses(world: World) {
        let (client, _) = directory(&world, json!({ "confirmsEmail": true })).await;
        let created = client
            .post(&at("/Users"), json!({ "userName": "ada", "emails": [{ "value": "a@example.com" }] }))
            .await
            .is(201)
            .json();
        let path = world.path(&format!("/User/{}", id(&created)));
        assert_eq!(world.admin.get(&path).await.is(200).json()["emailAddressConfirmed"], true);
        let patch = operations(&json!([{ "op": "replace", "path": "emails[type eq \"work\"].value", "value": "b@example.com" }]));
        client.patch(&one("Users", &created), patch).await.expect(200);
        assert_eq!(world.admin.get(&path).await.is(200).json()["emailAddressConfirmed"], true);
    }

    async fn a_manager_must_be_a_known_user(world: World) {
        let client = own(&world).await;
        let (boss, created) = (user(&client, "boss").await, user(&client, "ada").await);
        let set = |value: serde_json::Value| operations(&json!([{ "op": "replace", "path": format!("{ENTERPRISE}:manager"), "value": value }]));
        let path = one("Users", &created);
        let updated = client.patch(&path, set(boss["id"].clone())).await.is(200).json();
        assert_eq!(updated[ENTERPRISE]["manager"]["value"], boss["id"]);
        assert_eq!(updated[ENTERPRISE]["manager"]["$ref"], boss["meta"]["location"]);
        let cleared = client.patch(&path, set(json!(""))).await.is(200).json();
        assert_eq!(cleared.get(ENTERPRISE), None);
        assert_eq!(error(&client.patch(&path, set(json!("0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f"))).await, 400).0, "invalidValue");
    }

    /// A person of an identity provider instance has one identity there, under the directory's id.
    async fn a_person_has_an_identity(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let body = json!({ "userName": "ada@example.com", "externalId": "oid-1", "name": { "givenName": "Ada" }, "title": "not kept" });
        let created = client.post(&format!("{base}/Users"), body).await.is(201).json();
        assert_eq!((&created["displayName"], created.get("title")), (&json!("Ada"), None));
        let path = format!("/api/management/v2/ApplicationUser/{}", id(&created));
        let row = world.admin.get(&path).await.is(200).json();
        assert_eq!((&row["firstName"], &row["identities"][0]["subject"]), (&json!("Ada"), &json!("oid-1")));
        let one = format!("{base}/Users/{}", id(&created));
        client.patch(&one, operations(&json!([{ "op": "replace", "path": "externalId", "value": "oid-2" }]))).await.expect(200);
        assert_eq!(world.admin.get(&path).await.is(200).json()["identities"][0]["subject"], "oid-2");
        error(&client.post(&format!("{base}/Users"), json!({ "userName": "ADA@example.com" })).await, 409);
        error(&client.post(&format!("{base}/Users"), json!({ "userName": "bob", "externalId": "oid-2" })).await, 409);
        client.delete(&one).await.expect(204);
        world.admin.get(&path).await.problem(404, "not-found");
        client.post(&format!("{base}/Users"), json!({ "userName": "ada@example.com", "externalId": "oid-2" })).await.expect(201);
    }

    /// Attributes that a store keeps as profile entries are part of the version, whoever writes them.
    async fn a_version_covers_all_of_a_user(world: World) {
        let client = own(&world).await;
        let mut body = json!({ "userName": "ada", "title": "0" });
        body[ENTERPRISE] = json!({ "department": "x" });
        let created = client.post(&at("/Users"), body).await.is(201).json();
        let path = one("Users", &created);
        let department = format!("{ENTERPRISE}:department");
        let send = |method: http::Method, header: &'static str, tag: String| {
            let body = operations(&json!([{ "op": "replace", "path": "title", "value": "stale" }])).to_string().into_bytes();
            let (client, path) = (client.clone(), path.clone());
            async move {
                let headers = [(header, tag.as_str()), ("content-type", "application/json")];
                let body = if method == http::Method::PATCH { body } else { Vec::new() };
                client.send(method, &path, &headers, body).await
            }
        };
        let mut version = created["meta"]["version"].as_str().unwrap().to_owned();
        for attribute in ["title", "displayName", "preferredLanguage", "userType", &department] {
            send(http::Method::GET, "if-none-match", version.clone()).await.expect(304);
            let patch = operations(&json!([{ "op": "replace", "path": attribute, "value": "new" }]));
            let now = client.patch(&path, patch).await.is(200);
            assert_eq!(now.header("etag"), now.json()["meta"]["version"].as_str());
            send(http::Method::GET, "if-none-match", version.clone()).await.expect(200);
            error(&send(http::Method::PATCH, "if-match", version.clone()).await, 412);
            error(&send(http::Method::DELETE, "if-match", version).await, 412);
            version = now.header("etag").unwrap().to_owned();
        }
        let entry = world.path(&format!("/user/{}/UserProfile/title", id(&created)));
        let entry_read = world.admin.get(&entry).await.is(200).json();
        let change = json!({ "key": "title", "value": "by hand", "concurrencyToken": entry_read["concurrencyToken"] });
        world.admin.put(&entry, change).await.expect(202);
        error(&send(http::Method::PATCH, "if-match", version).await, 412);
        let now = client.get(&path).await.is(200).json()["meta"]["version"].as_str().unwrap().to_owned();
        let list = client.get(&at("/Users")).await.is(200).json();
        assert_eq!(list["Resources"][0]["meta"]["version"], now);
        send(http::Method::PATCH, "if-match", now).await.expect(200);
        send(http::Method::DELETE, "if-match", "*".to_owned()).await.expect(204);
    }

    /// Of concurrent changes with the same version only one succeeds, though each writes other rows.
    async fn of_concurrent_changes_to_one_version_one_succeeds(world: World) {
        world.set_option("ScimRateLimit", "100000").await;
        let client = own(&world).await;
        let created = client.post(&at("/Users"), json!({ "userName": "ada", "title": "0" })).await.is(201).json();
        let path = one("Users", &created);
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (client, path) = (client.clone(), path.clone());
            let tag = created["meta"]["version"].as_str().unwrap().to_owned();
            tasks.spawn(async move {
                let attribute = ["title", "userType", "preferredLanguage", "nickName"][number % 4];
                let patch = operations(&json!([{ "op": "replace", "path": attribute, "value": format!("v{number}") }]));
                let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
                client.send(http::Method::PATCH, &path, &headers, patch.to_string().into_bytes()).await.status.as_u16()
            });
        }
        let mut answers = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            answers.push(ended.unwrap());
        }
        answers.sort_unstable();
        assert_eq!(answers, [200, 412, 412, 412, 412, 412, 412, 412]);
    }

    async fn a_pending_subject_is_a_conflict(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let user = world.user("ada").await;
        world.admin.send(http::Method::POST, &world.path("/User/synchronize"), &[], Vec::new()).await.expect(200);
        let people = world.all("ApplicationUser").await;
        let person = people.as_array().unwrap().iter().find(|one| one["identities"][0]["subject"] == user["id"]).unwrap();
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        world.make("identity-replacements", json!({ "platformUserId": person["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "waits", "reason": "moved", "requiredApprovals": 1 })).await;
        let users = format!("{base}/Users");
        assert_eq!(error(&client.post(&users, json!({ "userName": "bob", "externalId": "waits" })).await, 409).0, "uniqueness");
        let created = client.post(&users, json!({ "userName": "carl" })).await.is(201).json();
        let patch = operations(&json!([{ "op": "replace", "path": "externalId", "value": "waits" }]));
        error(&client.patch(&format!("{users}/{}", id(&created)), patch).await, 409);
    }

    async fn deviating_values_are_accepted(world: World) {
        let client = own(&world).await;
        let (partner, base) = of_provider(&world, "partner").await;
        for (number, (client, base)) in [(client, at("")), (partner, base)].into_iter().enumerate() {
            let users = format!("{base}/Users");
            let body = json!({ "userName": "ada", "emails": [{ "value": "a@example.com", "type": "work", "primary": "True" }],
                "roles": [{ "value": "reader", "primary": "true" }, { "display": "nothing" }] });
            let created = client.post(&users, body).await.is(201).json();
            let roles = if number == 0 { json!([{ "value": "reader", "primary": true }]) } else { json!(null) };
            assert_eq!((&created["emails"][0]["primary"], &created["roles"]), (&json!(true), &roles));
            let path = format!("{users}/{}", id(&created));
            for name in ["", "  "] {
                for of in ["userName", "USERNAME"] {
                    let patch = operations(&json!([{ "op": "replace", "path": of, "value": name }]));
                    assert_eq!(error(&client.patch(&path, patch).await, 400).0, "invalidValue");
                }
                assert_eq!(error(&client.put(&path, json!({ "userName": name })).await, 400).0, "invalidValue");
                assert_eq!(error(&client.post(&users, json!({ "userName": name })).await, 400).0, "invalidValue");
                assert_eq!(error(&client.post(&format!("{base}/Groups"), json!({ "displayName": name })).await, 400).0, "invalidValue");
            }
            assert_eq!(client.get(&path).await.is(200).json()["userName"], "ada");
            let remove = operations(&json!([{ "op": "remove", "path": "emails[primary eq \"True\"]" }]));
            assert_eq!(client.patch(&path, remove).await.is(200).json().get("emails"), None);
            let valueless = json!({ "userName": "ada", "emails": [{ "value": null, "type": "work", "primary": true }] });
            assert_eq!(client.put(&path, valueless).await.is(200).json().get("emails"), None);
        }
    }

    async fn profile_urls_must_be_web_addresses(world: World) {
        let client = own(&world).await;
        let created = user(&client, "ada").await;
        for (attribute, value) in [
            ("profileUrl", json!("javascript:alert(1)")), ("photos", json!([{ "value": "javascript:alert(1)", "type": "photo" }])),
            ("photos[type eq \"photo\"].value", json!("data:text/html,x")),
        ] {
            let patch = operations(&json!([{ "op": "add", "path": attribute, "value": value }]));
            let (word, detail) = error(&client.patch(&one("Users", &created), patch).await, 400);
            assert!(word == "invalidValue" && detail.contains("https://"), "{detail}");
        }
        let (partner, base) = of_provider(&world, "partner").await;
        let body = json!({ "userName": "bob", "photos": [{ "value": "javascript:alert(1)" }] });
        error(&partner.post(&format!("{base}/Users"), body).await, 400);
        let body = json!({ "userName": "bob", "profileUrl": "https://example.com/bob", "photos": [{ "value": "http://example.com/b.png" }] });
        client.post(&at("/Users"), body).await.expect(201);
    }

    /// A patch above the limits is rejected before anybody waits for it.
    async fn a_patch_above_the_limits_is_rejected(world: World) {
        let client = own(&world).await;
        let created = user(&client, "ada").await;
        let terms = (0..9).map(|number| format!("display co \"x{number}\"")).collect::<Vec<_>>().join(" or ");
        let element = |number: usize, length: usize| json!({ "value": format!("a{number}@example.com"), "display": "y".repeat(length) });
        let elements = |count: usize, length: usize| -> Vec<serde_json::Value> { (0..count).map(|number| element(number, length)).collect() };
        let add = |elements: Vec<serde_json::Value>| json!({ "op": "add", "path": "emails", "value": elements });
        for wrong in [
            json!([{ "op": "remove", "path": format!("emails[{terms}]") }]), json!([add(elements(60, 1)), add(elements(41, 1))]),
            json!([add(elements(2, 20_000))]),
        ] {
            let answer = client.patch(&one("Users", &created), operations(&wrong)).await;
            assert_eq!(error(&answer, 413).0, "");
            let of_many = json!({
                "Operations": [{ "method": "PATCH", "path": format!("/Users/{}", id(&created)), "data": operations(&wrong) }]
            });
            let response = client.post(&at("/Bulk"), of_many).await.is(200).json();
            assert_eq!(response["Operations"][0]["status"], "413", "{response}");
        }
        client.patch(&one("Users", &created), operations(&json!([add(elements(100, 1))]))).await.expect(200);
    }
}
