//! Proof Key for Code Exchange (RFC 7636): only the client that requested a code can redeem it. S256 is the only method.

use std::fmt;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, SHA256_OUTPUT_LEN, digest},
};

use crate::{
    ErrorCode, ProtocolError,
    claims::{from_base64, to_base64},
};

/// The accepted lengths of a verifier, in characters (section 4.1).
const VERIFIER_LENGTH: std::ops::RangeInclusive<usize> = 43..=128;

/// A code challenge: the SHA-256 of a verifier (section 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge([u8; SHA256_OUTPUT_LEN]);

impl Challenge {
    /// Reads a challenge: 43 characters of base64url, whose unused bits must be zero.
    pub fn read(text: &str) -> Option<Self> {
        from_base64(text)?.try_into().ok().map(Self)
    }

    /// The challenge of a verifier.
    pub fn of(verifier: &str) -> Self {
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, verifier.as_bytes()).as_ref());
        Self(hash)
    }

    /// Compares the challenge with the hash of a verifier in constant time.
    fn is_of(&self, verifier: &str) -> bool {
        verify_slices_are_equal(&self.0, digest(&SHA256, verifier.as_bytes()).as_ref()).is_ok()
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&to_base64(&self.0))
    }
}

/// Verifies the `code_verifier` of a token request against the challenge that the code is bound to (section 4.6). An
/// empty verifier counts as absent. A verifier without a challenge is rejected, so that an attacker cannot remove the
/// challenge from the request (RFC 9700, section 4.8.2).
///
/// # Errors
/// `invalid_grant`: one is present without the other, or they do not match.
pub fn verify_pkce(challenge: Option<&Challenge>, verifier: Option<&str>) -> Result<(), ProtocolError> {
    match (challenge, verifier.filter(|verifier| !verifier.is_empty())) {
        (None, None) => Ok(()),
        (Some(challenge), Some(verifier)) if is_verifier(verifier) && challenge.is_of(verifier) => Ok(()),
        (Some(_), Some(_)) => Err(refuse("code_verifier is not the one of the code_challenge.")),
        (Some(_), None) => Err(refuse("code_verifier is missing.")),
        (None, Some(_)) => Err(refuse("There is a code_verifier, and there was no code_challenge.")),
    }
}

/// Whether a text is a `code-verifier`: `43*128unreserved` (section 4.1).
fn is_verifier(text: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    VERIFIER_LENGTH.contains(&text.len()) && text.bytes().all(is_unreserved)
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidGrant, detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Challenge, verify_pkce};
    use crate::ErrorCode;

    // RFC 7636, appendix B
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn challenge_of(verifier: &str) -> Challenge {
        let hash = super::digest(&super::SHA256, verifier.as_bytes());
        Challenge::read(&super::to_base64(hash.as_ref())).unwrap()
    }

    #[test]
    fn the_example_of_the_specification_verifies() {
        let challenge = Challenge::read(CHALLENGE).unwrap();
        assert_eq!(challenge.to_string(), CHALLENGE);
        assert_eq!(verify_pkce(Some(&challenge), Some(VERIFIER)), Ok(()));
    }

    #[test]
    fn challenge_and_verifier_are_both_present_or_both_absent() {
        let challenge = Challenge::read(CHALLENGE).unwrap();
        assert_eq!(verify_pkce(None, None), Ok(()));
        assert_eq!(verify_pkce(None, Some("")), Ok(()));
        for (challenge, verifier) in [
            (None, Some(VERIFIER)),
            (Some(&challenge), None),
            (Some(&challenge), Some("")),
            // an eavesdropper knows the challenge itself
            (Some(&challenge), Some(CHALLENGE)),
            (Some(&challenge), Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK")),
        ] {
            assert_eq!(verify_pkce(challenge, verifier).unwrap_err().code, ErrorCode::InvalidGrant);
        }
    }

    #[test]
    fn a_verifier_is_43_to_128_unreserved_characters() {
        for (verifier, is_valid) in [
            ("a".repeat(42), false),
            ("a".repeat(43), true),
            ("-._~".repeat(32), true),
            ("a".repeat(129), false),
            ("+".repeat(43), false),
            ("ä".repeat(43), false),
            (format!("{} ", "a".repeat(43)), false),
        ] {
            assert_eq!(
                verify_pkce(Some(&challenge_of(&verifier)), Some(&verifier)).is_ok(),
                is_valid,
                "{verifier}"
            );
        }
    }

    #[test]
    fn a_challenge_is_43_characters_of_base64url() {
        for wrong in [
            "",
            "a",
            &CHALLENGE[1..],
            &format!("{CHALLENGE}a"),
            &format!("{CHALLENGE}="),
            // unused bits
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cN",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM",
        ] {
            assert_eq!(Challenge::read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_challenge_accepts_only_its_own_verifier(one in "[A-Za-z0-9._~-]{43,128}", other in "\\PC{0,130}") {
            let challenge = challenge_of(&one);
            prop_assert!(verify_pkce(Some(&challenge), Some(&one)).is_ok());
            prop_assert_eq!(verify_pkce(Some(&challenge), Some(&other)).is_ok(), one == other);
        }
    }
}
