//! Reading authorization requests, by section 4 of the specification of sign-in.

use std::convert::Infallible;

use proptest::{collection::vec, prelude::*, sample::select};

use super::{CLIENT, ISSUER, REDIRECT_URI, asking, parameters};
use crate::{
    Addressing, AuthorizationRequest, Code, Delivery, Pages, Prompt, Refusal, RequestObject, ResponseType,
    Transport, meant,
};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// Every parameter that is known.
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

fn read(changes: &[(&str, &str)]) -> Result<AuthorizationRequest, Refusal> {
    let parameters = asking(changes);
    AuthorizationRequest::read(&Addressing::read(&parameters).unwrap(), &parameters)
}

fn code(changes: &[(&str, &str)]) -> Code {
    read(changes).unwrap_err().code
}

#[test]
fn the_least_request() {
    let parameters = asking(&[("scope", ""), ("state", "")]);
    let addressing = Addressing::read(&parameters).unwrap();
    assert_eq!((addressing.client_id.as_str(), addressing.redirect_uri.as_str()), (CLIENT, REDIRECT_URI));
    assert_eq!((addressing.tenant.as_ref(), addressing.reply.state.as_ref()), (None, None));
    let request = AuthorizationRequest::read(&addressing, &parameters).unwrap();
    assert_eq!((request.client_id.as_str(), request.redirect_uri.as_str()), (CLIENT, REDIRECT_URI));
    assert_eq!(request.response_type.name(), "code");
    assert_eq!(request.response_mode.transport, Transport::Query);
    assert_eq!(request.prompt, Prompt::default());
    assert!(request.scope.is_none() && request.state.is_none() && request.max_age.is_none());
    assert_eq!(request.response_mode, addressing.reply.mode);
}

#[test]
fn a_whole_request() {
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
    assert_eq!(request.claims.demanded_classes(), ["phr"]);
    assert_eq!(request.acr_values.classes, ["mfa"]);
    assert_eq!(request.acr_values.instance.as_deref(), Some("default"));
    assert_eq!(request.resources, ["https://api.example/a", "printer"]);
    assert_eq!(request.dpop_jkt.as_deref(), Some(CHALLENGE));
    assert_eq!(request.login_hint.as_deref(), Some("ada@example.com"));
    assert_eq!(request.id_token_hint.as_deref(), Some("a.b.c"));
    assert_eq!(format!("{request:?}"), "AuthorizationRequest(hidden)");
}

/// On an error page, never by redirect.
#[test]
fn without_client_and_redirect_uri_nothing_is_answered_by_redirect() {
    for wrong in [
        &[("client_id", "")][..],
        &[("redirect_uri", "")],
        &[("client_id", CLIENT), ("client_id", CLIENT)],
        &[("redirect_uri", REDIRECT_URI), ("redirect_uri", REDIRECT_URI)],
        &[("client_id", "a\0")],
        &[("redirect_uri", "https://app.example.com/back\0")],
    ] {
        assert_eq!(Addressing::read(&asking(wrong)).unwrap_err().code, Code::InvalidRequest, "{wrong:?}");
    }
    // an empty one beside another is one too many
    let twice = parameters(&[("client_id", ""), ("client_id", CLIENT), ("redirect_uri", REDIRECT_URI)]);
    assert!(Addressing::read(&twice).is_err());
    // the tenant is judged there, too
    let addressing = Addressing::read(&asking(&[("acr_values", "mfa tenant:7")])).unwrap();
    assert_eq!(addressing.tenant.as_deref(), Some("7"));
    assert_eq!(Addressing::client_id(&parameters(&[("client_id", "a")])).unwrap(), "a");
}

