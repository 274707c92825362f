//! Roles: who may grant them, the last administrator, and the effective permissions.

use chancery_record::{Timestamp, format_timestamp};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related};
use crate::{each, id, pointers, roles::assignment};

async fn app_named(world: &World, name: &str) -> Value {
    world.all(&format!("ClientApp?filter=name%20eq%20%22{name}%22")).await[0].clone()
}

on_both_engines! {
    async fn a_role_requires_its_target(world: World) {
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let (tenant, store) = (world.all("Tenant").await[0]["id"].clone(), world.all("IdpInstance").await[0]["id"].clone());
        let path = format!("{BASE}/ClientAppRole");
        for (role, tenant_id, instance_id, at) in [
            ("TenantAdmin", json!(null), json!(null), "/applyToTenantId"), ("TenantAdmin", tenant.clone(), store.clone(), "/applyToIdpInstanceId"),
            ("UserStoreAdmin", json!(null), json!(null), "/applyToIdpInstanceId"), ("SystemAdmin", tenant.clone(), json!(null), "/applyToTenantId"),
            ("ApplicationDataReader", tenant.clone(), store.clone(), "/applyToIdpInstanceId"), ("TenantAdmin", store.clone(), json!(null), "/applyToTenantId"),
        ] {
            let body = json!({ "clientAppId": app["id"], "roleType": role, "applyToTenantId": tenant_id, "applyToIdpInstanceId": instance_id });
            assert_eq!(pointers(&world.admin.post(&path, body).await.problem(400, "invalid-request")), [at], "{role}");
        }
        let body = json!({ "clientAppId": app["id"], "roleType": "TenantAdmin", "applyToTenantId": tenant });
        world.admin.post(&path, body.clone()).await.expect(201);
        assert_eq!(pointers(&world.admin.post(&path, body).await.problem(409, "conflict")), ["/roleType"]);
        assert_eq!(each(&world.all(&format!("ClientAppRole/clientapp/{}", id(&app))).await, "roleType"), ["TenantAdmin"]);
        let problem = world.admin.delete(&format!("{BASE}/Tenant/{}", tenant.as_str().unwrap())).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("role \"TenantAdmin\""), "{problem}");
    }

    /// Nobody grants roles that they do not hold, nor takes over a client app with broader roles.
    async fn nobody_grants_more_than_they_hold(world: World) {
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let mine = near.post(&format!("{BASE}/ClientApp"), json!({ "name": "mine" })).await.is(201).json();
        let path = format!("{BASE}/ClientAppRole");
        for role in ["SystemAdmin", "AuditTrailReader", "CustomerAdmin", "ApplicationDataReader"] {
            let body = json!({ "clientAppId": mine["id"], "roleType": role });
            assert_eq!(pointers(&near.post(&path, body).await.problem(403, "forbidden")), ["/roleType"], "{role}");
        }
        let own = near.post(&path, json!({ "clientAppId": mine["id"], "roleType": "SubscriptionAdmin" })).await.is(201).json();
        let more = json!({ "roleType": "SystemAdmin", "concurrencyToken": own["concurrencyToken"] });
        near.patch(&one("ClientAppRole", &own), more).await.problem(403, "forbidden");
        // the root client is in the same subscription: it can be read, not changed
        let root = app_named(&world, "root").await;
        near.get(&one("ClientApp", &root)).await.expect(200);
        for (resource, body) in [
            ("ClientAppSecret", json!({ "clientAppId": root["id"] })),
            ("ClientAppRole", json!({ "clientAppId": root["id"], "roleType": "UserAdmin" })),
            ("ClientAppAuthenticationConfiguration", json!({ "clientAppId": root["id"], "tokenEndpointAuthMethod": "client_secret_post" })),
            ("ClientAppKeySet", json!({ "clientAppId": root["id"], "use": "Signing", "jwksUri": "https://evil.example/jwks" })),
        ] {
            let problem = near.post(&format!("{BASE}/{resource}"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/clientAppId"], "{resource}");
        }
        near.patch(&one("ClientApp", &root), json!({ "enabled": false, "concurrencyToken": root["concurrencyToken"] })).await.problem(404, "not-found");
        near.delete(&one("ClientApp", &root)).await.problem(404, "not-found");
        let metadata = format!("{}/ClientAppMetadata", one("ClientApp", &root));
        near.post(&metadata, json!({ "key": "x", "value": "y" })).await.problem(404, "not-found");
    }

    /// A SubscriptionAdmin cannot take over a client app with a role outside of the subscription.
    async fn a_client_app_with_broader_roles_cannot_be_taken_over(world: World) {
        let far = world.other_store("far").await;
        let sister = world.make("Tenant", json!({
            "name": "Far", "subscriptionId": world.admin.get(&format!("{BASE}/IdpInstance/{far}")).await.is(200).json()["subscriptionId"],
        })).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let tenant: uuid::Uuid = id(&sister).parse().unwrap();
        for (name, role) in [
            ("store", ("UserStoreAdmin", None, Some(far))), ("tenant", ("TenantAdmin", Some(tenant), None)),
            ("reader", ("ApplicationDataReader", None, Some(far))),
        ] {
            world.client(name, &[role]).await;
            let app = app_named(&world, name).await;
            near.get(&one("ClientApp", &app)).await.expect(200);
            let problem = near.post(&format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": app["id"] })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/clientAppId"], "{name}");
            near.delete(&one("ClientApp", &app)).await.problem(404, "not-found");
        }
        // a client app with roles in the subscription only can be changed
        let own = world.all("Tenant").await.as_array().unwrap().iter().find(|one| one["id"] != sister["id"]).unwrap().clone();
        world.client("own", &[("TenantAdmin", Some(id(&own).parse().unwrap()), None)]).await;
        let app = app_named(&world, "own").await;
        near.post(&format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": app["id"] })).await.expect(201);
    }

    /// A reader of one tenant whose target is removed is a reader of everything.
    async fn a_role_without_a_target_applies_to_everything(world: World) {
        let tenant = world.all("Tenant").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "reads" })).await;
        let body = json!({ "clientAppId": app["id"], "roleType": "ApplicationDataReader" });
        let mut narrow = body.clone();
        narrow["applyToTenantId"] = tenant.clone();
        let role = world.make("ClientAppRole", narrow.clone()).await;
        let wide = json!({ "roleType": "ApplicationDataReader", "concurrencyToken": role["concurrencyToken"] });
        let wide = world.admin.put(&one("ClientAppRole", &role), wide).await.is(202).json();
        assert_eq!(wide["applyToTenantId"], json!(null));
        let path = format!("{BASE}/ClientAppRole");
        world.admin.post(&path, body).await.problem(409, "conflict");
        world.admin.post(&path, narrow).await.expect(201);
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        near.post(&format!("{BASE}/ClientAppSecret"), json!({ "clientAppId": app["id"] })).await.problem(400, "invalid-request");
    }

    /// The `ETag` of a read is valid for a write, also where the caller may change less than it sees.
    async fn the_etag_of_a_read_is_valid_for_a_write(world: World) {
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let store = world.all("IdpInstance").await[0].clone();
        let root = app_named(&world, "root").await;
        let relation = format!("{}/clientapps", one("IdpInstance", &store));
        world.admin.put(&relation, related(&[&root])).await.expect(202);
        let read = near.get(&one("IdpInstance", &store)).await.is(200);
        let (tag, before) = (read.header("etag").unwrap().to_owned(), read.json());
        assert_eq!(each(&before["clientApps"], "name"), ["root"]);
        let patch = json!({ "position": 7, "concurrencyToken": before["concurrencyToken"] }).to_string().into_bytes();
        let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
        let after = near.send(http::Method::PATCH, &one("IdpInstance", &store), &headers, patch).await.is(202).json();
        assert_eq!(after["clientApps"], before["clientApps"]);
    }

    /// A write that leaves no SystemAdmin able to get a token is refused.
    async fn the_last_system_admin_cannot_be_removed(world: World) {
        let root = app_named(&world, "root").await;
        let secret = world.all(&format!("ClientAppSecret/clientapp/{}", id(&root))).await[0].clone();
        let role = world.all(&format!("ClientAppRole/clientapp/{}", id(&root))).await[0].clone();
        let off = |member: &str| json!({ member: false, "concurrencyToken": root["concurrencyToken"] });
        world.admin.patch(&one("ClientApp", &root), off("enabled")).await.problem(409, "conflict");
        world.admin.patch(&one("ClientApp", &root), off("allowClientCredentialLogin")).await.problem(409, "conflict");
        world.admin.delete(&one("ClientApp", &root)).await.problem(409, "conflict");
        world.admin.delete(&one("ClientAppSecret", &secret)).await.problem(409, "conflict");
        let past = json!({ "expiry": "2020-01-01T00:00:00Z", "concurrencyToken": secret["concurrencyToken"] });
        world.admin.patch(&one("ClientAppSecret", &secret), past).await.problem(409, "conflict");
        // nor may it expire before another one is likely to exist; a year is enough
        for (milliseconds, status) in [(2_000, 409), (24 * 3_600_000, 409), (365 * 24 * 3_600_000, 202)] {
            let mut end = Vec::new();
            format_timestamp(Timestamp(chancery_web::now().0 + milliseconds), &mut end);
            let end = json!({ "expiry": String::from_utf8(end).unwrap(), "concurrencyToken": secret["concurrencyToken"] });
            world.admin.patch(&one("ClientAppSecret", &secret), end).await.expect(status);
        }
        world.admin.delete_with(&format!("{BASE}/ClientAppRole/batch"), json!([role["id"]])).await.problem(409, "conflict");
        let keys = json!({ "clientAppId": root["id"], "tokenEndpointAuthMethod": "private_key_jwt" });
        world.admin.post(&format!("{BASE}/ClientAppAuthenticationConfiguration"), keys).await.problem(409, "conflict");
        world.admin.get(&format!("{BASE}/Customer")).await.expect(200);
        // an encryption key does not authenticate
        let jwks = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
        let set = world.make("ClientAppKeySet", json!({ "clientAppId": root["id"], "use": "Encryption", "jwks": jwks })).await;
        let active = json!({ "status": "Active", "concurrencyToken": set["concurrencyToken"] });
        world.admin.patch(&one("ClientAppKeySet", &set), active).await.expect(202);
        let keys = json!({ "clientAppId": root["id"], "tokenEndpointAuthMethod": "private_key_jwt" });
        world.admin.post(&format!("{BASE}/ClientAppAuthenticationConfiguration"), keys).await.problem(409, "conflict");
        // this server gets no client certificates
        for more in [
            json!({ "tokenEndpointAuthMethod": "tls_client_auth", "tlsClientAuthSanDns": "x.example" }),
            json!({ "requireCertificateBoundAccessTokens": true }),
        ] {
            let mut body = json!({ "clientAppId": root["id"] });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            world.admin.post(&format!("{BASE}/ClientAppAuthenticationConfiguration"), body).await.problem(409, "conflict");
        }
        // with a second SystemAdmin it can be deleted
        let second = world.client("second", &[("SystemAdmin", None, None)]).await;
        second.delete(&one("ClientApp", &root)).await.expect(204);
        world.admin.get(&format!("{BASE}/Customer")).await.expect(401);
    }

    /// - Effect of `Group.parentGroups`: The members of the group are members of these groups, too.
    /// - Effect of `RoleAssignment.principalId`: This person or group holds the role.
    async fn roles_yield_effective_permissions(world: World) {
        let ada = world.user("ada").await;
        let (inner, outer) = (world.group("inner").await, world.group("outer").await);
        let groups = |group: &Value, what: &str| world.path(&format!("/Group/{}/{what}", id(group)));
        world.admin.post(&groups(&inner, "users"), json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        world.admin.post(&groups(&inner, "parentgroups"), json!({ "relatedIds": [outer["id"]] })).await.expect(202);
        for kind in ["User", "Group"] {
            world.admin.send(http::Method::POST, &world.path(&format!("/{kind}/synchronize")), &[], Vec::new()).await.expect(200);
        }
        let user = world.all("ApplicationUser").await[0].clone();
        let group = |name: &str| format!("ApplicationGroup?filter=name%20eq%20%22{name}%22");
        let outer = world.all(&group("outer")).await[0].clone();
        let inner = world.all(&group("inner")).await[0].clone();
        let tenant = world.all("Tenant").await[0].clone();
        let of_person = format!("EffectivePermissions/platformuser/{}", id(&user));
        let none = world.all(&of_person).await;
        assert_eq!((&none["scope"], &none["assignments"], &none["permissions"]), (&json!(null), &json!([]), &json!([])));
        let assign = async |kind: &str, principal: &Value, role: &str, more: Value| {
            let body = assignment(kind, principal, role, &more);
            world.admin.post(&format!("{BASE}/RoleAssignment"), body).await
        };
        assign("PlatformGroup", &outer, "TenantAdmin", json!({ "applyToTenantId": tenant["id"] })).await.expect(201);
        assign("PlatformUser", &user, "AuditTrailReader", json!({})).await.expect(201);
        assign("PlatformUser", &user, "AuditTrailReader", json!({})).await.problem(409, "conflict");
        assign("PlatformUser", &outer, "AuditTrailReader", json!({})).await.problem(400, "invalid-request");
        assign("PlatformUser", &user, "TenantAdmin", json!({})).await.problem(400, "invalid-request");
        let permissions = world.all(&of_person).await;
        assert_eq!((&permissions["scope"], &permissions["principalType"], &permissions["principalId"]), (&json!("System"), &json!("PlatformUser"), &user["id"]));
        assert_eq!(permissions["assignments"], json!([
            { "roleType": "AuditTrailReader", "source": "Direct", "sourceId": user["id"], "scopeType": "System", "scopeId": null },
            { "roleType": "TenantAdmin", "source": "Group", "sourceId": outer["id"], "scopeType": "Tenant", "scopeId": tenant["id"] },
        ]));
        let permissions: Vec<&str> = permissions["permissions"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        assert!(permissions.is_sorted() && permissions.contains(&"AuditTrail.Read") && permissions.contains(&"ClaimRule.Write"));
        assert!(!permissions.contains(&"Customer.Read") && !permissions.contains(&"User.Read"), "{permissions:?}");
        let of_group = world.all(&format!("EffectivePermissions/platformgroup/{}", id(&inner))).await;
        assert_eq!(each(&of_group["assignments"], "source"), ["Group"]);
        // a client app sees its own permissions, others by scope
        let low = world.client("low", &[("UserAdmin", None, None)]).await;
        let own_app = app_named(&world, "low").await;
        let path = format!("{BASE}/EffectivePermissions/clientapp/{}", id(&own_app));
        let permissions = low.get(&path).await.is(200).json();
        assert_eq!((&permissions["assignments"][0]["source"], &permissions["assignments"][0]["sourceId"], &permissions["scope"]), (&json!("ClientApp"), &own_app["id"], &json!("System")));
        let root = app_named(&world, "root").await;
        low.get(&format!("{BASE}/EffectivePermissions/clientapp/{}", id(&root))).await.problem(404, "not-found");
        low.get(&format!("{BASE}/{of_person}")).await.problem(404, "not-found");
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        near.get(&format!("{BASE}/{of_person}")).await.expect(200);
        let permissions = near.get(&path.replace(id(&own_app), id(&root))).await.is(200).json();
        assert!(permissions["permissions"].as_array().unwrap().len() > 60, "{permissions}");
    }

    async fn assignments_are_limited_to_the_caller_s_scope(world: World) {
        world.user("ada").await;
        world.admin.send(http::Method::POST, &world.path("/User/synchronize"), &[], Vec::new()).await.expect(200);
        let user = world.all("ApplicationUser").await[0]["id"].clone();
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let subscription = world.all("Subscription").await[0].clone();
        let path = format!("{BASE}/RoleAssignment");
        let body = |role: &str, member: &str, target: &Value| json!({ "principalType": "PlatformUser", "principalId": user, "roleType": role, member: target });
        near.post(&path, body("SubscriptionAdmin", "applyToSubscriptionId", &subscription["id"])).await.expect(201);
        assert_eq!(pointers(&near.post(&path, body("SystemAdmin", "applyToTenantId", &json!(null))).await.problem(403, "forbidden")), ["/roleType"]);
        near.post(&path, body("CustomerAdmin", "applyToCustomerId", &subscription["customerId"])).await.problem(403, "forbidden");
        let created = world.admin.post(&path, body("CustomerAdmin", "applyToCustomerId", &subscription["customerId"])).await.is(201).json();
        assert_eq!(each(&near.get(&path).await.is(200).json(), "roleType"), ["SubscriptionAdmin"]);
        near.delete(&one("RoleAssignment", &created)).await.problem(404, "not-found");
        world.admin.delete(&one("RoleAssignment", &created)).await.expect(204);
        // a TenantAdmin cannot change the administrators of an instance that is only assigned to the tenant
        let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
        world.admin.put(&format!("{}/tenants", one("IdpInstance", &store)), related(&[&tenant])).await.expect(202);
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let of_store = world.admin.post(&path, body("UserStoreAdmin", "applyToIdpInstanceId", &store["id"])).await.is(201).json();
        assert_eq!(each(&low.get(&path).await.is(200).json(), "roleType"), ["UserStoreAdmin"]);
        low.delete(&one("RoleAssignment", &of_store)).await.problem(404, "not-found");
        near.delete(&one("RoleAssignment", &of_store)).await.expect(204);
    }

    /// A UserStoreAdmin sees the effective permissions of the store's users.
    async fn user_store_admin_sees_permissions_of_the_store_s_users(world: World) {
        world.user("ada").await;
        world.admin.send(http::Method::POST, &world.path("/User/synchronize"), &[], Vec::new()).await.expect(200);
        let user = world.all("ApplicationUser").await[0]["id"].clone();
        let path = format!("{BASE}/EffectivePermissions/platformuser/{}", user.as_str().unwrap());
        let store = id(&world.all("IdpInstance").await[0]).parse().unwrap();
        let far = world.other_store("far").await;
        world.client("own", &[("UserStoreAdmin", None, Some(store))]).await.get(&path).await.expect(200);
        world.client("other", &[("UserStoreAdmin", None, Some(far))]).await.get(&path).await.problem(404, "not-found");
    }
}
