//! The hashes of tokens in an ID token: `at_hash`, `c_hash`.

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};

use crate::claims::to_base64;

/// The left half of a token's digest with the hash of the ID token's algorithm, in base64url (OpenID Connect Core 1.0,
/// section 3.1.3.6).
pub fn half_hash(token: &str, algorithm: &str) -> String {
    let hash = match algorithm {
        name if name.ends_with("256") => digest(&SHA256, token.as_bytes()),
        name if name.ends_with("384") => digest(&SHA384, token.as_bytes()),
        _ => digest(&SHA512, token.as_bytes()),
    };
    to_base64(hash.as_ref().split_at(hash.as_ref().len() / 2).0)
}

#[cfg(test)]
mod tests {
    use super::half_hash;

    /// OpenID Connect Core 1.0, appendix A.3: the token and its `at_hash`.
    #[test]
    fn the_hash_matches_the_example_of_the_specification() {
        let token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";
        assert_eq!(half_hash(token, "RS256"), "77QmUPtjPfzWtF2AnpK9RQ");
    }
}
