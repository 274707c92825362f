//! Discovery, keys, answers, tokens, UserInfo.

use serde_json::{Value, json};

use super::{ISSUER, client, discovery, document, failing};
use crate::{
    Evidence, Kind, Proof, discovery_address, judge_answer, judge_discovery, judge_keys, judge_tokens,
    judge_user_info,
};

#[test]
fn every_wrong_discovery_document_is_told() {
    let with = |name: &str, value: Value| {
        let mut document = document();
        document[name] = value;
        document.to_string()
    };
    for (document, wrong, option) in [
        ("[]".to_owned(), "discovery", Some("Authority")),
        (with("issuer", json!("https://provider.example/")), "issuer", Some("Authority")),
        (with("issuer", Value::Null), "issuer", Some("Authority")),
        (with("token_endpoint", json!("http://provider.example/token")), "endpoints", Some("Authority")),
        (with("jwks_uri", Value::Null), "endpoints", Some("Authority")),
        (with("userinfo_endpoint", json!("ftp://provider.example")), "endpoints", Some("Authority")),
        (with("response_types_supported", json!(["id_token"])), "codeFlow", None),
        (with("code_challenge_methods_supported", json!(["plain"])), "pkce", None),
        (with("scopes_supported", json!(["profile"])), "scopes", Some("Authority")),
    ] {
        let (checks, _) = judge_discovery(document.as_bytes(), &client(Kind::OpenIdConnect));
        assert_eq!(failing(&checks), [wrong], "{document}");
        assert_eq!(checks.iter().find(|check| !check.passed).unwrap().option, option, "{document}");
    }
    let local = with("token_endpoint", json!("http://127.0.0.1:8080/token"));
    assert!(judge_discovery(local.as_bytes(), &client(Kind::OpenIdConnect)).1.is_some());
    assert_eq!(
        discovery_address("https://a.example/t/"),
        "https://a.example/t/.well-known/openid-configuration"
    );
}

/// Microsoft's document for everybody names an issuer for each organisation.
#[test]
fn microsoft_and_google_have_addresses_of_their_own() {
    let mut document = document();
    document["issuer"] = json!("https://login.microsoftonline.com/{tenantid}/v2.0");
    let text = document.to_string();
    assert_eq!(failing(&judge_discovery(text.as_bytes(), &client(Kind::Microsoft)).0), [""; 0]);
    assert_eq!(failing(&judge_discovery(text.as_bytes(), &client(Kind::Google)).0), ["issuer"]);
    for kind in Kind::ALL {
        assert_eq!((Kind::named(kind.name()), format!("{kind:?}").as_str()), (Some(kind), kind.name()));
    }
    assert_eq!(Kind::named("UserStore"), None);
}

#[test]
fn every_wrong_answer_is_told() {
    let judged = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        judge_answer(&pairs, &discovery())
    };
    let (checks, code) = judged(&[("code", "c"), ("state", "s"), ("iss", ISSUER)]);
    assert_eq!((failing(&checks).len(), code.as_deref()), (0, Some("c")));
    let foreign = "https://other.example";
    for (pairs, wrong, option) in [
        (&[("code", "c"), ("iss", foreign)][..], "answerIssuer", Some("Authority")),
        (&[("code", "c")], "answerIssuer", None),
        (&[("iss", ISSUER)], "answer", None),
        (&[("code", ""), ("iss", ISSUER)], "answer", None),
        (&[("code", "c"), ("code", "d"), ("iss", ISSUER)], "answer", None),
        (&[("error", "access_denied"), ("iss", ISSUER)], "answer", None),
        (&[("error", "invalid_scope"), ("code", "c"), ("iss", ISSUER)], "answer", Some("AdditionalScopes")),
        (&[("error", "invalid_target"), ("iss", ISSUER)], "answer", Some("RequestResources")),
        (&[("error", "unauthorized_client"), ("iss", ISSUER)], "answer", Some("ClientId")),
        (&[("error", "invalid_request"), ("iss", ISSUER)], "answer", Some("CallbackPath")),
    ] {
        let (checks, code) = judged(pairs);
        assert_eq!((failing(&checks), code), (vec![wrong], None), "{pairs:?}");
        assert_eq!(checks.iter().find(|check| !check.passed).unwrap().option, option, "{pairs:?}");
    }
    let said = judged(&[("error", "a\nb"), ("error_description", &"x".repeat(5_000)), ("iss", ISSUER)]).0;
    assert!(said[0].detail.contains("\"a b\"") && said[0].detail.len() < 500, "{}", said[0].detail);
}

#[test]
fn every_wrong_answer_of_the_token_endpoint_is_told() {
    let good = json!({ "id_token": "i", "access_token": "a", "token_type": "bearer" });
    let evidence = Evidence::IdToken { keys: String::new() };
    let (check, tokens) = judge_tokens(200, good.to_string().as_bytes(), (Proof::Basic, &evidence));
    assert!(check.passed && tokens.unwrap().id_token.as_deref() == Some("i"));
    let without = json!({ "access_token": "a", "token_type": "bearer" }).to_string();
    let (check, tokens) = judge_tokens(200, without.as_bytes(), (Proof::Basic, &Evidence::AccessToken));
    assert!(check.passed && tokens.unwrap().id_token.is_none());
    for (status, body, proof, option) in [
        (200, json!([]), Proof::Basic, Some("Authority")),
        (200, json!({ "access_token": "a", "token_type": "Bearer" }), Proof::Basic, None),
        (200, json!({ "id_token": "i", "token_type": "Bearer" }), Proof::Basic, None),
        (200, json!({ "id_token": "i", "access_token": "a", "token_type": "DPoP" }), Proof::Basic, None),
        (401, json!({ "error": "invalid_client" }), Proof::Basic, Some("ClientSecret")),
        (401, json!({ "error": "invalid_client" }), Proof::PrivateKey, Some("certStores")),
        (400, json!({ "error": "unauthorized_client" }), Proof::Post, Some("ClientId")),
        (400, json!({ "error": "invalid_grant" }), Proof::Post, Some("CallbackPath")),
        (400, json!({ "error": "invalid_target" }), Proof::Post, Some("RequestResources")),
        (500, json!({ "error": "server_error", "error_description": "later" }), Proof::Post, None),
    ] {
        let (check, tokens) = judge_tokens(status, body.to_string().as_bytes(), (proof, &evidence));
        assert!(!check.passed && tokens.is_none(), "{body}");
        assert_eq!((check.name, check.option), ("tokens", option), "{body}");
    }
}

#[test]
fn user_info_is_of_the_same_person() {
    let judged = |text: &str| {
        let (check, claims) = judge_user_info(text.as_bytes(), "ada");
        assert_eq!(check.passed, claims.is_some());
        check.passed
    };
    assert!(judged(r#"{"sub":"ada","email":"ada@example.com"}"#));
    for wrong in [r#"{"sub":"eve"}"#, "{}", "[]", "", r#"{"sub":"ada","sub":"ada"}"#] {
        assert!(!judged(wrong), "{wrong}");
    }
}

#[test]
fn keys_that_cannot_be_used_are_told() {
    let (check, keys) = judge_keys(br#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#);
    assert!(!check.passed && keys.is_empty());
    let set =
        br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    assert!(judge_keys(set).0.passed);
}
