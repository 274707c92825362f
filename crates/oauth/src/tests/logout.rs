//! The logout request.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{CLIENT, parameters};
use crate::{ErrorCode, LogoutRequest};

const NAMES: [&str; 6] =
    ["id_token_hint", "client_id", "post_logout_redirect_uri", "state", "logout_hint", "ui_locales"];

#[test]
fn all_parameters_are_optional() {
    assert_eq!(LogoutRequest::read(&[]), Ok(LogoutRequest::default()));
    let empty: Vec<_> = NAMES.iter().map(|name| (*name, "")).collect();
    assert_eq!(LogoutRequest::read(&parameters(&empty)), Ok(LogoutRequest::default()));
    let all = LogoutRequest::read(&parameters(&[
        ("id_token_hint", "a.b.c"),
        ("client_id", CLIENT),
        ("post_logout_redirect_uri", "https://app.example.com/out?a=b"),
        ("state", "x y"),
        ("logout_hint", "ada@example.com"),
        ("ui_locales", "de-AT en !"),
        ("unknown", "1"),
        ("unknown", "2"),
    ]))
    .unwrap();
    assert_eq!(all.id_token_hint.as_deref(), Some("a.b.c"));
    assert_eq!(all.client_id.as_deref(), Some(CLIENT));
    assert_eq!(all.logout_hint.as_deref(), Some("ada@example.com"));
    assert_eq!(all.ui_locales, ["de-AT", "en"]);
    assert_eq!(all.return_address().unwrap(), "https://app.example.com/out?a=b&state=x%20y");
    assert_eq!(format!("{all:?}"), "LogoutRequest(hidden)");
}

#[test]
fn without_state_the_uri_is_unchanged() {
    for uri in
        ["https://app.example.com/out", "https://app.example.com/out?", "https://app.example.com/out?a=b"]
    {
        let read = LogoutRequest::read(&parameters(&[("post_logout_redirect_uri", uri)])).unwrap();
        assert_eq!(read.return_address().as_deref(), Some(uri));
    }
    assert_eq!(LogoutRequest::read(&parameters(&[("state", "x")])).unwrap().return_address(), None);
}

#[test]
fn repeated_long_and_nul_parameters_are_rejected() {
    for name in NAMES {
        for wrong in [&[(name, "a"), (name, "a")][..], &[(name, ""), (name, "")], &[(name, "a\0")]] {
            let refusal = LogoutRequest::read(&parameters(wrong)).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidRequest, "{name}");
        }
    }
    for (length, is_accepted) in [(4096, true), (4097, false)] {
        assert_eq!(LogoutRequest::read(&parameters(&[("state", &"ä".repeat(length))])).is_ok(), is_accepted);
    }
}

proptest! {
    #[test]
    fn any_parameters_are_parsed_or_rejected(pairs in vec((select(NAMES.to_vec()), "\\PC{0,30}|[\\x00-\\x7f]{0,9}"), 0..6)) {
        let sent: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        if let Ok(read) = LogoutRequest::read(&parameters(&sent)) {
            let sent = |name| sent.iter().find(|(key, value)| *key == name && !value.is_empty());
            prop_assert_eq!(read.state.as_deref(), sent("state").map(|(_, value)| *value));
            let is_present = sent("post_logout_redirect_uri").is_some();
            prop_assert_eq!(read.return_address().is_some(), is_present);
        }
    }
}
