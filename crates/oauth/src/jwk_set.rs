//! JWK sets (RFC 7517, section 5) that a client app uploads or publishes.

use std::collections::HashSet;

use chancery_record::{Json, read_json};

use crate::{Jwk, KeyFault, KeyProblem, MAX_LENGTH};

/// The maximum number of keys in a set.
pub const MAX_KEYS: usize = 100;

/// The keys of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwkSet {
    /// The supported keys, at least one.
    pub keys: Vec<Jwk>,
    /// The indexes of keys of an unsupported kind or curve. A set that a client publishes for many servers may have such
    /// keys (RFC 7517, section 5); in an upload they should be rejected.
    pub skipped: Vec<usize>,
}

impl JwkSet {
    /// Parses a set.
    ///
    /// # Errors
    /// The fault, and the key that has it.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyProblem> {
        if bytes.len() > MAX_LENGTH {
            return Err(KeyFault::TooLong.into());
        }
        let json = read_json(bytes).map_err(|_| KeyFault::NotJson)?;
        let Some(Json::Array(items)) = json.get("keys") else { return Err(KeyFault::NotASet.into()) };
        if items.len() > MAX_KEYS {
            return Err(KeyFault::TooMany.into());
        }
        let mut set = Self { keys: Vec::new(), skipped: Vec::new() };
        let mut kids = HashSet::new();
        for (position, item) in items.iter().enumerate() {
            let problem = |fault| KeyProblem { position: Some(position), fault };
            match Jwk::read(item) {
                Ok(jwk) => {
                    if jwk.kid.as_ref().is_some_and(|kid| !kids.insert(kid.clone())) {
                        return Err(problem(KeyFault::TwiceNamed));
                    }
                    set.keys.push(jwk);
                }
                Err(KeyFault::Unsupported) => set.skipped.push(position),
                Err(fault) => return Err(problem(fault)),
            }
        }
        if set.keys.is_empty() { Err(KeyFault::Empty.into()) } else { Ok(set) }
    }
}