/// By redirect, in the response mode asked for: all else.
#[test]
fn what_is_wrong_elsewhere_is_answered_as_far_as_it_can_be_read() {
    use Transport::{FormPost, Fragment, Query};
    for (changes, transport, state, code) in [
        (&[("response_type", "")][..], Query, Some("a state"), Code::InvalidRequest),
        (&[("response_type", "saml")], Query, Some("a state"), Code::UnsupportedResponseType),
        (&[("response_type", "saml token")], Fragment, Some("a state"), Code::UnsupportedResponseType),
        (&[("response_type", "code code")], Query, Some("a state"), Code::UnsupportedResponseType),
        (
            &[("response_type", "code"), ("response_type", "code")],
            Query,
            Some("a state"),
            Code::InvalidRequest,
        ),
        (
            &[("response_type", "saml"), ("response_mode", "form_post")],
            FormPost,
            Some("a state"),
            Code::UnsupportedResponseType,
        ),
        (&[("response_mode", "web_message")], Query, Some("a state"), Code::InvalidRequest),
        (
            &[("response_mode", "fragment"), ("response_mode", "fragment")],
            Query,
            Some("a state"),
            Code::InvalidRequest,
        ),
        (
            &[("response_type", "id_token"), ("response_mode", "query")],
            Fragment,
            Some("a state"),
            Code::InvalidRequest,
        ),
        (
            &[("response_type", "id_token"), ("response_mode", "query.jwt")],
            Fragment,
            Some("a state"),
            Code::InvalidRequest,
        ),
        (
            &[("response_mode", "fragment"), ("prompt", "create")],
            Fragment,
            Some("a state"),
            Code::InvalidRequest,
        ),
        (&[("state", "a"), ("state", "b")], Query, None, Code::InvalidRequest),
        (&[("state", "a\0b")], Query, None, Code::InvalidRequest),
        (&[("acr_values", "tenant:7 tenant:8")], Query, Some("a state"), Code::InvalidRequest),
    ] {
        let parameters = asking(changes);
        let addressing = Addressing::read(&parameters).unwrap();
        let refusal = AuthorizationRequest::read(&addressing, &parameters).unwrap_err();
        assert_eq!(refusal.code, code, "{changes:?}");
        assert_eq!(addressing.reply.mode.transport, transport, "{changes:?}");
        assert_eq!(addressing.reply.state.as_deref(), state, "{changes:?}");
        assert_eq!(addressing.tenant, None);
    }
    let signed = Addressing::read(&asking(&[("response_mode", "jwt"), ("prompt", "create")])).unwrap();
    assert!(signed.reply.mode.is_signed);
}

/// A refusal from the request to the address: the state is kept, and the response mode is the one asked for.
#[test]
fn a_refusal_goes_where_the_answer_would() {
    let parameters = asking(&[("response_mode", "fragment"), ("prompt", "none login")]);
    let addressing = Addressing::read(&parameters).unwrap();
    let refusal = AuthorizationRequest::read(&addressing, &parameters).unwrap_err();
    let answer = addressing.reply.answer(ISSUER).refused(refusal);
    let Ok(delivery) = answer
        .deliver(&addressing.redirect_uri, addressing.reply.mode, |_| Ok::<_, Infallible>(String::new()));
    let address = "https://app.example.com/back#iss=https%3A%2F%2Fid.example.org&state=a%20state\
                   &error=invalid_request&error_description=prompt%3A%20none%20is%20alone.";
    assert!(delivery == Delivery::Redirect(address.to_owned()));
}

#[test]
fn every_known_parameter_is_there_once_and_holds_no_nul() {
    for name in NAMES {
        if matches!(name, "client_id" | "redirect_uri") {
            continue;
        }
        let good = |changes: &[(&str, &str)]| read(changes).is_ok_and(|request| request.state.is_some());
        let nul = read(&[(name, "\0")]);
        if name == "unknown" {
            assert!(nul.is_ok());
            assert!(good(&[(name, "a"), (name, "b")]));
            continue;
        }
        assert_eq!(nul.unwrap_err().code, Code::InvalidRequest, "{name}");
        let mut twice = asking(&[(name, "")]);
        twice.extend(parameters(&[(name, ""), (name, "")]));
        let read = AuthorizationRequest::read(&Addressing::read(&twice).unwrap(), &twice);
        if name == "resource" {
            assert!(read.is_ok());
        } else {
            assert_eq!(read.unwrap_err().code, Code::InvalidRequest, "{name}");
        }
    }
}

#[test]
fn state_and_nonce_come_back_as_they_were_up_to_their_length() {
    for (name, most) in [("state", 4096), ("nonce", 1024)] {
        let (longest, longer) = ("ä".repeat(most), "ä".repeat(most + 1));
        let request = read(&[(name, &longest)]).unwrap();
        let kept = if name == "state" { request.state } else { request.nonce };
        assert_eq!(kept.as_deref(), Some(longest.as_str()));
        assert_eq!(code(&[(name, &longer)]), Code::InvalidRequest);
        // too long to come back with the refusal, too
        let reply = Addressing::read(&asking(&[(name, &longer)])).unwrap().reply;
        assert_eq!(reply.state.is_some(), name == "nonce");
    }
}

