//! Keys, assertions and proofs: our own, the standards' examples, another implementation's, and damaged ones.
//! Authorization requests by the rules of the specification, and answers.

mod answer;
mod assertion;
mod authorize;
mod check;
mod dpop;
mod exchange;
mod foreign;
mod jwk;
mod logout;
mod noise;
mod profile;
mod redirect;
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

/// The parameters of an authorization request with some of them others, or more; one without a value is taken
/// away.
pub fn asking(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let least = [
        ("client_id", CLIENT),
        ("redirect_uri", REDIRECT_URI),
        ("response_type", "code"),
        ("scope", "openid email"),
        ("state", "a state"),
    ];
    let kept = least.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let all: Vec<_> = kept.chain(changes).copied().filter(|(_, value)| !value.is_empty()).collect();
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
