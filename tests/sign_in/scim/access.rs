//! Tokens: authentication, rights, reach and expiry.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{at, directory, error, group, ids, of_provider, one, operations, own, user};
use crate::{id, instance::set_option, pointers, roles::callers};

const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";
const RIGHTS: [&str; 4] = ["Read", "WriteUsers", "WriteGroups", "Delete"];

/// Every operation of a directory: method, path, the right that a token needs.
fn all_operations() -> Vec<(&'static str, String, &'static str)> {
    let mut all = vec![("POST", "/.search".to_owned(), "Read")];
    for document in ["/Schemas", "/ResourceTypes", "/Schemas/none", "/ResourceTypes/none"] {
        all.push(("GET", document.to_owned(), "Read"));
    }
    for (of, write_right) in [("/Users", "WriteUsers"), ("/Groups", "WriteGroups")] {
        all.extend([("GET", of.to_owned(), "Read"), ("POST", of.to_owned(), write_right)]);
        all.push(("POST", format!("{of}/.search"), "Read"));
        let one = format!("{of}/{UNKNOWN_ID}");
        for (method, right) in
            [("GET", "Read"), ("PUT", write_right), ("PATCH", write_right), ("DELETE", "Delete")]
        {
            all.push((method, one.clone(), right));
        }
    }
    all
}

async fn call(client: &chancery_testkit::Client, method: &str, path: &str) -> u16 {
    let body = if ["GET", "DELETE"].contains(&method) { Vec::new() } else { b"{}".to_vec() };
    let method = method.parse().unwrap();
    client.send(method, &at(path), &[("content-type", "application/scim+json")], body).await.status.as_u16()
}

