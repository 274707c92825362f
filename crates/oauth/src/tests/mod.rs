//! Keys, assertions and proofs: generated ones, the standards' examples, those of another implementation, and damaged ones.
//! Authorization requests by the rules of the specification, and authorization responses.

mod assertion;
mod authorize;
mod check;
mod damaged;
mod dpop;
mod exchange;
mod jwk;
mod logout;
mod other_implementation;
mod profile;
mod redirect;
mod response;
mod signer;

use chancery_record::{Json, Timestamp, read_json};
use serde_json::{Value, json};

use crate::{Expected, Jwk, LEEWAY, MAX_LIFETIME, NoncePolicy, Request};

/// The time of the tests, in seconds since 1970.
pub const NOW: i64 = 1_800_000_000;
pub const CLIENT: &str = "0190b5a0-0000-7000-8000-000000000001";
pub const REDIRECT_URI: &str = "https://app.example.com/back";
pub const ISSUER: &str = "https://id.example.org";
pub const TOKEN_ENDPOINT: &str = "https://id.example.org/connect/token";

pub fn now() -> Timestamp {
    Timestamp(NOW * 1000)
}

pub fn expected() -> Expected<'static> {
    Expected {
        client_ids: &[CLIENT, "invoice printer"],
        audiences: &[ISSUER, TOKEN_ENDPOINT],
        one_audience: false,
        now: now(),
        max_lifetime: MAX_LIFETIME,
        leeway: LEEWAY,
    }
}

pub fn request() -> Request<'static> {
    Request {
        method: "POST",
        url: TOKEN_ENDPOINT,
        access_token: None,
        nonce: NoncePolicy::Ignored,
        now: now(),
    }
}

/// Parameters from pairs.
pub fn parameters(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The parameters of a minimal authorization request with changes; an empty value removes a parameter.
pub fn request_parameters(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let minimal = [
        ("client_id", CLIENT),
        ("redirect_uri", REDIRECT_URI),
        ("response_type", "code"),
        ("scope", "openid email"),
        ("state", "a state"),
    ];
    let unchanged = minimal.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let all: Vec<_> = unchanged.chain(changes).copied().filter(|(_, value)| !value.is_empty()).collect();
    parameters(&all)
}

/// The claims of a valid assertion.
pub fn claims() -> Value {
    json!({
        "iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "jti": "one",
        "iat": NOW - 10, "nbf": NOW - 10, "exp": NOW + 300,
    })
}

/// The claims of a valid proof.
pub fn proof_claims() -> Value {
    json!({ "jti": "one", "htm": "POST", "htu": TOKEN_ENDPOINT, "iat": NOW - 10 })
}

/// The object with one member changed; `null` removes it.
pub fn with(mut object: Value, name: &str, value: Value) -> Value {
    let members = object.as_object_mut().unwrap();
    members.remove(name);
    if !value.is_null() {
        members.insert(name.to_owned(), value);
    }
    object
}

pub fn to_json(value: &Value) -> Json {
    read_json(value.to_string().as_bytes()).unwrap()
}

pub fn to_jwk(value: &Value) -> Jwk {
    Jwk::read(&to_json(value)).unwrap()
}
