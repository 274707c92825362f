//! Tokens that are bound to a key (RFC 9449).

use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{USERS, app, assert_oauth_error, configure, make_system_admin, post, read, secret, token};
use crate::{
    id,
    signer::{Signer, fresh},
};

async fn request_token(world: &World, app: &Value, secret: &str, proofs: &[&str]) -> Answer {
    let headers: Vec<(&str, &str)> = proofs.iter().map(|proof| ("dpop", *proof)).collect();
    let form = [("grant_type", "client_credentials"), ("client_id", id(app)), ("client_secret", secret)];
    post(world, "/connect/token", &headers, &form).await
}

async fn users(world: &World, authorization: &str, proofs: &[&str]) -> Answer {
    let mut headers = vec![("authorization", authorization)];
    headers.extend(proofs.iter().map(|proof| ("dpop", *proof)));
    world.anonymous.send(Method::GET, USERS, &headers, Vec::new()).await
}

#[track_caller]
fn challenged(answer: Answer, error: &str) {
    let challenge = answer.header("www-authenticate").unwrap().to_owned();
    assert!(
        challenge.starts_with("DPoP ") && challenge.contains(&format!("error=\"{error}\"")),
        "{challenge}"
    );
    answer.problem(401, "unauthorized");
}

on_both_engines! {
    /// - Effect of `ClientAppAuthenticationConfiguration.dpopBoundAccessTokens`: Access tokens of the app are valid only with a proof of
    ///   its DPoP key.
    async fn a_bound_token_is_usable_only_with_its_key(world: World) {
        let bound = app(&world, "bound", json!({})).await;
        let value = secret(&world, &bound).await;
        configure(&world, &bound, "client_secret_post", json!({ "dpopBoundAccessTokens": true })).await;
        make_system_admin(&world, &bound).await;
        let (own, thief) = (Signer::new(""), Signer::new(""));
        let endpoint = format!("{}/connect/token", world.base);
        assert_oauth_error(request_token(&world, &bound, &value, &[]).await, 400, "invalid_dpop_proof");
        let proof = own.prove("POST", &endpoint, json!({}));
        let answer = request_token(&world, &bound, &value, &[&proof]).await.is(200);
        assert_eq!(answer.json()["token_type"], "DPoP");
        let token = token(&answer);
        assert_eq!(read(&token).1["cnf"]["jkt"], own.thumbprint());
        // invalid proofs at the token endpoint
        assert_oauth_error(request_token(&world, &bound, &value, &[&proof]).await, 400, "invalid_dpop_proof");
        let valid = || own.prove("POST", &endpoint, json!({}));
        assert_oauth_error(request_token(&world, &bound, &value, &[&valid(), &valid()]).await, 400, "invalid_dpop_proof");
        for wrong in [
            own.prove("GET", &endpoint, json!({})),
            own.prove("POST", &world.base, json!({})),
            own.prove("POST", &endpoint, json!({ "iat": crate::signer::now() - 3600 })),
            own.sign(&json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": thief.jwk() }),
                &json!({ "jti": fresh(), "htm": "POST", "htu": endpoint, "iat": crate::signer::now() })),
            "x".to_owned(),
        ] {
            assert_oauth_error(request_token(&world, &bound, &value, &[&wrong]).await, 400, "invalid_dpop_proof");
        }
        // and at the services
        let url = format!("{}{USERS}", world.base);
        let scheme = format!("DPoP {token}");
        let proof = own.prove_with("GET", &url, &token);
        users(&world, &scheme, &[&proof]).await.expect(200);
        challenged(users(&world, &scheme, &[&proof]).await, "invalid_dpop_proof");
        challenged(users(&world, &format!("Bearer {token}"), &[]).await, "invalid_token");
        challenged(users(&world, &format!("Bearer {token}"), &[&own.prove_with("GET", &url, &token)]).await, "invalid_token");
        challenged(users(&world, &scheme, &[]).await, "invalid_dpop_proof");
        challenged(users(&world, &scheme, &[&thief.prove_with("GET", &url, &token)]).await, "invalid_token");
        challenged(users(&world, &scheme, &[&own.prove_with("GET", &url, "another")]).await, "invalid_dpop_proof");
        challenged(users(&world, &scheme, &[&own.prove("GET", &url, json!({}))]).await, "invalid_dpop_proof");
        challenged(users(&world, &scheme, &[&own.prove_with("POST", &url, &token)]).await, "invalid_dpop_proof");
        // a change of rights during the request does not consume the proof twice
        world.make("Customer", json!({ "name": "another" })).await;
        world.client("other", &[]).await;
        users(&world, &scheme, &[&own.prove_with("GET", &format!("{url}?count=1"), &token)]).await.expect(200);
        let free = super::request_token(&world, &app(&world, "free", json!({})).await, "x", &[]).await;
        free.expect(401);
    }

    async fn an_optional_proof_binds_and_unbound_tokens_are_bearer_tokens(world: World) {
        let free = app(&world, "free", json!({})).await;
        let value = secret(&world, &free).await;
        make_system_admin(&world, &free).await;
        let own = Signer::new("");
        let proof = own.prove("POST", &format!("{}/connect/token", world.base), json!({}));
        assert_eq!(request_token(&world, &free, &value, &[&proof]).await.is(200).json()["token_type"], "DPoP");
        let unbound = token(&request_token(&world, &free, &value, &[]).await.is(200));
        let proof = own.prove_with("GET", &format!("{}{USERS}", world.base), &unbound);
        challenged(users(&world, &format!("DPoP {unbound}"), &[&proof]).await, "invalid_token");
        users(&world, &format!("Bearer {unbound}"), &[]).await.expect(200);
    }

    /// A nonce is required as soon as it is configured, also for cached tokens.
    async fn a_required_nonce_takes_effect_at_once(world: World) {
        let bound = app(&world, "bound", json!({})).await;
        let value = secret(&world, &bound).await;
        configure(&world, &bound, "client_secret_post", json!({ "dpopBoundAccessTokens": true })).await;
        make_system_admin(&world, &bound).await;
        let own = Signer::new("");
        let endpoint = format!("{}/connect/token", world.base);
        let token = token(&request_token(&world, &bound, &value, &[&own.prove("POST", &endpoint, json!({}))]).await.is(200));
        let (url, scheme) = (format!("{}{USERS}", world.base), format!("DPoP {token}"));
        users(&world, &scheme, &[&own.prove_with("GET", &url, &token)]).await.expect(200);
        let requires = "UPDATE client_app_authentication_configuration SET require_dpop_nonce = TRUE";
        world.sql(vec![(requires, Vec::new())]).await;
        let answer = users(&world, &scheme, &[&own.prove_with("GET", &url, &token)]).await;
        let nonce = answer.header("dpop-nonce").unwrap_or_default().to_owned();
        challenged(answer, "use_dpop_nonce");
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, token.as_bytes());
        let more = json!({ "nonce": nonce, "ath": crate::signer::encode(hash.as_ref()) });
        users(&world, &scheme, &[&own.prove("GET", &url, more)]).await.expect(200);
    }

    async fn a_nonce_can_be_required(world: World) {
        let bound = app(&world, "bound", json!({})).await;
        let value = secret(&world, &bound).await;
        let members = json!({ "dpopBoundAccessTokens": true, "requireDpopNonce": true });
        configure(&world, &bound, "client_secret_post", members).await;
        make_system_admin(&world, &bound).await;
        let own = Signer::new("");
        let endpoint = format!("{}/connect/token", world.base);
        let answer = request_token(&world, &bound, &value, &[&own.prove("POST", &endpoint, json!({}))]).await.is(400);
        assert_eq!(answer.json()["error"], "use_dpop_nonce");
        let nonce = answer.header("dpop-nonce").unwrap().to_owned();
        let wrong = own.prove("POST", &endpoint, json!({ "nonce": "made up" }));
        assert_oauth_error(request_token(&world, &bound, &value, &[&wrong]).await, 400, "use_dpop_nonce");
        let answer = request_token(&world, &bound, &value, &[&own.prove("POST", &endpoint, json!({ "nonce": nonce }))]).await.is(200);
        assert_eq!(answer.header("dpop-nonce"), Some(nonce.as_str()));
        let token = token(&answer);
        let (url, scheme) = (format!("{}{USERS}", world.base), format!("DPoP {token}"));
        let answer = users(&world, &scheme, &[&own.prove_with("GET", &url, &token)]).await;
        assert_eq!(answer.header("dpop-nonce"), Some(nonce.as_str()));
        challenged(answer, "use_dpop_nonce");
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, token.as_bytes());
        let more = json!({ "nonce": nonce, "ath": crate::signer::encode(hash.as_ref()) });
        users(&world, &scheme, &[&own.prove("GET", &url, more)]).await.expect(200);
    }
}
