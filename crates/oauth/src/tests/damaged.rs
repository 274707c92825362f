//! Damaged and arbitrary tokens and keys: none verifies, none panics.

use std::sync::LazyLock;

use chancery_record::Secret;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{claims, expected, proof_claims, request, signer, to_jwk};
use crate::{
    AssertionKeys, Jwk, JwkSet, PublicKey,
    claims::{from_base64, to_base64},
    unverified_client_id, verify_assertion, verify_proof,
};

/// One assertion of each algorithm, with its key.
static ASSERTIONS: LazyLock<Vec<(String, Jwk)>> = LazyLock::new(|| {
    let sign = |(algorithm, signer): (_, &signer::Signer)| {
        (signer.sign(algorithm, &json!({}), &claims()), to_jwk(&signer.jwk()))
    };
    signer::asymmetric().into_iter().map(sign).collect()
});

static PROOFS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sign = |(algorithm, signer): (_, &signer::Signer)| {
        signer.sign(algorithm, &json!({ "typ": "dpop+jwt", "jwk": signer.jwk() }), &proof_claims())
    };
    signer::asymmetric().into_iter().map(sign).collect()
});

/// A token with one character changed to another.
fn changed(token: &str, at: usize, letter: char) -> Option<String> {
    let at = at % token.len();
    let changed = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
    (changed != token).then_some(changed)
}

fn letters() -> impl Strategy<Value = char> {
    select("ABCXYZabcxyz0189-_.= +/~".chars().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn a_changed_assertion_never_verifies(which in 0_usize..10, at in any::<usize>(), letter in letters()) {
        let (token, jwk) = &ASSERTIONS[which];
        if let Some(token) = changed(token, at, letter) {
            prop_assert!(verify_assertion(&token, AssertionKeys::Public(std::slice::from_ref(jwk)), &expected()).is_err());
            unverified_client_id(&token);
        }
    }

    #[test]
    fn a_changed_proof_never_verifies(which in 0_usize..10, at in any::<usize>(), letter in letters()) {
        if let Some(token) = changed(&PROOFS[which], at, letter) {
            prop_assert!(verify_proof(&token, &request()).is_err());
        }
    }

    /// A token with a flipped bit in a decoded part never verifies.
    #[test]
    fn a_flipped_bit_never_verifies(which in 0_usize..10, part in 0_usize..3, at in any::<usize>(), bit in 0..8) {
        let (token, jwk) = &ASSERTIONS[which];
        let mut parts: Vec<Vec<u8>> = token.split('.').map(|part| from_base64(part).unwrap()).collect();
        let index = at % parts[part].len();
        parts[part][index] ^= 1_u8 << bit;
        let token = parts.iter().map(|part| to_base64(part)).collect::<Vec<_>>().join(".");
        prop_assert!(verify_assertion(&token, AssertionKeys::Public(std::slice::from_ref(jwk)), &expected()).is_err());
    }

    #[test]
    fn combined_parts_of_two_tokens_never_verify(one in 0_usize..10, other in 0_usize..10, cut in 1_usize..3) {
        prop_assume!(one != other);
        let (first, second) = (&ASSERTIONS[one], &ASSERTIONS[other]);
        let parts = first.0.split('.').take(cut).chain(second.0.split('.').skip(cut));
        let token = parts.collect::<Vec<_>>().join(".");
        prop_assume!(token != first.0 && token != second.0);
        let keys = [first.1.clone(), second.1.clone()];
        prop_assert!(verify_assertion(&token, AssertionKeys::Public(&keys), &expected()).is_err());
    }

    #[test]
    fn any_text_is_rejected(text in "\\PC{0,200}") {
        prop_assert!(verify_assertion(&text, AssertionKeys::Secrets(&[Secret::new([0; 64])]), &expected()).is_err());
        prop_assert!(verify_proof(&text, &request()).is_err());
        prop_assert!(unverified_client_id(&text).is_none());
    }

    #[test]
    fn any_bytes_are_rejected_as_a_key(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(JwkSet::parse(&bytes).is_err());
        prop_assert!(PublicKey::from_spki(&bytes).is_err());
    }

    /// A changed key of a certificate is parsed or rejected, without a panic.
    #[test]
    fn a_changed_certificate_key_never_panics(which in 0_usize..10, at in any::<usize>(), byte in any::<u8>()) {
        let mut spki = signer::asymmetric()[which].1.spki();
        let index = at % spki.len();
        spki[index] = byte;
        if let Ok(key) = PublicKey::from_spki(&spki) {
            prop_assert_eq!(&to_jwk(&serde_json::from_str(&key.canonical()).unwrap()).key, &key);
        }
    }
}
