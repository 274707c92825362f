//! Token exchange: the request, and the actors.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::to_json;
use crate::{
    Actor, ActorTokens, ErrorCode, GRANT_TYPE, ProtocolError, TokenExchangeRequest, TokenType, act_claim,
    actors_of, parse_exchange,
};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

fn form(more: &[(&str, &str)]) -> Vec<(String, String)> {
    let minimal =
        [("grant_type", GRANT_TYPE), ("subject_token", "abc"), ("subject_token_type", ACCESS_TOKEN)];
    minimal.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parse(more: &[(&str, &str)]) -> Result<TokenExchangeRequest, ProtocolError> {
    parse_exchange(&form(more), ActorTokens::Accepted)
}

#[test]
fn all_parameters_of_a_request_are_parsed() {
    let exchange = parse(&[
        ("resource", "PlatformUserStoreService"),
        ("resource", "https://api.example/a?b=c"),
        ("audience", "printer"),
        ("scope", "read write"),
        ("requested_token_type", ACCESS_TOKEN),
        ("actor_token", "def"),
        ("actor_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ("something", "else"),
    ])
    .unwrap();
    assert_eq!(exchange.subject.token.expose(), b"abc");
    assert_eq!(exchange.subject.kind, TokenType::AccessToken);
    assert_eq!(exchange.actor.as_ref().unwrap().kind, TokenType::Jwt);
    assert_eq!(exchange.resources, ["PlatformUserStoreService", "https://api.example/a?b=c"]);
    assert_eq!(exchange.audiences, ["printer"]);
    assert_eq!(exchange.scope.as_ref().unwrap().to_string(), "read write");
    assert!(!format!("{exchange:?}").contains("abc"));
    let minimal = parse(&[("actor_token", ""), ("scope", ""), ("resource", "")]).unwrap();
    assert!(minimal.actor.is_none() && minimal.scope.is_none() && minimal.resources.is_empty());
    for kind in [TokenType::AccessToken, TokenType::IdToken, TokenType::Jwt] {
        assert_eq!(TokenType::named(kind.name()), Some(kind));
    }
}

#[test]
fn each_violation_of_the_request_is_rejected() {
    let jwt = "urn:ietf:params:oauth:token-type:jwt";
    let long = "x".repeat(17_000);
    let many = [("resource", "a"); 33];
    for (more, code) in [
        (&[("subject_token", "abc")][..], ErrorCode::InvalidRequest),
        (&[("scope", ""), ("scope", "")], ErrorCode::InvalidRequest),
        (&[("grant_type", GRANT_TYPE)], ErrorCode::InvalidRequest),
        (&[("requested_token_type", jwt)], ErrorCode::InvalidRequest),
        (&[("requested_token_type", "access_token")], ErrorCode::InvalidRequest),
        (&[("actor_token", "def")], ErrorCode::InvalidRequest),
        (&[("actor_token_type", jwt)], ErrorCode::InvalidRequest),
        (&[("actor_token", "def"), ("actor_token_type", "jwt")], ErrorCode::InvalidRequest),
        (&[("actor_token", &long), ("actor_token_type", jwt)], ErrorCode::InvalidRequest),
        (&[("resource", "https://api.example/#a")], ErrorCode::InvalidTarget),
        (&[("resource", "a b")], ErrorCode::InvalidTarget),
        (&[("audience", &long)], ErrorCode::InvalidTarget),
        (&many, ErrorCode::InvalidTarget),
        (&[("scope", "a  b")], ErrorCode::InvalidScope),
    ] {
        assert_eq!(parse(more).unwrap_err().code, code, "{more:?}");
    }
    let without = |name: &str| {
        let form: Vec<_> = form(&[]).into_iter().filter(|(key, _)| key != name).collect();
        parse_exchange(&form, ActorTokens::Accepted).unwrap_err().code
    };
    for name in ["grant_type", "subject_token", "subject_token_type"] {
        assert_eq!(without(name), ErrorCode::InvalidRequest);
    }
    for kind in ["refresh_token", "saml1", "saml2", "other", ""] {
        let kind = format!("urn:ietf:params:oauth:token-type:{kind}");
        let form = [("grant_type", GRANT_TYPE), ("subject_token", "abc"), ("subject_token_type", &kind)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parse_exchange(&form, ActorTokens::Accepted).unwrap_err().code, ErrorCode::InvalidRequest);
    }
    let other = [("grant_type".to_owned(), "client_credentials".to_owned())];
    let refusal = parse_exchange(&other, ActorTokens::Accepted).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::UnsupportedGrantType);
    let actor = form(&[("actor_token", "def"), ("actor_token_type", jwt)]);
    assert!(parse_exchange(&actor, ActorTokens::Accepted).is_ok());
    let refusal = parse_exchange(&actor, ActorTokens::Refused).unwrap_err();
    assert_eq!((refusal.code, refusal.code.status()), (ErrorCode::InvalidRequest, 400));
}

#[test]
fn actors_are_nested_and_bounded() {
    let actor = |sub: &str, iss: Option<&str>| Actor { sub: sub.to_owned(), iss: iss.map(str::to_owned) };
    // after RFC 8693, section 4.1
    let claims = json!({
        "sub": "user", "act": { "sub": "https://service16.example.com", "act": { "sub": "77", "iss": "x" } },
    });
    let actors = actors_of(&to_json(&claims)).unwrap();
    assert_eq!(actors, [actor("https://service16.example.com", None), actor("77", Some("x"))]);
    assert_eq!(act_claim(&actors).unwrap().unwrap(), claims["act"]);
    assert!(actors_of(&to_json(&json!({ "sub": "user" }))).unwrap().is_empty());
    assert_eq!(act_claim(&[]), Ok(None));
    for wrong in [json!({}), json!("a"), json!({ "sub": 1 }), json!({ "sub": "a", "iss": 1 }), json!(null)] {
        assert!(actors_of(&to_json(&json!({ "act": wrong }))).is_err(), "{wrong}");
    }
    let chain = vec![actor("a", None); 5];
    let five = json!({ "act": act_claim(&chain).unwrap() });
    assert_eq!(actors_of(&to_json(&five)).unwrap(), chain);
    let six = json!({ "act": { "sub": "b", "act": five["act"] } });
    assert!(actors_of(&to_json(&six)).is_err());
    assert!(act_claim(&[&chain[..], &chain[..1]].concat()).is_err());
}

proptest! {
    /// Parsing any request does not panic, and respects the limits.
    #[test]
    fn any_request_is_parsed_or_rejected(
        more in vec((select(vec!["resource", "audience", "scope", "actor_token", "actor_token_type", "x"]), "\\PC{0,40}"), 0..40),
    ) {
        let pairs: Vec<(&str, &str)> = more.iter().map(|(key, value)| (*key, value.as_str())).collect();
        if let Ok(exchange) = parse(&pairs) {
            prop_assert!(exchange.resources.len() <= 32 && exchange.audiences.len() <= 32);
            prop_assert!(exchange.resources.iter().all(|name| !name.contains(['#', ' '])));
        }
    }
}
