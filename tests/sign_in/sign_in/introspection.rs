//! Introspection of the tokens of people.

use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{SignInApp, change, claims, external, form, parameter, relate};
use crate::{id, provider_trial::allow_loopback};

/// Sends a token to an endpoint at which the client app authenticates by its secret.
async fn send(world: &World, home: &SignInApp, path: &str, token: &Value) -> Answer {
    let fields = [
        ("token", token.as_str().unwrap()),
        ("client_id", id(&home.app)),
        ("client_secret", home.secret.as_str()),
    ];
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    world.anonymous.send(Method::POST, path, &headers, form(fields.into_iter()).into_bytes()).await
}

async fn introspected(world: &World, home: &SignInApp, token: &Value) -> Value {
    send(world, home, "/connect/introspect", token).await.is(200).json()
}

on_both_engines! {
    [allow_loopback]

    /// RFC 7662, section 2.2: while the identity provider may be used, the token of one of its people is active.
    async fn the_token_of_somebody_of_an_external_provider_is_active(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let (_, answer) = external::sign_in(&world, &home, &provider, &[]).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let info = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let info = info.get("/connect/userinfo").await.is(200).json();
        let response = introspected(&world, &home, &tokens["access_token"]).await;
        assert_eq!((&response["active"], &response["sub"]), (&json!(true), &info["sub"]), "{response}");
        assert!(response["username"].is_string(), "{response}");
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "isActive": false })).await;
        assert_eq!(introspected(&world, &home, &tokens["access_token"]).await, json!({ "active": false }));
    }

    /// A token exchange keeps the person of an external provider as subject, while the provider may be used.
    async fn the_token_of_somebody_of_an_external_provider_is_exchanged(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let issued = external::tokens(&world, &home, &provider, &[]).await;
        let other = world.make("ClientApp", json!({ "name": "Reports" })).await;
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": other["id"], "name": "s" })).await;
        relate(&world, &format!("/ClientApp/{}/allowedtokenexchangeclientapps", id(&home.app)), &[id(&other)]).await;
        let exchange = async |more: &[(&str, &str)]| {
            let fields = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("subject_token", issued["access_token"].as_str().unwrap()),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("client_id", id(&other)),
                ("client_secret", secret["secret"].as_str().unwrap()),
            ];
            world.anonymous.ask_for_token(&form(fields.into_iter().chain(more.iter().copied()))).await
        };
        let exchanged = exchange(&[]).await.is(200).json();
        let (before, after) = (claims(&issued["access_token"]), claims(&exchanged["access_token"]));
        for same in ["sub", "gid", "acr", "tid"] {
            assert_eq!(before[same], after[same], "{same}");
        }
        assert_eq!(after["act"]["sub"], other["id"]);
        let refused = exchange(&[("resource", "PlatformManagementService")]).await.is(400).json();
        assert_eq!(refused["error"], "invalid_target");
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "isActive": false })).await;
        assert_eq!(exchange(&[]).await.is(400).json()["error"], "invalid_request");
    }

    /// A cached token is compared with the current state.
    async fn a_revocation_takes_effect_immediately(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        for _ in 0..3 {
            assert_eq!(introspected(&world, &home, &tokens["access_token"]).await["active"], json!(true));
        }
        send(&world, &home, "/connect/revoke", &tokens["access_token"]).await.expect(200);
        assert_eq!(introspected(&world, &home, &tokens["access_token"]).await, json!({ "active": false }));
    }

    /// A cached secret is compared with the current state.
    async fn a_deleted_secret_introspects_nothing(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(introspected(&world, &home, &tokens["access_token"]).await["active"], json!(true));
        let secrets = world.all("ClientAppSecret").await;
        let own = secrets.as_array().unwrap().iter().find(|row| row["clientAppId"] == home.app["id"]).unwrap();
        world.admin.delete(&format!("/api/management/v2/ClientAppSecret/{}", id(own))).await.expect(204);
        send(&world, &home, "/connect/introspect", &tokens["access_token"]).await.expect(401);
    }
}
