//! Answers: their forms, and that what is answered is what is read.

use std::convert::Infallible;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{ISSUER, REDIRECT_URI, parameters};
use crate::{Answer, Code, Delivery, Refusal, ResponseMode, Transport};

fn plain(transport: Transport) -> ResponseMode {
    ResponseMode { transport, is_signed: false }
}

fn deliver(answer: Answer, redirect_uri: &str, mode: ResponseMode) -> Delivery {
    let sign = |fields: &[(String, String)]| Ok::<_, Infallible>(format!("jwt.of.{}", fields.len()));
    let Ok(delivery) = answer.deliver(redirect_uri, mode, sign);
    delivery
}

fn address(answer: Answer, redirect_uri: &str, transport: Transport) -> String {
    match deliver(answer, redirect_uri, plain(transport)) {
        Delivery::Redirect(address) => address,
        Delivery::Form { .. } => panic!("a form"),
    }
}

fn granted() -> Answer {
    Answer::new(ISSUER, Some("a state")).with("code", "SplxlOBeZQQYbYS6WxSbIA")
}

#[test]
fn a_code_in_the_query_beside_what_is_there() {
    let sent = "iss=https%3A%2F%2Fid.example.org&state=a%20state&code=SplxlOBeZQQYbYS6WxSbIA";
    for (redirect_uri, begin) in [
        (REDIRECT_URI, "https://app.example.com/back?"),
        ("https://app.example.com", "https://app.example.com?"),
        ("https://app.example.com/back?a=b", "https://app.example.com/back?a=b&"),
        ("https://app.example.com/back?a=b&", "https://app.example.com/back?a=b&"),
        ("https://app.example.com/back?", "https://app.example.com/back?"),
        ("com.example.app:/back", "com.example.app:/back?"),
        ("https://app.example.com/ä?ö=\"", "https://app.example.com/%C3%A4?%C3%B6=\"&"),
        // no redirect URI has a fragment, and one would swallow the answer
        ("https://app.example.com/back#a", "https://app.example.com/back?"),
    ] {
        assert_eq!(address(granted(), redirect_uri, Transport::Query), format!("{begin}{sent}"));
    }
    assert_eq!(
        address(granted(), "https://app.example.com/back?a=b", Transport::Fragment),
        format!("https://app.example.com/back?a=b#{sent}")
    );
}

#[test]
fn a_form_holds_the_fields_as_they_are() {
    let answer = Answer::new(ISSUER, Some("<\"&+ä")).with("id_token", "a.b.c");
    let fields = parameters(&[("iss", ISSUER), ("state", "<\"&+ä"), ("id_token", "a.b.c")]);
    let delivery = deliver(answer, REDIRECT_URI, plain(Transport::FormPost));
    assert!(delivery == Delivery::Form { action: REDIRECT_URI.to_owned(), fields });
}

#[test]
fn none_has_issuer_and_state() {
    let answered = address(Answer::new(ISSUER, Some("s")), REDIRECT_URI, Transport::Query);
    assert_eq!(answered, "https://app.example.com/back?iss=https%3A%2F%2Fid.example.org&state=s");
    let answered = address(Answer::new(ISSUER, None), REDIRECT_URI, Transport::Fragment);
    assert_eq!(answered, "https://app.example.com/back#iss=https%3A%2F%2Fid.example.org");
}

#[test]
fn a_refusal_has_error_description_state_and_issuer() {
    let refusal = Refusal::new(Code::LoginRequired, "Sign in first.");
    let answered = address(Answer::new(ISSUER, Some("s")).refused(refusal), REDIRECT_URI, Transport::Query);
    assert_eq!(
        answered,
        "https://app.example.com/back?iss=https%3A%2F%2Fid.example.org&state=s&error=login_required\
         &error_description=Sign%20in%20first."
    );
}

#[test]
fn a_signed_answer_is_one_parameter() {
    for (transport, wanted) in [
        (Transport::Query, "https://app.example.com/back?response=jwt.of.3"),
        (Transport::Fragment, "https://app.example.com/back#response=jwt.of.3"),
    ] {
        let delivery = deliver(granted(), REDIRECT_URI, ResponseMode { transport, is_signed: true });
        assert!(delivery == Delivery::Redirect(wanted.to_owned()));
    }
    let mode = ResponseMode { transport: Transport::FormPost, is_signed: true };
    let fields = parameters(&[("response", "jwt.of.3")]);
    assert!(
        deliver(granted(), REDIRECT_URI, mode) == Delivery::Form { action: REDIRECT_URI.to_owned(), fields }
    );
    // what cannot be signed is not sent
    assert_eq!(granted().deliver(REDIRECT_URI, mode, |_| Err("no key")).unwrap_err(), "no key");
}

