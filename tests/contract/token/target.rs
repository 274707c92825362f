//! Scope, audience and lifetime of tokens.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{app, assert_oauth_error, read, request_token, secret, token};

on_both_engines! {
    /// - Effect of `ClientApp.scopeFilterEnabled`: The app gets only the scopes that it lists.
    /// - Effect of `ClientAppScope.clientAppId`: The scope belongs to this app.
    /// - Effect of `ClientAppScope.key`: Requests name the scope by this key, and access tokens have it in `scope`.
    async fn scopes_are_limited_to_the_client_apps_own(world: World) {
        let owner = app(&world, "owner", json!({})).await;
        world.make("ClientAppScope", json!({ "clientAppId": owner["id"], "key": "other" })).await;
        let answer = request_token(&world, &owner, &secret(&world, &owner).await, &[("scope", "other")]).await.is(200);
        assert_eq!(answer.json()["scope"], "other");
        for (filtered, requested, granted) in [
            (false, "read write", Some("read write")),
            (false, "write other", Some("write")),
            (false, "other", None),
            (true, "read", Some("read")),
            (true, "read other", None),
            (true, "a  b", None),
        ] {
            let app = app(&world, &format!("{filtered} {}", requested.replace(' ', "-")), json!({ "scopeFilterEnabled": filtered })).await;
            let secret = secret(&world, &app).await;
            for key in ["read", "write"] {
                world.make("ClientAppScope", json!({ "clientAppId": app["id"], "key": key })).await;
            }
            let answer = request_token(&world, &app, &secret, &[("scope", requested)]).await;
            let Some(granted) = granted else {
                assert_oauth_error(answer, 400, "invalid_scope");
                continue;
            };
            let answer = answer.is(200);
            assert_eq!(answer.json()["scope"], granted);
            assert_eq!(read(&token(&answer)).1["scope"], granted);
            assert!(request_token(&world, &app, &secret, &[]).await.is(200).json().get("scope").is_none());
        }
    }

    /// - Effect of `ClientApp.resourceFilterEnabled`: The app gets tokens only for the resources that it lists.
    async fn resources_are_limited_to_the_subscription_or_the_app(world: World) {
        let open = app(&world, "open", json!({})).await;
        let open_secret = secret(&world, &open).await;
        let filtered = app(&world, "filtered", json!({ "resourceFilterEnabled": true })).await;
        let filtered_secret = secret(&world, &filtered).await;
        for (app, key) in [(&open, "urn:open"), (&filtered, "urn:filtered")] {
            world.make("ClientAppResource", json!({ "clientAppId": app["id"], "key": key })).await;
        }
        for (resource, of_open, of_filtered) in [
            ("urn:open", 200, 400),
            ("urn:filtered", 200, 200),
            ("urn:nobody", 400, 400),
            ("PlatformUserStoreService", 200, 200),
        ] {
            let resource_parameter = [("resource", resource)];
            let answer = request_token(&world, &open, &open_secret, &resource_parameter).await;
            assert_eq!(answer.status.as_u16(), of_open, "{resource}");
            let answer = request_token(&world, &filtered, &filtered_secret, &resource_parameter).await;
            assert_eq!(answer.status.as_u16(), of_filtered, "{resource}");
            if of_filtered == 200 {
                assert_eq!(read(&token(&answer)).1["aud"], json!([resource]));
            } else {
                assert_oauth_error(answer, 400, "invalid_target");
            }
        }
        let both = [("resource", "urn:open"), ("resource", "PlatformManagementService"), ("resource", "urn:open")];
        let answer = request_token(&world, &open, &open_secret, &both).await.is(200);
        assert_eq!(read(&token(&answer)).1["aud"], json!(["PlatformManagementService", "urn:open"]));
    }

    /// - Effect of `Tenant options.AccessTokenLifetime`: Access tokens are valid for this time.
    async fn the_tenant_sets_the_lifetime_of_tokens(world: World) {
        let own = app(&world, "own", json!({})).await;
        let secret = secret(&world, &own).await;
        let tenants = world.all("Tenant").await;
        let tenant = &tenants[0];
        let filter = crate::encode("name eq \"AccessTokenLifetime\"");
        let option = world.all(&format!("Option?filter={filter}")).await[0].clone();
        let body = json!({ "value": "00:10:00", "concurrencyToken": option["concurrencyToken"] });
        world.admin.patch(&format!("/api/management/v2/Option/{}", crate::id(&option)), body).await.expect(202);
        assert_eq!(request_token(&world, &own, &secret, &[]).await.is(200).json()["expires_in"], 3600);
        let relate = |tenant: &serde_json::Value| json!({ "relatedIds": [tenant["id"]] });
        let path = format!("/api/management/v2/ClientApp/{}/tenants", crate::id(&own));
        world.admin.post(&path, relate(tenant)).await.expect(202);
        let answer = request_token(&world, &own, &secret, &[]).await.is(200);
        assert_eq!(answer.json()["expires_in"], 600);
        let claims = read(&token(&answer)).1;
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 600);
        // with two tenants, neither decides
        let second = world.make("Tenant", json!({ "name": "second", "subscriptionId": own["subscriptionId"] })).await;
        world.admin.post(&path, relate(&second)).await.expect(202);
        assert_eq!(request_token(&world, &own, &secret, &[]).await.is(200).json()["expires_in"], 3600);
    }
}