#[test]
fn resource_is_the_one_that_may_be_repeated() {
    let many = vec![("resource", "https://api.example/"); 32];
    assert_eq!(read(&many).unwrap().resources.len(), 32);
    assert_eq!(code(&[&many[..], &many[..1]].concat()), Code::InvalidRequest);
    assert_eq!(code(&[("resource", "https://api.example/#a")]), Code::InvalidTarget);
    assert_eq!(code(&[("resource", "a b")]), Code::InvalidTarget);
}

#[test]
fn only_s256_is_a_challenge() {
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
        assert_eq!(code(wrong), Code::InvalidRequest, "{wrong:?}");
    }
}

#[test]
fn max_age_is_whole_seconds_from_zero_on() {
    for (text, seconds) in
        [("0", 0), ("1", 1), ("007", 7), ("4294967296", u32::MAX), (&"9".repeat(400), u32::MAX)]
    {
        assert_eq!(read(&[("max_age", text)]).unwrap().max_age, Some(seconds), "{text}");
    }
    for wrong in ["-1", "-0", "+1", "1.5", "1e3", "an hour", " 1", "٣"] {
        assert_eq!(code(&[("max_age", wrong)]), Code::InvalidRequest, "{wrong}");
    }
}

#[test]
fn each_other_rule() {
    for (changes, refused) in [
        (&[("prompt", "none login")][..], Code::InvalidRequest),
        (&[("prompt", "create")], Code::InvalidRequest),
        (&[("claims", "openid")], Code::InvalidRequest),
        (&[("claims", "[]")], Code::InvalidRequest),
        (&[("authorization_details", "[]")], Code::InvalidRequest),
        (&[("scope", "openid  email")], Code::InvalidScope),
        (&[("dpop_jkt", "abc")], Code::InvalidRequest),
        (&[("request", "a.b.c")], Code::RequestNotSupported),
        (&[("request_uri", "urn:ietf:params:oauth:request_uri:a")], Code::RequestUriNotSupported),
        (&[("request", "a"), ("request_uri", "b")], Code::InvalidRequest),
        // beside a request object nothing else counts
        (&[("request", "a.b.c"), ("response_type", "saml"), ("scope", "  ")], Code::RequestNotSupported),
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

/// Values of which some are good for some parameter.
fn values() -> impl Strategy<Value = String> {
    let good = select(vec![
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
    prop_oneof![3 => good.prop_map(str::to_owned), 1 => "\\PC{0,40}", 1 => "[\\x00-\\x7f]{0,10}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Any request: reading it does not panic, keeps within the bounds, and shows no token in a query.
    #[test]
    fn any_request(pairs in vec((select(NAMES.to_vec()), values()), 0..12), is_addressed in any::<bool>()) {
        let all: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let parameters = if is_addressed {
            let others: Vec<_> = all.into_iter().filter(|(name, _)| !name.starts_with("re") && !name.starts_with("cl")).collect();
            asking(&others)
        } else {
            parameters(&all)
        };
        let _ = RequestObject::find(&parameters);
        let Ok(addressing) = Addressing::read(&parameters) else { return Ok(()) };
        prop_assert!(!addressing.client_id.is_empty() && !addressing.redirect_uri.is_empty());
        let Ok(request) = AuthorizationRequest::read(&addressing, &parameters) else { return Ok(()) };
        // the parameters that are kept make the same request
        let again = AuthorizationRequest::read(&addressing, &meant(parameters));
        prop_assert_eq!(again.as_ref(), Ok(&request));
        prop_assert_eq!(request.response_mode, addressing.reply.mode);
        prop_assert_eq!(&request.state, &addressing.reply.state);
        prop_assert_eq!(&request.acr_values.tenant, &addressing.tenant);
        let in_query = request.response_mode.transport == Transport::Query;
        prop_assert!(!in_query || !request.response_type.has_front_channel_token());
        prop_assert!(request.resources.len() <= 32);
        prop_assert!(request.nonce.is_none_or(|nonce| nonce.chars().count() <= 512));
        prop_assert!(request.ui_locales.iter().all(|tag| tag.is_ascii()));
    }

    /// A refusal never repeats what was sent, and its text may stand in an answer as it is.
    #[test]
    fn refusals_are_fixed_texts(name in select(NAMES.to_vec()), value in values()) {
        let parameters = asking(&[(name, &value)]);
        let read = Addressing::read(&parameters)
            .and_then(|addressing| AuthorizationRequest::read(&addressing, &parameters));
        if let Err(refusal) = read {
            let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\';
            prop_assert!(refusal.detail.bytes().all(is_plain), "{}", refusal);
        }
    }
}
