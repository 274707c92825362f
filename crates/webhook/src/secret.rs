//! Secrets that sign requests, in the form of Standard Webhooks 1.0.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_resource::random;

/// The prefix of a secret.
const PREFIX: &str = "whsec_";

/// A new secret: 32 random bytes.
pub fn new_secret() -> String {
    format!("{PREFIX}{}", BASE64_STANDARD.encode(random::<32>()))
}

/// The key of a secret; none where it is malformed.
pub fn key_of(secret: &str) -> Option<hmac::Key> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    Some(hmac::Key::new(hmac::HMAC_SHA256, &key))
}
