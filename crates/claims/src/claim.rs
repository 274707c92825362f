//! Claims before and after the rules.

use uuid::Uuid;

use crate::{Destination, Source};

/// The claim types that the protocol defines. Rules must not change them.
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

/// Whether the type is protected. Types are case-sensitive: `Sub` is not protected.
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
    /// The tokens that contain the claim.
    pub destination: Destination,
    /// Whether the claim is included only if it is requested.
    pub on_request: bool,
    /// The ids of the rules that forwarded or added the claim, in the order of running, without duplicates.
    pub path: Vec<Uuid>,
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The claims without duplicates, in the order of first appearance.
    pub claims: Vec<OutClaim>,
}
