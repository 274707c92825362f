//! Parsing of authorization requests.

use std::convert::Infallible;

use proptest::{collection::vec, prelude::*, sample::select};

use super::{CLIENT, ISSUER, REDIRECT_URI, parameters, request_parameters};
use crate::{
    AuthorizationRequest, Delivery, ErrorCode, Pages, Prompt, ProtocolError, RequestObject, ResponseTarget,
    ResponseType, Transport, recognized_parameters,
};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// All known parameters, and an unknown one.
const NAMES: [&str; 24] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "login_hint",
    "id_token_hint",
    "ui_locales",
    "claims",
    "acr_values",
    "resource",
    "dpop_jkt",
    "request",
    "request_uri",
    "authorization_details",
    "display",
    "claims_locales",
    "unknown",
];

fn read(changes: &[(&str, &str)]) -> Result<AuthorizationRequest, ProtocolError> {
    let parameters = request_parameters(changes);
    AuthorizationRequest::read(&ResponseTarget::read(&parameters).unwrap(), &parameters)
}

fn code(changes: &[(&str, &str)]) -> ErrorCode {
    read(changes).unwrap_err().code
}

#[test]
fn a_minimal_request_is_parsed() {
    let parameters = request_parameters(&[("scope", ""), ("state", "")]);
    let target = ResponseTarget::read(&parameters).unwrap();
    assert_eq!((target.client_id.as_str(), target.redirect_uri.as_str()), (CLIENT, REDIRECT_URI));
    assert_eq!((target.tenant.as_ref(), target.options.state.as_ref()), (None, None));
    let request = AuthorizationRequest::read(&target, &parameters).unwrap();
    assert_eq!((request.client_id.as_str(), request.redirect_uri.as_str()), (CLIENT, REDIRECT_URI));
    assert_eq!(request.response_type.name(), "code");
    assert_eq!(request.response_mode.transport, Transport::Query);
    assert_eq!(request.prompt, Prompt::default());
    assert!(request.scope.is_none() && request.state.is_none() && request.max_age.is_none());
    assert_eq!(request.response_mode, target.options.mode);
}

