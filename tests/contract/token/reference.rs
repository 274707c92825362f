//! Reference tokens, introspection and revocation.

use chancery_testkit::{Answer, World, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{USERS, app, assert_oauth_error, make_system_admin, post, request_token, secret, token};
use crate::id;

async fn endpoint(world: &World, path: &str, app: &Value, secret: &str, token: &str) -> Answer {
    post(world, path, &[], &[("client_id", id(app)), ("client_secret", secret), ("token", token)]).await
}

async fn introspect(world: &World, app: &Value, secret: &str, token: &str) -> Value {
    endpoint(world, "/connect/introspect", app, secret, token).await.is(200).json()
}

on_both_engines! {
    /// - Effect of `ClientApp.accessTokenType`: Access tokens are signed JWTs, or references that only introspection can read.
    async fn a_reference_token_is_opaque_and_usable(world: World) {
        let referring = app(&world, "referring", json!({ "accessTokenType": "Reference" })).await;
        let value = secret(&world, &referring).await;
        make_system_admin(&world, &referring).await;
        let token = token(&request_token(&world, &referring, &value, &[]).await.is(200));
        assert!(!token.contains('.') && token.len() == 43, "{token}");
        let caller = world.anonymous.with_token(&token);
        caller.get(USERS).await.expect(200);
        caller.get(USERS).await.expect(200);
        let other = if token.starts_with('A') { 'B' } else { 'A' };
        world.anonymous.with_token(&format!("{other}{}", &token[1..])).get(USERS).await.expect(401);
        let stored_claims = world.app.store.run("Test", chancery_store::Mode::Long, None, |tx| {
            let mut stored_claims = String::new();
            tx.query("SELECT claims FROM reference_token", &[], |row| {
                stored_claims.push_str(row.text(0)?);
                Ok(())
            })?;
            Ok::<_, chancery_store::Error>(stored_claims)
        });
        assert!(!stored_claims.await.unwrap().contains(&token));
        let introspection = introspect(&world, &referring, &value, &token).await;
        assert_eq!(
            (&introspection["active"], &introspection["client_id"], &introspection["sub"]),
            (&json!(true), &referring["id"], &referring["id"])
        );
        assert_eq!((&introspection["iss"], &introspection["token_type"]), (&json!(world.base), &json!("Bearer")));
        endpoint(&world, "/connect/revoke", &referring, &value, &token).await.expect(200);
        caller.get(USERS).await.problem(401, "unauthorized");
        assert_eq!(introspect(&world, &referring, &value, &token).await, json!({ "active": false }));
    }

    async fn a_revoked_token_is_rejected_at_once(world: World) {
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        make_system_admin(&world, &own).await;
        let one = token(&request_token(&world, &own, &value, &[]).await.is(200));
        let other = token(&request_token(&world, &own, &value, &[]).await.is(200));
        let caller = world.anonymous.with_token(&one);
        caller.get(USERS).await.expect(200);
        let foreign = app(&world, "foreign", json!({})).await;
        let key = secret(&world, &foreign).await;
        assert_oauth_error(endpoint(&world, "/connect/revoke", &foreign, &key, &one).await, 400, "invalid_grant");
        assert_oauth_error(endpoint(&world, "/connect/revoke", &own, "wrong", &one).await, 401, "invalid_client");
        caller.get(USERS).await.expect(200);
        endpoint(&world, "/connect/revoke", &own, &value, &one).await.expect(200);
        endpoint(&world, "/connect/revoke", &own, &value, &one).await.expect(200);
        endpoint(&world, "/connect/revoke", &own, &value, "nonsense").await.expect(200);
        let answer = endpoint(&world, "/connect/revoke", &own, &value, "").await;
        assert_oauth_error(answer, 400, "invalid_request");
        caller.get(USERS).await.problem(401, "unauthorized");
        assert_eq!(introspect(&world, &own, &value, &one).await, json!({ "active": false }));
        world.anonymous.with_token(&other).get(USERS).await.expect(200);
    }

    /// A9: revocations by a client without any role do not make other writes fail.
    async fn revocations_do_not_block_other_writes(world: World) {
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let mut tokens = Vec::new();
        for _ in 0..24 {
            tokens.push(token(&request_token(&world, &own, &value, &[]).await.is(200)));
        }
        let revoking = tokens.iter().map(|token| endpoint(&world, "/connect/revoke", &own, &value, token));
        let writing = (0..48).map(|number| world.admin.post(USERS, json!({ "loginName": format!("user{number}") })));
        let (revoked, written) = tokio::join!(join_all(revoking), join_all(writing));
        assert!(revoked.iter().all(|answer| answer.status == 200), "{revoked:?}");
        assert!(written.iter().all(|answer| answer.status == 201), "{written:?}");
    }

    async fn introspection_is_limited_to_authorized_clients(world: World) {
        let own = app(&world, "own", json!({})).await;
        let value = secret(&world, &own).await;
        let resource = app(&world, "resource", json!({ "allowClientCredentialLogin": false })).await;
        let key = secret(&world, &resource).await;
        world.make("ClientAppResource", json!({ "clientAppId": resource["id"], "key": "https://api.example.com" })).await;
        world.make("ClientAppScope", json!({ "clientAppId": own["id"], "key": "read" })).await;
        let more = [("resource", "https://api.example.com"), ("scope", "read")];
        let token = token(&request_token(&world, &own, &value, &more).await.is(200));
        world.anonymous.with_token(&token).get(USERS).await.expect(401);
        for (app, secret) in [(&own, &value), (&resource, &key)] {
            let introspection = introspect(&world, app, secret, &token).await;
            assert_eq!((&introspection["active"], &introspection["scope"]), (&json!(true), &json!("read")));
            assert_eq!(introspection["aud"], json!(["https://api.example.com"]));
        }
        let unrelated = app(&world, "stranger", json!({})).await;
        let other = secret(&world, &unrelated).await;
        assert_eq!(introspect(&world, &unrelated, &other, &token).await, json!({ "active": false }));
        // no client app of another subscription can have the same resource, but one that administers everything is
        // allowed
        let other_subscription = world.other_subscription("elsewhere").await;
        let far = app(&world, "far", json!({ "subscriptionId": other_subscription })).await;
        let far_key = secret(&world, &far).await;
        assert_eq!(introspect(&world, &far, &far_key, &token).await, json!({ "active": false }));
        make_system_admin(&world, &far).await;
        assert_eq!(introspect(&world, &far, &far_key, &token).await["active"], true);
        assert_oauth_error(endpoint(&world, "/connect/introspect", &own, "wrong", &token).await, 401, "invalid_client");
        post(&world, "/connect/introspect", &[], &[("token", token.as_str())]).await.expect(401);
        world.sql(vec![("UPDATE client_app SET enabled = FALSE WHERE name = 'own'", vec![])]).await;
        assert_eq!(introspect(&world, &resource, &key, &token).await, json!({ "active": false }));
    }
}