on_both_engines! {
    /// Every operation rejects callers without its right, and accepts those with it, whatever the body is.
    ///
    /// - Effect of `ScimToken.rights`: The directory may do only what these rights allow.
    async fn every_operation_requires_its_right(world: World) {
        let partner = of_provider(&world, "partner").await.0;
        let (good, without_role, out_of_scope) = callers(&world).await;
        let (_, others) = directory(&world, json!({})).await;
        let mut tokens = Vec::new();
        for right in RIGHTS {
            tokens.push((right, directory(&world, json!({ "rights": [right] })).await.0));
        }
        let ended = world.admin.with_token(&others["token"].as_str().unwrap().to_lowercase());
        for (method, path, needed) in all_operations() {
            let what = format!("{method} {path}");
            for (client, status) in [(&world.anonymous, 401), (&partner, 401), (&ended, 401), (&without_role, 403), (&out_of_scope, 404)] {
                assert_eq!(call(client, method, &path).await, status, "{what}");
            }
            for role in ["AuditTrailReader", "TenantAdmin", "ApplicationDataReader"] {
                assert_eq!(call(&good[role], method, &path).await, 403, "{what}: {role}");
            }
            for role in ["UserStoreAdmin", "SubscriptionAdmin", "SystemAdmin"] {
                let status = call(&good[role], method, &path).await;
                assert!(![401, 403, 405].contains(&status) && status < 500, "{what}: {role} answered {status}");
            }
            for (right, client) in &tokens {
                let status = call(client, method, &path).await;
                let is_accepted = ![401, 403, 405].contains(&status) && status < 500;
                assert!(if *right == needed { is_accepted } else { status == 403 }, "{what}: {right} answered {status}");
            }
        }
        // each operation of a bulk request requires its own right
        for (method, path, needed) in all_operations() {
            if method == "GET" || path.ends_with(".search") {
                continue;
            }
            let body = json!({ "Operations": [{ "method": method, "path": path, "bulkId": "a", "data": {} }] });
            for (right, client) in &tokens {
                let response = client.post(&at("/Bulk"), body.clone()).await.is(200).json();
                let is_rejected = response["Operations"][0]["status"] == "403";
                assert_eq!(is_rejected, *right != needed, "{method} {path} of many: {right}, {response}");
            }
        }
    }

    /// - Effect of `ScimToken.expiresOn`: The token is refused from this time on.
    /// - Effect of `ScimToken.isActive`: The token is refused while this is not set.
    /// - Effect of `ScimToken.name`: Lists and audit entries show the token under this name.
    async fn a_token_is_shown_once(world: World) {
        let (client, created) = directory(&world, json!({})).await;
        let path = world.path(&format!("/ScimToken/{}", id(&created)));
        let row = world.admin.get(&path).await.is(200).json();
        assert_eq!((&row["token"], &row["hint"]), (&json!(null), &created["token"].as_str().unwrap()[..12].into()));
        assert_eq!(row["rights"], json!(["Read", "WriteUsers", "WriteGroups", "Delete"]));
        assert_eq!(row["name"], created["name"]);
        let trail = world.admin.get(&world.path("/CustomAuditTrail?count=5&sortOrder=descending")).await.is(200);
        assert!(!String::from_utf8_lossy(&trail.bytes).contains(created["token"].as_str().unwrap()));
        client.get(&at("/Users")).await.expect(200);
        crate::run_job(&world, "uses").await;
        assert!(world.admin.get(&path).await.is(200).json()["lastUsedOn"].is_string());
        let off = json!({ "isActive": false, "concurrencyToken": row["concurrencyToken"] });
        world.admin.patch(&path, off).await.expect(202);
        let rejected = client.get(&at("/Users")).await;
        error(&rejected, 401);
        assert!(rejected.header("www-authenticate").is_some());
        world.admin.delete(&path).await.expect(204);
        error(&client.get(&at("/Users")).await, 401);
        let late = json!({ "name": "late", "expiresOn": "2099-01-01T00:00:00Z" });
        assert_eq!(pointers(&world.admin.post(&world.path("/ScimToken"), late).await.problem(400, "invalid-request")), ["/expiresOn"]);
        let (past, _) = directory(&world, json!({ "expiresOn": "2020-01-01T00:00:00Z" })).await;
        error(&past.get(&at("/Users")).await, 401);
    }

    /// - Effect of `ScimToken.networks`: The token is refused from addresses outside these networks.
    async fn rights_and_networks_limit_a_token(world: World) {
        let (reader, _) = directory(&world, json!({ "rights": ["Read"] })).await;
        reader.get(&at("/Users")).await.expect(200);
        error(&reader.post(&at("/Users"), json!({ "userName": "x" })).await, 403);
        let (writer, _) = directory(&world, json!({ "rights": ["Read", "WriteUsers"] })).await;
        let created = user(&writer, "ada").await;
        error(&writer.delete(&one("Users", &created)).await, 403);
        error(&writer.post(&at("/Groups"), json!({ "displayName": "g" })).await, 403);
        let (far, _) = directory(&world, json!({ "networks": ["192.0.2.0/24"] })).await;
        error(&far.get(&at("/Users")).await, 401);
        let (near, _) = directory(&world, json!({ "networks": ["192.0.2.0/24", "127.0.0.0/8"] })).await;
        near.get(&at("/Users")).await.expect(200);
        let wrong = json!({ "name": "x", "networks": ["everywhere"], "rights": ["Everything"] });
        let problem = world.admin.post(&world.path("/ScimToken"), wrong).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/networks", "/rights"]);
        let token = |network| json!({ "name": network, "networks": [network] });
        for good in ["192.0.2.0/24", "192.0.2.1", "0.0.0.0/0", "2001:db8::/32", "::1/128"] {
            world.admin.post(&world.path("/ScimToken"), token(good)).await.expect(201);
        }
        for wrong in ["192.0.2.0/33", "192.0.2", "example.com", "::/129", "192.0.2.0/", "192.0.2.0/-1"] {
            let problem = world.admin.post(&world.path("/ScimToken"), token(wrong)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/networks"], "{wrong}");
        }
    }

    /// A client that may write and not read gets only the id and the version.
    async fn a_client_without_read_gets_only_id_and_version(world: World) {
        let (writer, _) = directory(&world, json!({ "rights": ["WriteUsers", "WriteGroups"], "reach": "All" })).await;
        let ada = world.admin.post(&world.path("/User"), json!({ "loginName": "ada", "phoneNumber": "+49 30 1" })).await.is(201).json();
        let staff = world.group("staff").await;
        let members = |answer: chancery_testkit::Answer| {
            let members = answer.json();
            assert!(answer.status.is_success(), "{members}");
            members.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        let title = operations(&json!([{ "op": "replace", "path": "title", "value": "Dr." }]));
        let name = operations(&json!([{ "op": "replace", "path": "externalId", "value": "x" }]));
        let (user, group) = (one("Users", &ada), one("Groups", &staff));
        for answer in [
            writer.patch(&user, title.clone()).await,
            writer.patch(&format!("{user}?attributes=userName,phoneNumbers"), title).await,
            writer.put(&user, json!({ "userName": "ada" })).await,
            writer.post(&at("/Users"), json!({ "userName": "bob" })).await,
            writer.post(&at("/Groups"), json!({ "displayName": "g" })).await,
        ] {
            assert_eq!(members(answer), "id meta schemas");
        }
        let answer = writer.patch(&group, name).await;
        assert!(answer.status.is_success() && !String::from_utf8_lossy(&answer.bytes).contains("staff"), "{answer:?}");
        error(&writer.get(&user).await, 403);
    }

    /// An idempotency key is rejected: a client that sends one relies on it.
    async fn idempotency_keys_are_rejected(world: World) {
        let client = own(&world).await;
        let body = |value: Value| value.to_string().into_bytes();
        let headers = [("content-type", "application/scim+json"), ("idempotency-key", "k")];
        let bulk = json!({ "Operations": [{ "method": "POST", "path": "/Users", "bulkId": "a", "data": { "userName": "ada" } }] });
        for (path, sent) in [("/Users", json!({ "userName": "ada" })), ("/Groups", json!({ "displayName": "ada" })), ("/Bulk", bulk)] {
            let answer = client.send(http::Method::POST, &at(path), &headers, body(sent)).await;
            let (word, detail) = error(&answer, 400);
            assert!(word == "invalidValue" && detail.contains("Idempotency-Key"), "{word} {detail}");
        }
        assert_eq!(client.get(&at("/Users")).await.is(200).json()["totalResults"], 0);
    }

    /// Two directories of one store do not see or change each other's resources.
    ///
    /// - Effect of `ScimToken.reach`: With `Owned` the directory sees only users and groups that it created itself.
    /// - Effect of `ScimToken.successorOf`: The token reaches the users and groups of the token that it replaces.
    async fn directories_do_not_see_each_other(world: World) {
        let (one_client, first) = directory(&world, json!({})).await;
        let two = own(&world).await;
        let (ada, bob) = (user(&one_client, "ada").await, user(&two, "bob").await);
        let team = group(&one_client, "team", &[&ada]).await;
        assert_eq!(ids(&two.get(&at("/Users")).await.is(200).json()), [id(&bob)]);
        assert_eq!(ids(&two.get(&at("/Groups")).await.is(200).json()), [""; 0]);
        let change = operations(&json!([{ "op": "replace", "path": "active", "value": false }]));
        for path in [one("Users", &ada), one("Groups", &team)] {
            error(&two.get(&path).await, 404);
            error(&two.patch(&path, change.clone()).await, if path.contains("Users") { 404 } else { 400 });
            error(&two.put(&path, json!({ "userName": "x", "displayName": "x" })).await, 404);
            error(&two.delete(&path).await, 404);
        }
        assert_eq!(error(&two.post(&at("/Users"), json!({ "userName": "Ada" })).await, 409).0, "uniqueness");
        let other = two.post(&at("/Users"), json!({ "userName": "x", "externalId": "same" })).await.is(201).json();
        one_client.post(&at("/Users"), json!({ "userName": "y", "externalId": "same" })).await.expect(201);
        error(&two.post(&at("/Users"), json!({ "userName": "z", "externalId": "same" })).await, 409);
        let theirs = group(&two, "theirs", &[]).await;
        let add = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": ada["id"] }] }]));
        error(&two.patch(&one("Groups", &theirs), add).await, 400);

        let (next, _) = directory(&world, json!({ "successorOf": first["id"] })).await;
        next.get(&one("Users", &ada)).await.expect(200);
        let token_row = world.admin.get(&world.path(&format!("/ScimToken/{}", id(&first)))).await.is(200).json();
        assert_eq!((&token_row["ownedUsers"], &token_row["ownedGroups"]), (&json!(2), &json!(1)));
        let (all, _) = directory(&world, json!({ "reach": "All" })).await;
        let visible = ids(&all.get(&at("/Users")).await.is(200).json());
        assert!(visible.contains(&id(&ada).to_owned()) && visible.contains(&id(&other).to_owned()) && visible.len() == 4, "{visible:?}");
        let by_hand = world.user("zoe").await;
        all.get(&one("Users", &by_hand)).await.expect(200);
    }

    /// - Effect of `OpenIdConnect options.ScimToken`: This token authenticates the provider's directory.
    async fn a_token_is_valid_only_at_its_instance(world: World) {
        let store = own(&world).await;
        let (provider, base) = of_provider(&world, "partner").await;
        error(&store.get(&format!("{base}/Users")).await, 401);
        error(&provider.get(&at("/Users")).await, 401);
        error(&provider.get("/api/scim/v2/nobody/Users").await, 401);
        error(&world.anonymous.get(&at("/Users")).await, 401);
        error(&world.anonymous.with_token("chscim_nobody").get(&at("/Users")).await, 401);
        provider.get(&format!("{base}/Users")).await.expect(200);
        // a client app that administers the store reaches all of it
        let created = user(&store, "ada").await;
        world.admin.get(&one("Users", &created)).await.expect(200);
        world.admin.post(&at("/Users"), json!({ "userName": "bob" })).await.expect(201);
        let without_roles = world.client("nobody", &[]).await;
        error(&without_roles.get(&at("/Users")).await, 403);
        // a new token of the provider ends the one before
        let path = "/api/management/v2/IdpInstance/partner/scim/token";
        world.admin.send(http::Method::POST, path, &[], Vec::new()).await.expect(204);
        error(&provider.get(&format!("{base}/Users")).await, 401);
    }

    /// - Effect of `OpenIdConnect options.ScimRateLimit`: The provider's directory may send this number of requests a second.
    async fn a_provider_s_directory_has_a_rate_limit(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        let is_rate_limited = async |times: usize| {
            for _ in 0..times {
                if client.get(&format!("{base}/Users")).await.status == 429 {
                    return true;
                }
            }
            false
        };
        assert!(!is_rate_limited(20).await);
        set_option(&world, &instance, "ScimRateLimit", "1").await;
        assert!(is_rate_limited(20).await);
    }

    /// - Effect of `UserStore options.ScimRateLimit`: A directory may send this number of requests a second.
    async fn a_token_has_a_rate_limit(world: World) {
        world.set_option("ScimRateLimit", "1").await;
        let client = own(&world).await;
        let mut limited = None;
        for _ in 0..10 {
            let answer = client.get(&at("/ServiceProviderConfig")).await;
            answer.expect(200);
            let answer = client.get(&at("/Users")).await;
            if answer.status == 429 {
                limited = Some(answer);
                break;
            }
        }
        let limited = limited.unwrap();
        error(&limited, 429);
        assert_eq!(limited.header("retry-after"), Some("1"));
    }

    /// A directory that could write administrators would be one itself.
    async fn administrators_cannot_be_provisioned(world: World) {
        let (client, _) = directory(&world, json!({ "reach": "All" })).await;
        let (ada, bob) = (user(&client, "ada").await, user(&client, "bob").await);
        let team = group(&client, "admins", &[&bob]).await;
        for path in ["User", "Group"] {
            world.admin.send(http::Method::POST, &world.path(&format!("/{path}/synchronize")), &[], Vec::new()).await.expect(200);
        }
        let people = world.all("ApplicationUser").await;
        let person = people.as_array().unwrap().iter().find(|one| one["identities"][0]["subject"] == ada["id"]).unwrap().clone();
        let groups = world.all("ApplicationGroup").await;
        let role = |of: &str, who: &serde_json::Value| json!({ "principalType": of, "principalId": who["id"], "roleType": "SystemAdmin" });
        world.make("RoleAssignment", role("PlatformUser", &person)).await;
        world.make("RoleAssignment", role("PlatformGroup", &groups[0])).await;
        for (who, operation) in [
            (&ada, json!({ "op": "replace", "path": "active", "value": false })),
            (&ada, json!({ "op": "replace", "path": "userName", "value": "eve" })),
            (&ada, json!({ "op": "replace", "path": "password", "value": "four lively grey herons" })),
            (&bob, json!({ "op": "replace", "path": "emails[type eq \"work\"].value", "value": "e@example.com" })),
        ] {
            error(&client.patch(&one("Users", who), operations(&json!([operation]))).await, 403);
        }
        client.patch(&one("Users", &ada), operations(&json!([{ "op": "replace", "path": "title", "value": "x" }]))).await.expect(200);
        error(&client.delete(&one("Users", &ada)).await, 403);
        let eve = user(&client, "eve").await;
        let add = operations(&json!([{ "op": "add", "path": "members", "value": [{ "value": eve["id"] }] }]));
        error(&client.patch(&one("Groups", &team), add).await, 403);
        let members = client.get(&one("Groups", &team)).await.is(200).json()["members"].as_array().unwrap().len();
        assert_eq!(members, 1);
        error(&client.delete(&one("Groups", &team)).await, 403);
    }

    /// A directory gets 404 while its instance is closed, and continues when it is open again.
    ///
    /// - Effect of `OpenIdConnect options.ScimEnabled`: The provider's directory may write people by SCIM.
    async fn a_closed_instance_is_not_found(world: World) {
        let (partner, base) = of_provider(&world, "partner").await;
        let store = own(&world).await;
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        let users = format!("{base}/Users");
        partner.get(&users).await.expect(200);
        for (name, value) in [("ScimEnabled", "false"), ("ScimEnabled", "true")] {
            set_option(&world, &instance, name, value).await;
            for _ in 0..2 {
                let answer = partner.get(&users).await;
                if value == "true" { answer.expect(200) } else { error(&answer, 404); }
            }
            error(&partner.get(&at("/Users")).await, 401);
            error(&store.get(&users).await, 401);
        }
        let path = format!("/api/management/v2/IdpInstance/{}", id(&instance));
        for (is_active, status) in [(false, 404), (true, 200)] {
            let now = world.admin.get(&path).await.is(200).json();
            let change = json!({ "isActive": is_active, "concurrencyToken": now["concurrencyToken"] });
            world.admin.patch(&path, change).await.expect(202);
            assert_eq!(partner.get(&users).await.status, status);
        }
    }
}
