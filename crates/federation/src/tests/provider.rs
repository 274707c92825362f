//! Discovery, keys, the callback, tokens, UserInfo.

use serde_json::{Value, json};

use super::{ISSUER, client, discovery, document, failing};
use crate::{
    ClientAuthMethod, IdentitySource, ProviderKind, check_callback, check_discovery, check_keys,
    check_token_response, check_user_info, discovery_url,
};

#[test]
fn each_fault_of_a_discovery_document_is_reported() {
    let with = |name: &str, value: Value| {
        let mut document = document();
        document[name] = value;
        document.to_string()
    };
    for (document, failed, option) in [
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
        let (checks, _) = check_discovery(document.as_bytes(), &client(ProviderKind::OpenIdConnect));
        assert_eq!(failing(&checks), [failed], "{document}");
        assert_eq!(checks.iter().find(|check| !check.passed).unwrap().option, option, "{document}");
    }
    let local = with("token_endpoint", json!("http://127.0.0.1:8080/token"));
    assert!(check_discovery(local.as_bytes(), &client(ProviderKind::OpenIdConnect)).1.is_some());
    assert_eq!(discovery_url("https://a.example/t/"), "https://a.example/t/.well-known/openid-configuration");
}

/// Microsoft's document for all organisations names an issuer with a placeholder.
#[test]
fn microsoft_and_google_have_fixed_issuers() {
    let mut document = document();
    document["issuer"] = json!("https://login.microsoftonline.com/{tenantid}/v2.0");
    let text = document.to_string();
    assert_eq!(failing(&check_discovery(text.as_bytes(), &client(ProviderKind::Microsoft)).0), [""; 0]);
    assert_eq!(failing(&check_discovery(text.as_bytes(), &client(ProviderKind::Google)).0), ["issuer"]);
    for kind in ProviderKind::ALL {
        assert_eq!(
            (ProviderKind::named(kind.name()), format!("{kind:?}").as_str()),
            (Some(kind), kind.name())
        );
    }
    assert_eq!(ProviderKind::named("UserStore"), None);
}

#[test]
fn each_fault_of_an_authorization_response_is_reported() {
    let validate = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_callback(&pairs, &discovery())
    };
    let (checks, code) = validate(&[("code", "c"), ("state", "s"), ("iss", ISSUER)]);
    assert_eq!((failing(&checks).len(), code.as_deref()), (0, Some("c")));
    let foreign = "https://other.example";
    for (pairs, failed, option) in [
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
        let (checks, code) = validate(pairs);
        assert_eq!((failing(&checks), code), (vec![failed], None), "{pairs:?}");
        assert_eq!(checks.iter().find(|check| !check.passed).unwrap().option, option, "{pairs:?}");
    }
    let checks = validate(&[("error", "a\nb"), ("error_description", &"x".repeat(5_000)), ("iss", ISSUER)]).0;
    assert!(checks[0].detail.contains("\"a b\"") && checks[0].detail.len() < 500, "{}", checks[0].detail);
}

#[test]
fn each_fault_of_a_token_response_is_reported() {
    let valid = json!({ "id_token": "i", "access_token": "a", "token_type": "bearer" });
    let identity_source = IdentitySource::IdToken { keys: String::new() };
    let (check, tokens) =
        check_token_response(200, valid.to_string().as_bytes(), ClientAuthMethod::Basic, &identity_source);
    assert!(check.passed && tokens.unwrap().id_token.as_deref() == Some("i"));
    let without = json!({ "access_token": "a", "token_type": "bearer" }).to_string();
    let (check, tokens) =
        check_token_response(200, without.as_bytes(), ClientAuthMethod::Basic, &IdentitySource::AccessToken);
    assert!(check.passed && tokens.unwrap().id_token.is_none());
    for (status, body, method, option) in [
        (200, json!([]), ClientAuthMethod::Basic, Some("Authority")),
        (200, json!({ "access_token": "a", "token_type": "Bearer" }), ClientAuthMethod::Basic, None),
        (200, json!({ "id_token": "i", "token_type": "Bearer" }), ClientAuthMethod::Basic, None),
        (
            200,
            json!({ "id_token": "i", "access_token": "a", "token_type": "DPoP" }),
            ClientAuthMethod::Basic,
            None,
        ),
        (401, json!({ "error": "invalid_client" }), ClientAuthMethod::Basic, Some("ClientSecret")),
        (401, json!({ "error": "invalid_client" }), ClientAuthMethod::PrivateKey, Some("certStores")),
        (400, json!({ "error": "unauthorized_client" }), ClientAuthMethod::Post, Some("ClientId")),
        (400, json!({ "error": "invalid_grant" }), ClientAuthMethod::Post, Some("CallbackPath")),
        (400, json!({ "error": "invalid_target" }), ClientAuthMethod::Post, Some("RequestResources")),
        (500, json!({ "error": "server_error", "error_description": "later" }), ClientAuthMethod::Post, None),
    ] {
        let (check, tokens) =
            check_token_response(status, body.to_string().as_bytes(), method, &identity_source);
        assert!(!check.passed && tokens.is_none(), "{body}");
        assert_eq!((check.name, check.option), ("tokens", option), "{body}");
    }
}

#[test]
fn user_info_must_have_the_subject_of_the_id_token() {
    let validate = |text: &str| {
        let (check, claims) = check_user_info(text.as_bytes(), "ada");
        assert_eq!(check.passed, claims.is_some());
        check.passed
    };
    assert!(validate(r#"{"sub":"ada","email":"ada@example.com"}"#));
    for wrong in [r#"{"sub":"eve"}"#, "{}", "[]", "", r#"{"sub":"ada","sub":"ada"}"#] {
        assert!(!validate(wrong), "{wrong}");
    }
}

#[test]
fn unusable_keys_are_reported() {
    let (check, keys) = check_keys(br#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#);
    assert!(!check.passed && keys.is_empty());
    let set =
        br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    assert!(check_keys(set).0.passed);
}
