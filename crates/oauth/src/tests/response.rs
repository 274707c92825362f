//! Authorization responses: encoding for each response mode, and decoding.

use std::convert::Infallible;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{ISSUER, REDIRECT_URI, parameters};
use crate::{AuthorizationResponse, Delivery, ErrorCode, ProtocolError, ResponseMode, Transport};

fn plain(transport: Transport) -> ResponseMode {
    ResponseMode { transport, is_signed: false }
}

fn deliver(response: AuthorizationResponse, redirect_uri: &str, mode: ResponseMode) -> Delivery {
    let sign = |fields: &[(String, String)]| Ok::<_, Infallible>(format!("jwt.of.{}", fields.len()));
    let Ok(delivery) = response.deliver(redirect_uri, mode, sign);
    delivery
}

fn address(response: AuthorizationResponse, redirect_uri: &str, transport: Transport) -> String {
    match deliver(response, redirect_uri, plain(transport)) {
        Delivery::Redirect(address) => address,
        Delivery::Form { .. } => panic!("a form"),
    }
}

fn granted() -> AuthorizationResponse {
    AuthorizationResponse::new(ISSUER, Some("a state")).with("code", "SplxlOBeZQQYbYS6WxSbIA")
}

#[test]
fn the_code_is_appended_to_the_query_of_the_redirect_uri() {
    let sent = "iss=https%3A%2F%2Fid.example.org&state=a%20state&code=SplxlOBeZQQYbYS6WxSbIA";
    for (redirect_uri, begin) in [
        (REDIRECT_URI, "https://app.example.com/back?"),
        ("https://app.example.com", "https://app.example.com?"),
        ("https://app.example.com/back?a=b", "https://app.example.com/back?a=b&"),
        ("https://app.example.com/back?a=b&", "https://app.example.com/back?a=b&"),
        ("https://app.example.com/back?", "https://app.example.com/back?"),
        ("com.example.app:/back", "com.example.app:/back?"),
        ("https://app.example.com/ä?ö=\"", "https://app.example.com/%C3%A4?%C3%B6=\"&"),
        // a fragment, which no valid redirect URI has, would contain the response
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
fn the_fields_of_a_form_are_not_escaped() {
    let response = AuthorizationResponse::new(ISSUER, Some("<\"&+ä")).with("id_token", "a.b.c");
    let fields = parameters(&[("iss", ISSUER), ("state", "<\"&+ä"), ("id_token", "a.b.c")]);
    let delivery = deliver(response, REDIRECT_URI, plain(Transport::FormPost));
    assert!(delivery == Delivery::Form { action: REDIRECT_URI.to_owned(), fields });
}

#[test]
fn response_type_none_has_only_issuer_and_state() {
    let redirect = address(AuthorizationResponse::new(ISSUER, Some("s")), REDIRECT_URI, Transport::Query);
    assert_eq!(redirect, "https://app.example.com/back?iss=https%3A%2F%2Fid.example.org&state=s");
    let redirect = address(AuthorizationResponse::new(ISSUER, None), REDIRECT_URI, Transport::Fragment);
    assert_eq!(redirect, "https://app.example.com/back#iss=https%3A%2F%2Fid.example.org");
}

#[test]
fn an_error_response_has_error_description_state_and_issuer() {
    let refusal = ProtocolError::new(ErrorCode::LoginRequired, "Sign in first.");
    let address = address(
        AuthorizationResponse::new(ISSUER, Some("s")).with_error(refusal),
        REDIRECT_URI,
        Transport::Query,
    );
    assert_eq!(
        address,
        "https://app.example.com/back?iss=https%3A%2F%2Fid.example.org&state=s&error=login_required\
         &error_description=Sign%20in%20first."
    );
}

#[test]
fn a_signed_response_is_one_parameter() {
    for (transport, expected) in [
        (Transport::Query, "https://app.example.com/back?response=jwt.of.3"),
        (Transport::Fragment, "https://app.example.com/back#response=jwt.of.3"),
    ] {
        let delivery = deliver(granted(), REDIRECT_URI, ResponseMode { transport, is_signed: true });
        assert!(delivery == Delivery::Redirect(expected.to_owned()));
    }
    let mode = ResponseMode { transport: Transport::FormPost, is_signed: true };
    let fields = parameters(&[("response", "jwt.of.3")]);
    assert!(
        deliver(granted(), REDIRECT_URI, mode) == Delivery::Form { action: REDIRECT_URI.to_owned(), fields }
    );
    // without a signature, nothing is sent
    assert_eq!(granted().deliver(REDIRECT_URI, mode, |_| Err("no key")).unwrap_err(), "no key");
}

#[test]
fn debug_output_hides_the_response() {
    assert_eq!(format!("{:?}", granted()), "AuthorizationResponse(hidden)");
    assert_eq!(
        format!("{:?}", deliver(granted(), REDIRECT_URI, plain(Transport::Query))),
        "Delivery(hidden)"
    );
}

#[test]
fn error_codes_are_distinct() {
    let all = [
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidClient,
        ErrorCode::InvalidGrant,
        ErrorCode::UnauthorizedClient,
        ErrorCode::UnsupportedGrantType,
        ErrorCode::InvalidScope,
        ErrorCode::InvalidTarget,
        ErrorCode::InvalidDpopProof,
        ErrorCode::UseDpopNonce,
        ErrorCode::UnsupportedResponseType,
        ErrorCode::AccessDenied,
        ErrorCode::ServerError,
        ErrorCode::TemporarilyUnavailable,
        ErrorCode::InteractionRequired,
        ErrorCode::LoginRequired,
        ErrorCode::AccountSelectionRequired,
        ErrorCode::ConsentRequired,
        ErrorCode::InvalidRequestUri,
        ErrorCode::InvalidRequestObject,
        ErrorCode::RequestNotSupported,
        ErrorCode::RequestUriNotSupported,
        ErrorCode::UnmetAuthenticationRequirements,
        ErrorCode::InsufficientUserAuthentication,
    ];
    let mut names: Vec<&str> = all.iter().map(|code| code.name()).collect();
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    assert_eq!([ErrorCode::ServerError.status(), ErrorCode::TemporarilyUnavailable.status()], [500, 503]);
    assert_eq!([ErrorCode::InvalidClient.status(), ErrorCode::InvalidGrant.status()], [401, 400]);
}

fn read(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

proptest! {
    /// A response decodes to the same parameters, and the redirect URI is unchanged.
    #[test]
    fn a_response_decodes_to_its_parameters(
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
        let mut response = AuthorizationResponse::new(ISSUER, state.as_deref());
        let mut expected = parameters(&[("iss", ISSUER)]);
        expected.extend(state.iter().map(|state| ("state".to_owned(), state.clone())));
        for (name, value) in more {
            response = response.with(&name, &value);
            expected.push((name, value));
        }
        let delivery = deliver(response, &redirect_uri, plain(transport));
        match (transport, delivery) {
            (Transport::Query, Delivery::Redirect(address)) => {
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
                let (target, sent) = address.split_once('?').unwrap();
                prop_assert_eq!(target, bare);
                prop_assert!(!sent.contains('#'));
                prop_assert_eq!(read(sent), [query, expected].concat());
            }
            (Transport::Fragment, Delivery::Redirect(address)) => {
                prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
                let (target, sent) = address.split_once('#').unwrap();
                prop_assert_eq!(target, redirect_uri);
                prop_assert_eq!(read(sent), expected);
            }
            (Transport::FormPost, Delivery::Form { action, fields }) => {
                prop_assert_eq!(action, redirect_uri);
                prop_assert_eq!(fields, expected);
            }
            _ => prop_assert!(false, "another form"),
        }
    }

    #[test]
    fn any_redirect_is_a_valid_header(uri in "\\PC{0,60}|[\\x00-\\x7f]{0,40}", state in "\\PC{0,20}") {
        for transport in [Transport::Query, Transport::Fragment] {
            let address = address(AuthorizationResponse::new(ISSUER, Some(&state)), &uri, transport);
            prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