#[test]
fn a_request_with_all_parameters_is_parsed() {
    let request = read(&[
        ("response_type", "id_token code"),
        ("response_mode", "form_post.jwt"),
        ("scope", "openid profile"),
        ("state", " a=b&c "),
        ("nonce", "n-0S6_WzA2Mj"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("prompt", "login consent"),
        ("max_age", "3600"),
        ("login_hint", "ada@example.com"),
        ("id_token_hint", "a.b.c"),
        ("ui_locales", "de-AT de <script> en"),
        ("claims", r#"{"id_token":{"acr":{"essential":true,"values":["phr"]}}}"#),
        ("acr_values", "mfa tenant:7 idp:default"),
        ("resource", "https://api.example/a"),
        ("resource", "printer"),
        ("dpop_jkt", CHALLENGE),
        ("display", "popup"),
        ("claims_locales", "de"),
        ("unknown", "1"),
        ("unknown", "2\0"),
    ])
    .unwrap();
    assert_eq!(request.response_type, ResponseType { code: true, id_token: true, token: false });
    assert!(request.response_mode.is_signed && request.response_mode.transport == Transport::FormPost);
    assert_eq!(request.state.as_deref(), Some(" a=b&c "));
    assert_eq!(request.nonce.as_deref(), Some("n-0S6_WzA2Mj"));
    assert_eq!(request.challenge.as_ref().unwrap().to_string(), CHALLENGE);
    assert_eq!(request.prompt, Prompt::Pages(Pages { login: true, consent: true, select_account: false }));
    assert_eq!(request.max_age, Some(3600));
    assert_eq!(request.ui_locales, ["de-AT", "de", "en"]);
    assert_eq!(request.claims.required_acr_values(), ["phr"]);
    assert_eq!(request.acr_values.classes, ["mfa"]);
    assert_eq!(request.acr_values.instance.as_deref(), Some("default"));
    assert_eq!(request.resources, ["https://api.example/a", "printer"]);
    assert_eq!(request.dpop_jkt.as_deref(), Some(CHALLENGE));
    assert_eq!(request.login_hint.as_deref(), Some("ada@example.com"));
    assert_eq!(request.id_token_hint.as_deref(), Some("a.b.c"));
    assert_eq!(format!("{request:?}"), "AuthorizationRequest(hidden)");
}

#[test]
fn errors_of_client_and_redirect_uri_are_not_sent_by_redirect() {
    for wrong in [
        &[("client_id", "")][..],
        &[("redirect_uri", "")],
        &[("client_id", CLIENT), ("client_id", CLIENT)],
        &[("redirect_uri", REDIRECT_URI), ("redirect_uri", REDIRECT_URI)],
        &[("client_id", "a\0")],
        &[("redirect_uri", "https://app.example.com/back\0")],
    ] {
        assert_eq!(
            ResponseTarget::read(&request_parameters(wrong)).unwrap_err().code,
            ErrorCode::InvalidRequest,
            "{wrong:?}"
        );
    }
    // a repeated parameter is rejected, even if one value is empty
    let twice = parameters(&[("client_id", ""), ("client_id", CLIENT), ("redirect_uri", REDIRECT_URI)]);
    assert!(ResponseTarget::read(&twice).is_err());
    // the tenant is parsed in the first stage, too
    let target = ResponseTarget::read(&request_parameters(&[("acr_values", "mfa tenant:7")])).unwrap();
    assert_eq!(target.tenant.as_deref(), Some("7"));
    assert_eq!(ResponseTarget::client_id(&parameters(&[("client_id", "a")])).unwrap(), "a");
}

/// By redirect, in the requested response mode.
#[test]
fn other_errors_are_sent_by_redirect() {
    use Transport::{FormPost, Fragment, Query};
    for (changes, transport, state, code) in [
        (&[("response_type", "")][..], Query, Some("a state"), ErrorCode::InvalidRequest),
        (&[("response_type", "saml")], Query, Some("a state"), ErrorCode::UnsupportedResponseType),
        (&[("response_type", "saml token")], Fragment, Some("a state"), ErrorCode::UnsupportedResponseType),
        (&[("response_type", "code code")], Query, Some("a state"), ErrorCode::UnsupportedResponseType),
        (
            &[("response_type", "code"), ("response_type", "code")],
            Query,
            Some("a state"),
            ErrorCode::InvalidRequest,
        ),
        (
            &[("response_type", "saml"), ("response_mode", "form_post")],
            FormPost,
            Some("a state"),
            ErrorCode::UnsupportedResponseType,
        ),
        (&[("response_mode", "web_message")], Query, Some("a state"), ErrorCode::InvalidRequest),
        (
            &[("response_mode", "fragment"), ("response_mode", "fragment")],
            Query,
            Some("a state"),
            ErrorCode::InvalidRequest,
        ),
        (
            &[("response_type", "id_token"), ("response_mode", "query")],
            Fragment,
            Some("a state"),
            ErrorCode::InvalidRequest,
        ),
        (
            &[("response_type", "id_token"), ("response_mode", "query.jwt")],
            Fragment,
            Some("a state"),
            ErrorCode::InvalidRequest,
        ),
        (
            &[("response_mode", "fragment"), ("prompt", "create")],
            Fragment,
            Some("a state"),
            ErrorCode::InvalidRequest,
        ),
        (&[("state", "a"), ("state", "b")], Query, None, ErrorCode::InvalidRequest),
        (&[("state", "a\0b")], Query, None, ErrorCode::InvalidRequest),
        (&[("acr_values", "tenant:7 tenant:8")], Query, Some("a state"), ErrorCode::InvalidRequest),
    ] {
        let parameters = request_parameters(changes);
        let target = ResponseTarget::read(&parameters).unwrap();
        let refusal = AuthorizationRequest::read(&target, &parameters).unwrap_err();
        assert_eq!(refusal.code, code, "{changes:?}");
        assert_eq!(target.options.mode.transport, transport, "{changes:?}");
        assert_eq!(target.options.state.as_deref(), state, "{changes:?}");
        assert_eq!(target.tenant, None);
    }
    let signed =
        ResponseTarget::read(&request_parameters(&[("response_mode", "jwt"), ("prompt", "create")])).unwrap();
    assert!(signed.options.mode.is_signed);
}

/// From the request to the redirect URL: the state is unchanged, and the response mode is the requested one.
#[test]
fn an_error_response_uses_the_requested_response_mode() {
    let parameters = request_parameters(&[("response_mode", "fragment"), ("prompt", "none login")]);
    let target = ResponseTarget::read(&parameters).unwrap();
    let refusal = AuthorizationRequest::read(&target, &parameters).unwrap_err();
    let response = target.options.response(ISSUER).with_error(refusal);
    let Ok(delivery) =
        response.deliver(&target.redirect_uri, target.options.mode, |_| Ok::<_, Infallible>(String::new()));
    let address = "https://app.example.com/back#iss=https%3A%2F%2Fid.example.org&state=a%20state\
                   &error=invalid_request&error_description=prompt%3A%20none%20is%20alone.";
    assert!(delivery == Delivery::Redirect(address.to_owned()));
}

#[test]
fn known_parameters_must_not_be_repeated_or_contain_nul() {
    for name in NAMES {
        if matches!(name, "client_id" | "redirect_uri") {
            continue;
        }
        let is_accepted =
            |changes: &[(&str, &str)]| read(changes).is_ok_and(|request| request.state.is_some());
        let nul = read(&[(name, "\0")]);
        if name == "unknown" {
            assert!(nul.is_ok());
            assert!(is_accepted(&[(name, "a"), (name, "b")]));
            continue;
        }
        assert_eq!(nul.unwrap_err().code, ErrorCode::InvalidRequest, "{name}");
        let mut twice = request_parameters(&[(name, "")]);
        twice.extend(parameters(&[(name, ""), (name, "")]));
        let read = AuthorizationRequest::read(&ResponseTarget::read(&twice).unwrap(), &twice);
        if name == "resource" {
            assert!(read.is_ok());
        } else {
            assert_eq!(read.unwrap_err().code, ErrorCode::InvalidRequest, "{name}");
        }
    }
}

#[test]
fn state_and_nonce_are_unchanged_up_to_their_maximum_length() {
    for (name, max_length) in [("state", 4096), ("nonce", 1024)] {
        let (longest, too_long) = ("ä".repeat(max_length), "ä".repeat(max_length + 1));
        let request = read(&[(name, &longest)]).unwrap();
        let value = if name == "state" { request.state } else { request.nonce };
        assert_eq!(value.as_deref(), Some(longest.as_str()));
        assert_eq!(code(&[(name, &too_long)]), ErrorCode::InvalidRequest);
        // also too long for the error response
        let options = ResponseTarget::read(&request_parameters(&[(name, &too_long)])).unwrap().options;
        assert_eq!(options.state.is_some(), name == "nonce");
    }
}

#[test]
fn only_resource_may_be_repeated() {
    let many = vec![("resource", "https://api.example/"); 32];
    assert_eq!(read(&many).unwrap().resources.len(), 32);
    assert_eq!(code(&[&many[..], &many[..1]].concat()), ErrorCode::InvalidRequest);
    assert_eq!(code(&[("resource", "https://api.example/#a")]), ErrorCode::InvalidTarget);
    assert_eq!(code(&[("resource", "a b")]), ErrorCode::InvalidTarget);
}

#[test]
fn only_s256_challenges_are_accepted() {
    assert!(read(&[("code_challenge", CHALLENGE), ("code_challenge_method", "S256")]).is_ok());
    for wrong in [
        // without a method it is plain
        &[("code_challenge", CHALLENGE)][..],
        &[("code_challenge", CHALLENGE), ("code_challenge_method", "plain")],
        &[("code_challenge", CHALLENGE), ("code_challenge_method", "s256")],
        &[("code_challenge", &CHALLENGE[1..]), ("code_challenge_method", "S256")],
        &[("code_challenge", "a+b"), ("code_challenge_method", "S256")],
        &[("code_challenge_method", "S256")],
    ] {
        assert_eq!(code(wrong), ErrorCode::InvalidRequest, "{wrong:?}");
    }
}

#[test]
fn max_age_is_a_non_negative_number_of_seconds() {
    for (text, seconds) in
        [("0", 0), ("1", 1), ("007", 7), ("4294967296", u32::MAX), (&"9".repeat(400), u32::MAX)]
    {
        assert_eq!(read(&[("max_age", text)]).unwrap().max_age, Some(seconds), "{text}");
    }
    for wrong in ["-1", "-0", "+1", "1.5", "1e3", "an hour", " 1", "٣"] {
        assert_eq!(code(&[("max_age", wrong)]), ErrorCode::InvalidRequest, "{wrong}");
    }
}

#[test]
fn each_other_violation_is_rejected() {
    for (changes, refused) in [
        (&[("prompt", "none login")][..], ErrorCode::InvalidRequest),
        (&[("prompt", "create")], ErrorCode::InvalidRequest),
        (&[("claims", "openid")], ErrorCode::InvalidRequest),
        (&[("claims", "[]")], ErrorCode::InvalidRequest),
        (&[("authorization_details", "[]")], ErrorCode::InvalidRequest),
        (&[("scope", "openid  email")], ErrorCode::InvalidScope),
        (&[("dpop_jkt", "abc")], ErrorCode::InvalidRequest),
        (&[("request", "a.b.c")], ErrorCode::RequestNotSupported),
        (&[("request_uri", "urn:ietf:params:oauth:request_uri:a")], ErrorCode::RequestUriNotSupported),
        (&[("request", "a"), ("request_uri", "b")], ErrorCode::InvalidRequest),
        // with a request object, other parameters are ignored
        (&[("request", "a.b.c"), ("response_type", "saml"), ("scope", "  ")], ErrorCode::RequestNotSupported),
    ] {
        assert_eq!(code(changes), refused, "{changes:?}");
    }
    let find = |pairs: &[(&str, &str)]| RequestObject::find(&parameters(pairs)).unwrap();
    assert_eq!(find(&[("request", "")]), None);
    assert_eq!(find(&[("request", "a")]), Some(RequestObject::Value("a".to_owned())));
    assert_eq!(find(&[("request_uri", "b")]), Some(RequestObject::Reference("b".to_owned())));
    assert!(read(&[("request", ""), ("authorization_details", "")]).is_ok());
    assert_eq!(read(&[("prompt", "none")]).unwrap().prompt, Prompt::None);
}

/// Values, some of which are valid for a parameter.
fn values() -> impl Strategy<Value = String> {
    let valid = select(vec![
        "",
        "code",
        "token id_token",
        "query",
        "fragment.jwt",
        "openid email",
        "S256",
        CHALLENGE,
        "none",
        "login",
        "0",
        "60",
        "{}",
        r#"{"userinfo":{"a":null}}"#,
        "mfa tenant:1",
        "idp:a",
        "https://api.example/",
        "de en",
    ]);
    prop_oneof![3 => valid.prop_map(str::to_owned), 1 => "\\PC{0,40}", 1 => "[\\x00-\\x7f]{0,10}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Parsing any request does not panic, respects the limits, and sends no token in a query.
    #[test]
    fn any_request_is_parsed_or_rejected(pairs in vec((select(NAMES.to_vec()), values()), 0..12), has_target in any::<bool>()) {
        let all: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let parameters = if has_target {
            let others: Vec<_> = all.into_iter().filter(|(name, _)| !name.starts_with("re") && !name.starts_with("cl")).collect();
            request_parameters(&others)
        } else {
            parameters(&all)
        };
        let _ = RequestObject::find(&parameters);
        let Ok(target) = ResponseTarget::read(&parameters) else { return Ok(()) };
        prop_assert!(!target.client_id.is_empty() && !target.redirect_uri.is_empty());
        let Ok(request) = AuthorizationRequest::read(&target, &parameters) else { return Ok(()) };
        // the recognized parameters parse to the same request
        let again = AuthorizationRequest::read(&target, &recognized_parameters(parameters));
        prop_assert_eq!(again.as_ref(), Ok(&request));
        prop_assert_eq!(request.response_mode, target.options.mode);
        prop_assert_eq!(&request.state, &target.options.state);
        prop_assert_eq!(&request.acr_values.tenant, &target.tenant);
        let in_query = request.response_mode.transport == Transport::Query;
        prop_assert!(!in_query || !request.response_type.has_front_channel_token());
        prop_assert!(request.resources.len() <= 32);
        prop_assert!(request.nonce.is_none_or(|nonce| nonce.chars().count() <= 512));
        prop_assert!(request.ui_locales.iter().all(|tag| tag.is_ascii()));
    }

    /// An error description never contains input, and needs no escaping.
    #[test]
    fn error_descriptions_are_fixed_texts(name in select(NAMES.to_vec()), value in values()) {
        let parameters = request_parameters(&[(name, &value)]);
        let read = ResponseTarget::read(&parameters)
            .and_then(|target| AuthorizationRequest::read(&target, &parameters));
        if let Err(refusal) = read {
            let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
            prop_assert!(refusal.detail.bytes().all(is_plain), "{}", refusal);
        }
    }
}
