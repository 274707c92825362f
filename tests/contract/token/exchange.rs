//! Token exchange (RFC 8693).

use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{USERS, app, assert_oauth_error, make_system_admin, post, read, request_token, secret, token};
use crate::{
    id,
    signer::{Signer, fresh},
};

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
    /// - Effect of `ClientApp.allowedTokenExchangeClientApps`: These apps may exchange tokens of the app.
    async fn tokens_are_exchanged_by_allowed_client_apps(world: World) {
        let (front, back) = (app(&world, "front", json!({})).await, app(&world, "back", json!({})).await);
        let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
        make_system_admin(&world, &front).await;
        for key in ["read", "write"] {
            world.make("ClientAppScope", json!({ "clientAppId": front["id"], "key": key })).await;
        }
        let more = [("scope", "read write"), ("resource", "PlatformUserStoreService")];
        let subject = token(&request_token(&world, &front, &front_key, &more).await.is(200));
        assert_oauth_error(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "unauthorized_client");
        // not in the other direction
        allow(&world, &back, &front).await;
        assert_oauth_error(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "unauthorized_client");
        allow(&world, &front, &back).await;
        let answer = exchange(&world, &back, &back_key, &subject, &[("scope", "read")]).await.is(200);
        let body = answer.json();
        assert_eq!((&body["issued_token_type"], &body["scope"]), (&json!(ACCESS), &json!("read")));
        let exchanged = token(&answer);
        let claims = read(&exchanged).1;
        assert_eq!((&claims["sub"], &claims["client_id"]), (&front["id"], &back["id"]));
        assert_eq!(claims["act"], json!({ "sub": back["id"] }));
        assert_eq!(claims["aud"], json!(["PlatformUserStoreService"]));
        assert!(claims["exp"].as_i64() <= read(&subject).1["exp"].as_i64());
        // it carries the rights of the subject token
        let caller = world.anonymous.with_token(&exchanged);
        caller.get(USERS).await.expect(200);
        caller.get("/api/management/v2/Customer").await.expect(401);
        for (more, error) in [
            ([("resource", "PlatformManagementService")], "invalid_target"),
            ([("audience", "urn:other")], "invalid_target"),
            ([("scope", "read other")], "invalid_scope"),
            ([("requested_token_type", "urn:ietf:params:oauth:token-type:id_token")], "invalid_request"),
            ([("actor_token", "x")], "invalid_request"),
        ] {
            assert_oauth_error(exchange(&world, &back, &back_key, &subject, &more).await, 400, error);
        }
        assert_oauth_error(exchange(&world, &back, &back_key, "nonsense", &[]).await, 400, "invalid_request");
        assert_oauth_error(exchange(&world, &back, "wrong", &subject, &[]).await, 401, "invalid_client");
        // a second exchange: the chain of actors is kept
        allow(&world, &back, &front).await;
        let again = token(&exchange(&world, &front, &front_key, &exchanged, &[]).await.is(200));
        assert_eq!(read(&again).1["act"], json!({ "sub": front["id"], "act": { "sub": back["id"] } }));
        // a revoked token cannot be exchanged; nor is an exchanged token valid once its holder is disabled
        let form = [("client_id", id(&front)), ("client_secret", front_key.as_str()), ("token", subject.as_str())];
        post(&world, "/connect/revoke", &[], &form).await.expect(200);
        assert_oauth_error(exchange(&world, &back, &back_key, &subject, &[]).await, 400, "invalid_request");
        caller.get(USERS).await.expect(401);
        let subject = token(&request_token(&world, &front, &front_key, &[]).await.is(200));
        let caller = world.anonymous.with_token(&token(&exchange(&world, &back, &back_key, &subject, &[]).await.is(200)));
        caller.get(USERS).await.expect(200);
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'back'", vec![])]).await;
        caller.get(USERS).await.expect(401);
    }

    /// A13 and section 15: a token exchanged for a bound token needs the proof of its key, or is bound to the same key.
    async fn an_exchanged_token_inherits_the_binding(world: World) {
        let (front, back) = (app(&world, "front", json!({})).await, app(&world, "back", json!({})).await);
        let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
        make_system_admin(&world, &front).await;
        allow(&world, &front, &back).await;
        let (holder, other) = (Signer::new("holder"), Signer::new("other"));
        let url = format!("{}/connect/token", world.base);
        let own = [("grant_type", "client_credentials"), ("client_id", id(&front)), ("client_secret", front_key.as_str())];
        let proof = holder.prove("POST", &url, json!({}));
        let subject = token(&post(&world, "/connect/token", &[("dpop", &proof)], &own).await.is(200));
        // without the key: bound to it nevertheless
        let exchanged = token(&exchange(&world, &back, &back_key, &subject, &[]).await.is(200));
        assert_eq!(read(&exchanged).1["cnf"]["jkt"], holder.thumbprint());
        world.anonymous.with_token(&exchanged).get(USERS).await.expect(401);
        // with another key: rejected, with the same: accepted
        for (signer, status) in [(&other, 400), (&holder, 200)] {
            let proof = signer.prove("POST", &url, json!({}));
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("client_id", id(&back)),
                ("client_secret", back_key.as_str()),
                ("subject_token", subject.as_str()),
                ("subject_token_type", ACCESS),
            ];
            let answer = post(&world, "/connect/token", &[("dpop", &proof)], &form).await.is(status);
            if status == 200 {
                assert_eq!(answer.json()["token_type"], "DPoP");
                assert_eq!(read(&token(&answer)).1["cnf"]["jkt"], holder.thumbprint());
            }
        }
        // an unbound one stays unbound without a proof
        let free = token(&request_token(&world, &front, &front_key, &[]).await.is(200));
        assert!(read(&token(&exchange(&world, &back, &back_key, &free, &[]).await.is(200))).1.get("cnf").is_none());
    }

    /// Section 15: revoking a token revokes all tokens exchanged for it, signed or reference, at any depth.
    async fn revoking_a_token_revokes_all_exchanged_for_it(world: World) {
        for kind in ["Jwt", "Reference"] {
            let named = |name: &str| format!("{name} {kind}");
            let front = app(&world, &named("front"), json!({ "accessTokenType": kind })).await;
            let back = app(&world, &named("back"), json!({ "accessTokenType": kind })).await;
            let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
            make_system_admin(&world, &front).await;
            allow(&world, &front, &back).await;
            allow(&world, &back, &front).await;
            let subject = token(&request_token(&world, &front, &front_key, &[]).await.is(200));
            let sibling = token(&exchange(&world, &back, &back_key, &subject, &[]).await.is(200));
            let child = token(&exchange(&world, &back, &back_key, &subject, &[]).await.is(200));
            let grandchild = token(&exchange(&world, &front, &front_key, &child, &[]).await.is(200));
            let statuses = async || {
                let mut statuses = Vec::new();
                for token in [&subject, &sibling, &child, &grandchild] {
                    statuses.push(world.anonymous.with_token(token).get(USERS).await.status.as_u16());
                }
                statuses
            };
            assert_eq!(statuses().await, [200; 4], "{kind}");
            let revoke = async |app: &Value, key: &str, token: &str| {
                let form = [("client_id", id(app)), ("client_secret", key), ("token", token)];
                post(&world, "/connect/revoke", &[], &form).await.expect(200);
            };
            revoke(&back, &back_key, &child).await;
            assert_eq!(statuses().await, [200, 200, 401, 401], "{kind}");
            revoke(&front, &front_key, &subject).await;
            assert_eq!(statuses().await, [401; 4], "{kind}");
            assert_oauth_error(exchange(&world, &back, &back_key, &sibling, &[]).await, 400, "invalid_request");
        }
    }

    /// Section 15: the audit trail names subject and acting app.
    async fn the_audit_trail_names_subject_and_actor(world: World) {
        let (front, back) = (app(&world, "front", json!({})).await, app(&world, "back", json!({})).await);
        let (front_key, back_key) = (secret(&world, &front).await, secret(&world, &back).await);
        make_system_admin(&world, &front).await;
        allow(&world, &front, &back).await;
        let subject = token(&request_token(&world, &front, &front_key, &[]).await.is(200));
        let exchanged = token(&exchange(&world, &back, &back_key, &subject, &[]).await.is(200));
        for (token, user) in [(&subject, id(&front).to_owned()), (&exchanged, format!("{}|{}", id(&front), id(&back)))] {
            let body = json!({ "loginName": fresh() });
            world.anonymous.with_token(token).post(USERS, body).await.expect(201);
            assert_eq!(world.audit(1).await[0]["user"], user);
        }
    }

    async fn filters_apply_to_exchanged_tokens(world: World) {
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
            token(&request_token(&world, &front, &front_key, &more).await.is(200))
        };
        let orders = subject(&["urn:orders"]).await;
        assert_oauth_error(exchange(&world, &back, &back_key, &orders, &[]).await, 400, "invalid_target");
        let all = subject(&["urn:orders", "urn:stock", "PlatformUserStoreService"]).await;
        assert_oauth_error(exchange(&world, &back, &back_key, &all, &[("resource", "urn:orders")]).await, 400, "invalid_target");
        assert_oauth_error(exchange(&world, &back, &back_key, &all, &[("scope", "write")]).await, 400, "invalid_scope");
        let exchanged = read(&token(&exchange(&world, &back, &back_key, &all, &[]).await.is(200))).1;
        assert_eq!(exchanged["aud"], json!(["PlatformUserStoreService", "urn:stock"]));
        assert_eq!(exchanged["scope"], "read");
    }
}