#[test]
fn nothing_of_an_answer_is_printed() {
    assert_eq!(format!("{:?}", granted()), "Answer(hidden)");
    assert_eq!(
        format!("{:?}", deliver(granted(), REDIRECT_URI, plain(Transport::Query))),
        "Delivery(hidden)"
    );
}

#[test]
fn each_code_is_a_word_of_its_own() {
    let all = [
        Code::InvalidRequest,
        Code::InvalidClient,
        Code::InvalidGrant,
        Code::UnauthorizedClient,
        Code::UnsupportedGrantType,
        Code::InvalidScope,
        Code::InvalidTarget,
        Code::InvalidDpopProof,
        Code::UseDpopNonce,
        Code::UnsupportedResponseType,
        Code::AccessDenied,
        Code::ServerError,
        Code::TemporarilyUnavailable,
        Code::InteractionRequired,
        Code::LoginRequired,
        Code::AccountSelectionRequired,
        Code::ConsentRequired,
        Code::InvalidRequestUri,
        Code::InvalidRequestObject,
        Code::RequestNotSupported,
        Code::RequestUriNotSupported,
        Code::UnmetAuthenticationRequirements,
        Code::InsufficientUserAuthentication,
    ];
    let mut names: Vec<&str> = all.iter().map(|code| code.name()).collect();
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    assert_eq!([Code::ServerError.status(), Code::TemporarilyUnavailable.status()], [500, 503]);
    assert_eq!([Code::InvalidClient.status(), Code::InvalidGrant.status()], [401, 400]);
}

fn read(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

proptest! {
    /// What is answered parses back to the same parameters, and the redirect URI is kept.
    #[test]
    fn what_is_answered_is_what_is_read(
        state in option::of("\\PC{0,40}|[\\x00-\\x7f]{1,20}"),
        more in vec(("[a-z_]{1,12}", "\\PC{0,40}"), 0..4),
        query in vec(("[a-z]{1,6}", "[a-z0-9]{0,6}"), 0..3),
        path in "(/[a-z]{0,6}){0,2}",
        transport in select(vec![Transport::Query, Transport::Fragment, Transport::FormPost]),
    ) {
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let bare = format!("https://app.example.com{path}");
        let redirect_uri =
            if pairs.is_empty() { bare.clone() } else { format!("{bare}?{}", pairs.join("&")) };
        let mut answer = Answer::new(ISSUER, state.as_deref());
        let mut wanted = parameters(&[("iss", ISSUER)]);
        wanted.extend(state.iter().map(|state| ("state".to_owned(), state.clone())));
        for (name, value) in more {
            answer = answer.with(&name, &value);
            wanted.push((name, value));
        }
        let delivery = deliver(answer, &redirect_uri, plain(transport));
        match (transport, delivery) {
            (Transport::Query, Delivery::Redirect(address)) => {
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
                let (kept, sent) = address.split_once('?').unwrap();
                prop_assert_eq!(kept, bare);
                prop_assert!(!sent.contains('#'));
                prop_assert_eq!(read(sent), [query, wanted].concat());
            }
            (Transport::Fragment, Delivery::Redirect(address)) => {
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
                let (kept, sent) = address.split_once('#').unwrap();
                prop_assert_eq!(kept, redirect_uri);
                prop_assert_eq!(read(sent), wanted);
            }
            (Transport::FormPost, Delivery::Form { action, fields }) => {
                prop_assert_eq!(action, redirect_uri);
                prop_assert_eq!(fields, wanted);
            }
            _ => prop_assert!(false, "another form"),
        }
    }

    #[test]
    fn any_address_makes_a_header(uri in "\\PC{0,60}|[\\x00-\\x7f]{0,40}", state in "\\PC{0,20}") {
        for transport in [Transport::Query, Transport::Fragment] {
            let address = address(Answer::new(ISSUER, Some(&state)), &uri, transport);
            prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
