//! Claims before and after the rules.

use uuid::Uuid;

use crate::{Destination, Source};

/// The claim types whose meaning the protocol defines, so that rules may not change them.
pub const PROTECTED: [&str; 25] = [
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
    "at_hash",
    "c_hash",
    "s_hash",
    "act",
    "may_act",
    "scope",
    "tid",
    "gid",
    "from_jti",
    "groups_truncated",
];

/// Whether the type is protected. Case counts: `Sub` is not.
pub fn is_protected(claim_type: &str) -> bool {
    PROTECTED.contains(&claim_type)
}

/// A claim about a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The claim's type, e.g. `email`.
    pub claim_type: String,
    /// The claim's value.
    pub value: String,
    /// The claim's source.
    pub source: Source,
}

/// A claim that the rules forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutClaim {
    /// The claim's type.
    pub claim_type: String,
    /// The claim's value.
    pub value: String,
    /// The claim's source.
    pub source: Source,
    /// The tokens that the claim goes into.
    pub destination: Destination,
    /// Whether the claim is disclosed only when it is requested.
    pub on_request: bool,
    /// The ids of the rules that the claim passed, or that added it: each once, in the order of running.
    pub path: Vec<Uuid>,
}

/// The outcome of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The claims, no two of them equal, in the order in which they first appeared.
    pub claims: Vec<OutClaim>,
}
