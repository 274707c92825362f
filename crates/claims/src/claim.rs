//! Claims as they come and as they leave.

use uuid::Uuid;

use crate::{Destination, Source};

/// The types of claims that the protocol gives a meaning, which is not the rules' to change.
pub const PROTECTED: [&str; 15] = [
    "sub",
    "iss",
    "aud",
    "exp",
    "iat",
    "nbf",
    "jti",
    "nonce",
    "auth_time",
    "acr",
    "amr",
    "azp",
    "sid",
    "cnf",
    "client_id",
];

/// Whether the type is a protected one. Types are compared as they are written: `Sub` is not.
pub fn is_protected(claim_type: &str) -> bool {
    PROTECTED.contains(&claim_type)
}

/// Something said about a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// What is said, e.g. `email`.
    pub claim_type: String,
    /// The rest of it.
    pub value: String,
    /// Who says it.
    pub source: Source,
}

/// A claim that the rules forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutClaim {
    /// What is said.
    pub claim_type: String,
    /// The rest of it.
    pub value: String,
    /// Who says it.
    pub source: Source,
    /// Where it goes.
    pub destination: Destination,
    /// Whether it is told only when it was asked for.
    pub on_request: bool,
    /// The rules that it passed, or that made it, in the order in which they ran, each once.
    pub path: Vec<Uuid>,
}

/// What became of the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The claims, no two of them equal, in the order in which they first appeared.
    pub claims: Vec<OutClaim>,
}
