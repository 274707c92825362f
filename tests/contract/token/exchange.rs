//! A token in the place of another's (RFC 8693).

use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{USERS, app, ask, crown, post, read, refused, secret, token};
use crate::id;

const ACCESS: &str = "urn:ietf:params:oauth:token-type:access_token";

async fn exchange(world: &World, app: &Value, secret: &str, subject: &str, more: &[(&str, &str)]) -> Answer {
    let own = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("client_id", id(app)),
        ("client_secret", secret),
        ("subject_token", subject),
        ("subject_token_type", ACCESS),
    ];
    let all: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
    post(world, "/connect/token", &[], &all).await
}

async fn allow(world: &World, app: &Value, other: &Value) {
    let path = format!("/api/management/v2/ClientApp/{}/allowedtokenexchangeclientapps", id(app));
    world.admin.post(&path, json!({ "relatedIds": [other["id"]] })).await.expect(202);
}

on_both_engines! {
    async fn tokens_are_exchanged_by_those_who_may(world: World) {
        let (front, back) = (app(&world, "front", json!({})).await, app(&world, "back", json!({})).await);
        let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
        crown(&world, &front).await;
        for key in ["read", "write"] {
            world.make("ClientAppScope", json!({ "clientAppId": front["id"], "key": key })).await;
        }
        let more = [("scope", "read write"), ("resource", "PlatformUserStoreService")];
        let subject = token(&ask(&world, &front, &front_key, &more).await.is(200));
        refused(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "unauthorized_client");
        // not the other way round
        allow(&world, &back, &front).await;
        refused(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "unauthorized_client");
        allow(&world, &front, &back).await;
        let answer = exchange(&world, &back, &back_key, &subject, &[("scope", "read")]).await.is(200);
        let body = answer.json();
        assert_eq!((&body["issued_token_type"], &body["scope"]), (&json!(ACCESS), &json!("read")));
        let made = token(&answer);
        let claims = read(&made).1;
        assert_eq!((&claims["sub"], &claims["client_id"]), (&front["id"], &back["id"]));
        assert_eq!(claims["act"], json!({ "sub": back["id"] }));
        assert_eq!(claims["aud"], json!(["PlatformUserStoreService"]));
        assert!(claims["exp"].as_i64() <= read(&subject).1["exp"].as_i64());
        // it carries the rights of whose token it was
        let caller = world.anonymous.with_token(&made);
        caller.get(USERS).await.expect(200);
        caller.get("/api/management/v2/Customer").await.expect(401);
        for (more, error) in [
            ([("resource", "PlatformManagementService")], "invalid_target"),
            ([("audience", "urn:other")], "invalid_target"),
            ([("scope", "read other")], "invalid_scope"),
            ([("requested_token_type", "urn:ietf:params:oauth:token-type:id_token")], "invalid_request"),
            ([("actor_token", "x")], "invalid_request"),
        ] {
            refused(exchange(&world, &back, &back_key, &subject, &more).await, 400, error);
        }
        refused(exchange(&world, &back, &back_key, "nonsense", &[]).await, 400, "invalid_request");
        refused(exchange(&world, &back, "wrong", &subject, &[]).await, 401, "invalid_client");
        // once more: who acts for whom is kept
        allow(&world, &back, &front).await;
        let again = token(&exchange(&world, &front, &front_key, &made, &[]).await.is(200));
        assert_eq!(read(&again).1["act"], json!({ "sub": front["id"], "act": { "sub": back["id"] } }));
        // a revoked token is exchanged no more; nor does it count when who holds it is disabled
        let form = [("client_id", id(&front)), ("client_secret", front_key.as_str()), ("token", subject.as_str())];
        post(&world, "/connect/revoke", &[], &form).await.expect(200);
        refused(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "invalid_request");
        caller.get(USERS).await.expect(200);
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'back'", vec![])]).await;
        caller.get(USERS).await.expect(401);
    }

    async fn what_is_exchanged_is_filtered_as_what_is_asked_for(world: World) {
        let filters = json!({ "resourceFilterEnabled": true, "scopeFilterEnabled": true });
        let (front, back) = (app(&world, "front", json!({})).await, app(&world, "back", filters).await);
        let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
        allow(&world, &front, &back).await;
        for (owner, kind, key) in [
            (&front, "Scope", "read"), (&front, "Scope", "write"), (&back, "Scope", "read"),
            (&front, "Resource", "urn:orders"), (&back, "Resource", "urn:stock"),
        ] {
            world.make(&format!("ClientApp{kind}"), json!({ "clientAppId": owner["id"], "key": key })).await;
        }
        let subject = async |resources: &[&str]| {
            let resources = resources.iter().map(|resource| ("resource", *resource));
            let more: Vec<_> = [("scope", "read write")].into_iter().chain(resources).collect();
            token(&ask(&world, &front, &front_key, &more).await.is(200))
        };
        let orders = subject(&["urn:orders"]).await;
        refused(exchange(&world, &back, &back_key, &orders, &[]).await, 400, "invalid_target");
        let all = subject(&["urn:orders", "urn:stock", "PlatformUserStoreService"]).await;
        refused(exchange(&world, &back, &back_key, &all, &[("resource", "urn:orders")]).await, 400, "invalid_target");
        refused(exchange(&world, &back, &back_key, &all, &[("scope", "write")]).await, 400, "invalid_scope");
        let made = read(&token(&exchange(&world, &back, &back_key, &all, &[]).await.is(200))).1;
        assert_eq!(made["aud"], json!(["PlatformUserStoreService", "urn:stock"]));
        assert_eq!(made["scope"], "read");
    }
}
