//! The signing keys of a provider.

use chancery_oauth::{Jwk, JwkSet};

use crate::Check;

/// Reads a provider's JWK set. Returns the usable keys.
pub fn check_keys(document: &[u8]) -> (Check, Vec<Jwk>) {
    match JwkSet::parse(document) {
        Ok(set) => {
            let detail = format!("The provider publishes keys that can be used: {}.", set.keys.len());
            (Check::new("keys", true, detail), set.keys)
        }
        Err(problem) => {
            (Check::failed("keys", format!("The provider's keys cannot be used: {problem}.")), Vec::new())
        }
    }
}
