//! Signed responses of the UserInfo and introspection endpoints.

use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{PASSWORD, SignInApp, browser::Browser, change, claims, form, parameter};
use crate::id;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SIGNED: (&str, &str) = ("accept", "application/token-introspection+jwt");

/// The body of a response, and its media type.
fn body_and_type(answer: &Answer) -> (Value, String) {
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    (json!(text), answer.header("content-type").unwrap_or_default().to_owned())
}

/// The header of a JWT.
fn header(token: &Value) -> Value {
    let part = token.as_str().unwrap().split('.').next().unwrap();
    claims(&json!(format!("x.{part}.x")))
}

/// Whether the header contains the id of a published key.
async fn is_of_a_known_key(world: &World, token: &Value) -> bool {
    let keys = world.anonymous.get("/.well-known/jwks.json").await.is(200).json();
    keys["keys"].as_array().unwrap().iter().any(|key| key["kid"] == header(token)["kid"])
}

async fn introspect(world: &World, home: &SignInApp, token: &str, more: &[(&str, &str)]) -> Answer {
    let body = form(
        [("client_id", id(&home.app)), ("client_secret", home.secret.as_str()), ("token", token)].into_iter(),
    );
    let headers: Vec<(&str, &str)> = [FORM].into_iter().chain(more.iter().copied()).collect();
    world.anonymous.send(Method::POST, "/connect/introspect", &headers, body.into_bytes()).await
}

async fn tokens(world: &World, home: &SignInApp) -> Value {
    let (_, answer) = home.sign_in(world).await;
    home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json()
}

on_both_engines! {
    /// OpenID Connect Core 1.0, section 5.3.2: for the client app, signed with the key of ID tokens.
    async fn userinfo_is_signed_for_a_client_app_that_accepts_a_jwt(world: World) {
        let home = SignInApp::new(&world).await;
        let tokens = tokens(&world, &home).await;
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
        let userinfo_as = async |accept: &str| {
            let headers = [("authorization", bearer.as_str()), ("accept", accept)];
            world.anonymous.send(Method::GET, "/connect/userinfo", &headers, Vec::new()).await.is(200)
        };
        let (token, media_type) = body_and_type(&userinfo_as("application/jwt").await);
        assert_eq!(media_type, "application/jwt");
        let (signed, mut plain) = (claims(&token), userinfo_as("application/json").await.json());
        assert_eq!(signed["email"], json!("ann@example.com"));
        let more = json!({ "iss": claims(&tokens["id_token"])["iss"], "aud": home.app["id"] });
        plain.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(signed, plain);
        assert_eq!(header(&token), header(&tokens["id_token"]), "the key of ID tokens");
        assert!(is_of_a_known_key(&world, &token).await);
        for accept in ["*/*", "application/json, application/jwt"] {
            assert_eq!(userinfo_as(accept).await.header("content-type"), Some("application/json"), "{accept}");
        }
    }

    /// RFC 9701: for active and for inactive tokens, signed with the key of ID tokens.
    async fn introspection_is_signed_for_a_client_app_that_accepts_a_jwt(world: World) {
        let home = SignInApp::new(&world).await;
        let issued = tokens(&world, &home).await;
        let access = issued["access_token"].as_str().unwrap();
        for (shown, is_active) in [(access, true), ("nothing", false)] {
            let answer = introspect(&world, &home, shown, &[SIGNED]).await.is(200);
            let (token, media_type) = body_and_type(&answer);
            assert_eq!(media_type, "application/token-introspection+jwt");
            let (head, said) = (header(&token), claims(&token));
            assert_eq!(head["typ"], json!("token-introspection+jwt"));
            assert_eq!((&said["iss"], &said["aud"]), (&claims(&issued["id_token"])["iss"], &home.app["id"]));
            assert!(said["iat"].is_i64() && said.get("sub").is_none() && said.get("exp").is_none(), "{said}");
            assert_eq!(said["token_introspection"]["active"], json!(is_active));
            assert!(is_of_a_known_key(&world, &token).await);
            let plain = introspect(&world, &home, shown, &[]).await.is(200).json();
            assert_eq!(said["token_introspection"], plain);
        }
    }

    /// FAPI 2.0 Message Signing, section 5.5: independent of the Accept header.
    async fn introspection_is_always_signed_for_message_signing(world: World) {
        let home = SignInApp::new(&world).await;
        let issued = tokens(&world, &home).await;
        // the other requirements of the profile do not affect introspection
        let profile = "UPDATE client_app SET security_profile = 'Fapi2MessageSigning' WHERE name = 'Harbour Ledger'";
        world.sql(vec![(profile, Vec::new())]).await;
        let answer = introspect(&world, &home, issued["access_token"].as_str().unwrap(), &[]).await.is(200);
        let (token, media_type) = body_and_type(&answer);
        assert_eq!(media_type, "application/token-introspection+jwt");
        assert_eq!(header(&token)["typ"], json!("token-introspection+jwt"));
    }

    /// A response that cannot be encrypted as the client app requires is not sent for a refresh token either.
    async fn a_refresh_token_is_not_introspected_in_clear_where_encryption_is_set(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid offline_access")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let issued = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let refresh = issued["refresh_token"].as_str().unwrap();
        assert_eq!(introspect(&world, &home, refresh, &[]).await.is(200).json()["active"], json!(true));
        let signed = body_and_type(&introspect(&world, &home, refresh, &[SIGNED]).await.is(200)).0;
        assert_eq!(claims(&signed)["token_introspection"]["active"], json!(true));
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "introspectionEncryptedResponseAlg": "RSA-OAEP-256" })).await;
        let refused = introspect(&world, &home, refresh, &[]).await.is(400).json();
        assert_eq!(refused["error"], json!("unauthorized_client"), "{refused}");
    }
}
