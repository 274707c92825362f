//! Client apps and their child resources.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related};
use crate::{each, id, pointers};

async fn app(world: &World, name: &str) -> Value {
    world.make("ClientApp", json!({ "name": name })).await
}

/// Sends a body that is refused; its error pointers.
async fn refused(world: &World, resource: &str, body: Value) -> Vec<String> {
    let problem = world.admin.post(&format!("{BASE}/{resource}"), body).await.problem(400, "invalid-request");
    pointers(&problem).into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    async fn crud_and_defaults(world: World) {
        let created = app(&world, "Shop").await;
        for (member, value) in [
            ("enabled", json!(true)), ("allowUserLogin", json!(true)), ("isPublic", json!(false)),
            ("accessTokenEncryptionEnabledOverride", json!(null)), ("accessGrantConsent", json!("Implicit")),
            ("logoutConsent", json!("Implicit")), ("allowedResponseTypes", json!("code")), ("accessTokenType", json!("Jwt")),
            ("securityProfile", json!("None")), ("subjectType", json!("Public")), ("clientAppAuthenticationConfiguration", json!(null)),
        ] {
            assert_eq!(created[member], value, "{member}");
        }
        for array in ["clientAppRedirectUris", "clientAppKeySets", "clientAppResources", "clientAppSecrets", "clientAppRequestUris",
            "clientAppFederatedIdentities", "metadata", "claimRules", "clientAppScopes", "authorizedPlatformUsers", "authorizedPlatformGroups",
            "allowedTokenExchangeClientApps", "tenants", "idpInstances", "mfaInstances"] {
            assert_eq!(created[array], json!([]), "{array}");
        }
        let path = one("ClientApp", &created);
        assert_eq!(world.admin.get(&path).await.is(200).json(), created);
        let patch = json!({ "subjectType": "pairwise", "allowedResponseTypes": "token code, none", "sectorIdentifierUri": "https://a.example/s", "concurrencyToken": created["concurrencyToken"] });
        let changed = world.admin.patch(&path, patch).await.is(202).json();
        assert_eq!((&changed["subjectType"], &changed["allowedResponseTypes"]), (&json!("Pairwise"), &json!("code token,none")));
        let put = json!({ "id": created["id"], "name": "Store", "concurrencyToken": changed["concurrencyToken"] });
        let changed = world.admin.put(&path, put).await.is(202).json();
        assert_eq!((&changed["sectorIdentifierUri"], &changed["enabled"], &changed["subscriptionId"]), (&json!(null), &json!(true), &created["subscriptionId"]));
        let batch = json!([{ "name": "A" }, { "name": "B" }]);
        let batch = world.admin.post(&format!("{BASE}/ClientApp/batch"), batch).await.is(200).json();
        let puts: Vec<Value> = batch.as_array().unwrap().iter().map(|app| {
            let mut app = app.clone();
            app["clientUri"] = json!("https://app.example");
            app
        }).collect();
        let batch = world.admin.put(&format!("{BASE}/ClientApp/batch"), json!(puts)).await.is(200).json();
        assert_eq!(each(&batch, "clientUri"), ["https://app.example"; 2]);
        world.admin.delete_with(&format!("{BASE}/ClientApp/batch"), json!(each(&batch, "id"))).await.expect(204);
        world.admin.delete(&path).await.expect(204);
    }

    async fn algorithms_and_response_types_are_validated(world: World) {
        for (more, at) in [
            (json!({ "allowedResponseTypes": "password" }), "/allowedResponseTypes"),
            (json!({ "idTokenEncryptedResponseEnc": "A128GCM" }), "/idTokenEncryptedResponseEnc"),
            (json!({ "idTokenEncryptedResponseAlg": "RSA1_5" }), "/idTokenEncryptedResponseAlg"),
            (json!({ "requestObjectSigningAlg": "none" }), "/requestObjectSigningAlg"),
            (json!({ "accessTokenType": "Opaque" }), "/accessTokenType"),
        ] {
            let mut body = json!({ "name": "x" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(refused(&world, "ClientApp", body).await, [at]);
        }
        let created = world.make("ClientApp", json!({ "name": "y", "userinfoEncryptedResponseAlg": "rsa-oaep-256" })).await;
        assert_eq!((&created["userinfoEncryptedResponseAlg"], &created["userinfoEncryptedResponseEnc"]), (&json!("RSA-OAEP-256"), &json!("A128CBC-HS256")));
    }

    /// A secret is returned when it is created, and never again.
    ///
    /// - Effect of `ClientAppSecret.name`: Lists show the secret under this name.
    async fn a_secret_is_shown_once(world: World) {
        let app = app(&world, "Shop").await;
        let created = world.make("ClientAppSecret", json!({ "clientAppId": app["id"], "name": "first" })).await;
        let secret = created["secret"].as_str().unwrap().to_owned();
        assert_eq!(secret.len(), 43);
        let path = one("ClientAppSecret", &created);
        assert_eq!(world.admin.get(&path).await.is(200).json()["secret"], json!(null));
        let other = json!({ "id": created["id"], "name": "renamed", "secret": "another one, quite long", "concurrencyToken": created["concurrencyToken"] });
        assert_eq!(pointers(&world.admin.put(&path, other).await.problem(400, "invalid-request")), ["/secret"]);
        let put = json!({ "id": created["id"], "name": "renamed", "expiry": "2030-01-01T00:00:00Z", "concurrencyToken": created["concurrencyToken"] });
        let changed = world.admin.put(&path, put).await.is(202).json();
        assert_eq!((&changed["secret"], &changed["name"], &changed["expiry"]), (&json!(null), &json!("renamed"), &json!("2030-01-01T00:00:00.000Z")));
        let own = "a secret of one's own making";
        let supplied = world.make("ClientAppSecret", json!({ "clientAppId": app["id"], "secret": own })).await;
        assert_eq!(supplied["secret"], own);
        let again = world.admin.post(&format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": app["id"], "secret": own })).await;
        assert_eq!(pointers(&again.problem(409, "conflict")), ["/secret"]);
        assert_eq!(refused(&world, "ClientAppSecret", json!({ "clientAppId": app["id"], "secret": "short" })).await, ["/secret"]);
        let batch = json!([{ "clientAppId": app["id"] }, { "clientAppId": app["id"] }]);
        let batch = world.admin.post(&format!("{BASE}/ClientAppSecret/batch"), batch).await.is(200).json();
        assert_ne!(batch[0]["secret"], batch[1]["secret"]);
        let listed = world.all(&format!("ClientAppSecret/clientapp/{}", id(&app))).await;
        assert_eq!(listed.as_array().unwrap().len(), 4);
        let everything = world.admin.get(&one("ClientApp", &app)).await.is(200).json();
        assert_eq!(everything["clientAppSecrets"].as_array().unwrap().len(), 4);
        let trail = world.all("CustomAuditTrail?sortOrder=descending&count=20").await.to_string();
        for body in [everything.to_string(), listed.to_string(), trail] {
            assert!(!body.contains(&secret) && !body.contains(own), "{body}");
        }
        world.admin.get(&format!("{BASE}/ClientAppSecret?sortBy=secret")).await.problem(400, "invalid-request");
        // its tokens are invalid once the client app is disabled
        let shop = world.client("acting", &[("SystemAdmin", None, None)]).await;
        shop.get(&format!("{BASE}/Customer")).await.expect(200);
        let acting = world.all("ClientApp?filter=name%20eq%20%22acting%22").await[0].clone();
        let off = json!({ "enabled": false, "concurrencyToken": acting["concurrencyToken"] });
        world.admin.patch(&one("ClientApp", &acting), off).await.expect(202);
        shop.get(&format!("{BASE}/Customer")).await.expect(401);
    }

    async fn scope_and_resource_keys_are_unique_per_client_app(world: World) {
        let (shop, other) = (app(&world, "Shop").await, app(&world, "Other").await);
        for resource in ["ClientAppScope", "ClientAppResource"] {
            let created = world.make(resource, json!({ "key": "orders", "clientAppId": shop["id"] })).await;
            assert_eq!(created["name"], "orders");
            let batch = json!([{ "key": "a", "clientAppId": shop["id"] }, { "key": "a", "clientAppId": other["id"] }]);
            world.admin.post(&format!("{BASE}/{resource}/batch"), batch).await.expect(200);
            let twice = json!([{ "key": "b", "clientAppId": shop["id"] }, { "key": "orders", "clientAppId": shop["id"] }]);
            let problem = world.admin.post(&format!("{BASE}/{resource}/batch"), twice).await.problem(409, "conflict");
            assert_eq!(pointers(&problem), ["/1/key"]);
            assert_eq!(each(&world.all(&format!("{resource}/clientapp/{}", id(&shop))).await, "key"), ["orders", "a"]);
            assert_eq!(refused(&world, resource, json!({ "key": "x" })).await, ["/clientAppId"]);
        }
        assert_eq!(refused(&world, "ClientAppScope", json!({ "key": "two words", "clientAppId": shop["id"] })).await, ["/key"]);
        world.admin.get(&format!("{BASE}/ClientAppScope/clientapp/{}", shop["subscriptionId"].as_str().unwrap())).await.problem(404, "not-found");
    }

    async fn redirect_and_request_uris_are_absolute_and_safe(world: World) {
        let shop = app(&world, "Shop").await;
        for uri in ["https://app.example/back", "http://localhost:5000/back", "http://127.0.0.1:5000/back", "http://[::1]:5000/back", "com.example.app:/back", "myapp://cb", "http://[::1]/"] {
            world.make("ClientAppRedirectUri", json!({ "uri": uri, "clientAppId": shop["id"] })).await;
        }
        for uri in ["back", "http://app.example/", "https://app.example/#x", "javascript:alert(1)", "about:blank", "ms-settings:x", "View-Source:https://app.example/", "https:///", "https://me@app.example/"] {
            assert_eq!(refused(&world, "ClientAppRedirectUri", json!({ "uri": uri, "clientAppId": shop["id"] })).await[0], "/uri", "{uri}");
        }
        let logout = json!({ "uri": "https://app.example/back", "redirectUriType": "Logout", "clientAppId": shop["id"] });
        world.make("ClientAppRedirectUri", logout.clone()).await;
        world.admin.post(&format!("{BASE}/ClientAppRedirectUri"), logout).await.problem(409, "conflict");
        let batch = json!([{ "uri": "https://app.example/1", "clientAppId": shop["id"] }]);
        let created = world.admin.post(&format!("{BASE}/ClientAppRequestUri/batch"), batch).await.is(200).json()[0].clone();
        let put = json!([{ "id": created["id"], "uri": "https://app.example/2", "concurrencyToken": created["concurrencyToken"] }]);
        let put = world.admin.put(&format!("{BASE}/ClientAppRequestUri/batch"), put).await.is(200).json()[0].clone();
        let patch = json!({ "uri": "https://app.example/3", "concurrencyToken": put["concurrencyToken"] });
        assert_eq!(world.admin.patch(&one("ClientAppRequestUri", &created), patch).await.is(202).json()["uri"], "https://app.example/3");
        world.admin.delete_with(&format!("{BASE}/ClientAppRequestUri/batch"), json!([created["id"]])).await.expect(204);
        assert_eq!(refused(&world, "ClientAppRequestUri", json!({ "uri": "http://app.example/", "clientAppId": shop["id"] })).await, ["/uri"]);
    }

    async fn a_client_app_has_one_authentication_configuration(world: World) {
        let shop = app(&world, "Shop").await;
        let created = world.make("ClientAppAuthenticationConfiguration", json!({ "clientAppId": shop["id"], "tokenEndpointAuthMethod": "client_secret_post" })).await;
        assert_eq!((&created["clientAppId"], &created["dpopBoundAccessTokens"], created.get("id")), (&shop["id"], &json!(false), None));
        let path = format!("{BASE}/ClientAppAuthenticationConfiguration/{}", id(&shop));
        world.admin.post(&format!("{BASE}/ClientAppAuthenticationConfiguration"), json!({ "clientAppId": shop["id"] })).await.problem(409, "conflict");
        assert_eq!(refused(&world, "ClientAppAuthenticationConfiguration", json!({})).await, ["/clientAppId"]);
        let patch = json!({ "dpopBoundAccessTokens": true, "concurrencyToken": created["concurrencyToken"] });
        let created = world.admin.patch(&path, patch).await.is(202).json();
        // an element of a batch is found by clientAppId or by its concurrencyToken
        let mut named = created.clone();
        named["requireDpopNonce"] = json!(true);
        let batch = format!("{BASE}/ClientAppAuthenticationConfiguration/batch");
        let created = world.admin.put(&batch, json!([named])).await.is(200).json()[0].clone();
        assert_eq!(created["requireDpopNonce"], true);
        let by_token = json!([{ "tokenEndpointAuthMethod": "client_secret_basic", "concurrencyToken": created["concurrencyToken"] }]);
        let created = world.admin.put(&batch, by_token).await.is(200).json()[0].clone();
        assert_eq!((&created["tokenEndpointAuthMethod"], &created["clientAppId"]), (&json!("client_secret_basic"), &shop["id"]));
        let problem = world.admin.put(&batch, json!([{ "concurrencyToken": "stale" }])).await.problem(409, "concurrency-conflict");
        assert_eq!(pointers(&problem), ["/0/concurrencyToken"]);
        let shown = world.admin.get(&one("ClientApp", &shop)).await.is(200).json();
        assert_eq!(shown["clientAppAuthenticationConfiguration"]["clientAppId"], shop["id"]);
        world.admin.delete_with(&batch, json!([shop["id"]])).await.expect(204);
        world.admin.get(&path).await.problem(404, "not-found");
        // a secret that is stored as a digest cannot sign
        world.make("ClientAppSecret", json!({ "clientAppId": shop["id"] })).await;
        let jwt = json!({ "clientAppId": shop["id"], "tokenEndpointAuthMethod": "client_secret_jwt" });
        world.admin.post(&format!("{BASE}/ClientAppAuthenticationConfiguration"), jwt).await.problem(409, "conflict");
    }

    async fn relations_are_added_set_and_removed(world: World) {
        let (shop, other) = (app(&world, "Shop").await, app(&world, "Other").await);
        let rule = world.make("ClaimRule", json!({ "name": "r", "ruleType": "Filter", "ruleLevel": "ClientApp" })).await;
        let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
        for (path, member, item) in [
            ("tenants", "tenants", &tenant), ("idpinstances", "idpInstances", &store), ("claimrules", "claimRules", &rule),
            ("allowedtokenexchangeclientapps", "allowedTokenExchangeClientApps", &other),
        ] {
            let path = format!("{}/{path}", one("ClientApp", &shop));
            let added = world.admin.post(&path, related(&[item])).await.is(202).json();
            assert_eq!(added[member][0]["id"], item["id"], "{member}");
            assert_eq!(world.admin.put(&path, json!({ "relatedIds": [] })).await.is(202).json()[member], json!([]));
            world.admin.put(&path, related(&[item])).await.expect(202);
            assert_eq!(world.admin.delete_with(&path, related(&[item])).await.is(202).json()[member], json!([]));
            world.admin.post(&path, json!({ "relatedIds": [shop["subscriptionId"]] })).await.problem(400, "invalid-request");
        }
    }

    /// Platform users and groups come from a synchronized store.
    async fn authorized_users_and_groups_are_linked(world: World) {
        let user = world.user("ada").await;
        world.group("readers").await;
        for kind in ["user", "group"] {
            let path = world.path(&format!("/{kind}/synchronize"));
            let path = if kind == "user" { path.replace("/user/", "/User/") } else { path.replace("/group/", "/Group/") };
            world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(200);
        }
        let shop = app(&world, "Shop").await;
        let (person, group) = (world.all("ApplicationUser").await[0].clone(), world.all("ApplicationGroup").await[0].clone());
        let path = format!("{}/authorizedusers", one("ClientApp", &shop));
        let set = world.admin.put(&path, related(&[&person])).await.is(202).json();
        assert_eq!(set["authorizedPlatformUsers"][0]["id"], person["id"]);
        let path = format!("{}/authorizedgroups", one("ClientApp", &shop));
        let set = world.admin.put(&path, related(&[&group])).await.is(202).json();
        assert_eq!(set["authorizedPlatformGroups"], json!([{ "id": group["id"], "name": "readers" }]));
        world.admin.post(&path, json!({ "relatedIds": [user["id"]] })).await.problem(400, "invalid-request");
    }

    /// - Effect of `ClientAppFederatedIdentity.clientAppId`: The federated identity belongs to this app.
    /// - Effect of `ClientAppRequestUri.clientAppId`: The request URI belongs to this app.
    async fn key_sets_and_other_children(world: World) {
        let shop = app(&world, "Shop").await;
        let jwks = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
        let created = world.make("ClientAppKeySet", json!({ "clientAppId": shop["id"], "use": "Signing", "jwks": jwks })).await;
        assert_eq!((&created["status"], &created["use"]), (&json!("Pending"), &json!("Signing")));
        let path = one("ClientAppKeySet", &created);
        let mut token = created["concurrencyToken"].clone();
        for (status, expected) in [("Retiring", 409), ("Active", 202), ("Pending", 409), ("Retiring", 202), ("Active", 409), ("Retired", 202), ("Active", 409), ("Revoked", 409)] {
            let answer = world.admin.patch(&path, json!({ "status": status, "concurrencyToken": token })).await.is(expected);
            if expected == 202 { token = answer.json()["concurrencyToken"].clone(); } else { assert_eq!(pointers(&answer.json()), ["/status"], "{status}"); }
        }
        let fresh = json!({ "clientAppId": shop["id"], "use": "Encryption" });
        assert_eq!(refused(&world, "ClientAppKeySet", fresh.clone()).await, ["/jwks"]);
        for (member, bad) in [
            ("jwks", json!("{}")), ("jwks", json!(r#"{"keys":[{"kty":"oct","k":"AA"}]}"#)), ("jwksUri", json!("http://app.example/jwks")),
            ("certificate", json!("AAAA")), ("kid", json!("another")), ("algorithm", json!("ES256")), ("algorithm", json!("banana")),
        ] {
            let mut body = fresh.clone();
            if matches!(member, "kid" | "algorithm") { body["jwks"] = json!(jwks); }
            body[member] = bad;
            assert_eq!(refused(&world, "ClientAppKeySet", body).await, [format!("/{member}")]);
        }
        for (purpose, algorithm) in [("Encryption", "ECDH-ES"), ("Signing", "ES256")] {
            let body = json!({ "clientAppId": shop["id"], "name": algorithm, "use": purpose, "algorithm": algorithm, "jwks": jwks });
            world.make("ClientAppKeySet", body).await;
        }
        // an old, invalid key set can still be revoked
        let old = world.make("ClientAppKeySet", json!({ "clientAppId": shop["id"], "name": "old", "use": "Signing", "status": "Active", "jwks": jwks })).await;
        world.sql(vec![("UPDATE client_app_key_set SET algorithm = 'banana', kid = 'none' WHERE name = 'old'", vec![])]).await;
        let patch = |member: &str, value: &str| json!({ member: value, "concurrencyToken": old["concurrencyToken"] });
        world.admin.patch(&one("ClientAppKeySet", &old), patch("algorithm", "apple")).await.problem(400, "invalid-request");
        world.admin.patch(&one("ClientAppKeySet", &old), patch("status", "Revoked")).await.expect(202);
        let symmetric = json!({ "clientAppId": shop["id"], "use": "Signing", "algorithm": "HS256", "jwks": jwks });
        assert_eq!(refused(&world, "ClientAppKeySet", symmetric).await, ["/algorithm"]);
        let mut window = fresh;
        window["jwksUri"] = json!("https://app.example/jwks");
        window["validFrom"] = json!("2027-01-01T00:00:00Z");
        window["validTo"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(refused(&world, "ClientAppKeySet", window).await, ["/validTo"]);
        let identity = json!({ "clientAppId": shop["id"], "name": "pipeline", "issuer": "https://ci.example", "subject": "repo:shop" });
        world.make("ClientAppFederatedIdentity", identity).await;
        let uri = json!({ "clientAppId": shop["id"], "uri": "https://shop.example/request.jwt" });
        world.make("ClientAppRequestUri", uri).await;
        let all = format!("{}/ClientAppMetadata", one("ClientApp", &shop));
        world.admin.post(&all, json!({ "key": "owner", "value": "sales" })).await.expect(201);
        let shown = world.admin.get(&one("ClientApp", &shop)).await.is(200).json();
        assert_eq!((&shown["metadata"][0]["value"], &shown["clientAppFederatedIdentities"][0]["subject"]), (&json!("sales"), &json!("repo:shop")));
        assert_eq!(each(&shown["clientAppRequestUris"], "uri"), ["https://shop.example/request.jwt"]);
        world.admin.delete(&one("ClientApp", &shop)).await.expect(204);
        world.admin.get(&path).await.problem(404, "not-found");
    }
}
