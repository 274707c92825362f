//! Private keys sign, and their JWKs and thumbprints are the RFCs'.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
    ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, VerificationAlgorithm,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::{file, read_p12};
use crate::{Algorithm, KeyKind, PrivateKey, PublicKey, UploadRefusal};

const KEYS: [&str; 5] = ["rsa", "p256", "p384", "p521", "ed25519"];

const ALGORITHMS: [(Algorithm, &str, Option<usize>); 7] = [
    (Algorithm::Es256, "p256", Some(64)),
    (Algorithm::Es256Der, "p256", None),
    (Algorithm::Es384, "p384", Some(96)),
    (Algorithm::Es512, "p521", Some(132)),
    (Algorithm::Rs256, "rsa", Some(256)),
    (Algorithm::Ps256, "rsa", Some(256)),
    (Algorithm::EdDsa, "ed25519", Some(64)),
];

fn verification(algorithm: Algorithm) -> &'static dyn VerificationAlgorithm {
    match algorithm {
        Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::Es256Der => &ECDSA_P256_SHA256_ASN1,
        Algorithm::Es384 => &ECDSA_P384_SHA384_FIXED,
        Algorithm::Es512 => &ECDSA_P521_SHA512_FIXED,
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::EdDsa => &ED25519,
    }
}

fn key(name: &str) -> PrivateKey {
    PrivateKey::read(&file(&format!("{name}.key.pem")), None).unwrap()
}

#[test]
fn signatures_verify_by_the_certificate() {
    for (algorithm, name, length) in ALGORITHMS {
        let read = read_p12(&format!("modern-{name}.p12"), "secret").unwrap();
        let signature = read.private_key.unwrap().sign(algorithm, b"message").unwrap();
        assert!(length.is_none_or(|length| signature.len() == length), "{algorithm:?}");
        let public =
            ParsedPublicKey::new(verification(algorithm), read.facts.subject_public_key_info).unwrap();
        public.verify_sig(b"message", &signature).unwrap_or_else(|_| panic!("{algorithm:?}"));
        assert!(public.verify_sig(b"another", &signature).is_err());
    }
}

#[test]
fn a_key_signs_only_by_its_own_algorithms() {
    for name in KEYS {
        let key = key(name);
        for (algorithm, own, _) in ALGORITHMS {
            let signature = key.sign(algorithm, b"");
            let right = if own == name {
                signature.is_ok()
            } else {
                signature == Err(UploadRefusal::UnsuitedAlgorithm)
            };
            assert!(right, "{name} and {algorithm:?}");
        }
    }
}

#[test]
fn a_stored_key_is_read_again() {
    for name in KEYS {
        let key = key(name);
        let again = PrivateKey::read(key.expose_pkcs8().expose(), None).unwrap();
        assert_eq!(again.public(), key.public());
        assert!(again.expose_pkcs8().matches(key.expose_pkcs8().expose()));
    }
}

#[test]
fn a_key_is_not_printed() {
    assert_eq!(format!("{:?}", key("p256")), "PrivateKey(P256, hidden)");
}

/// A `SubjectPublicKeyInfo` of short lengths: an algorithm and a key.
fn spki(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let mut whole = vec![0x30, u8::try_from(algorithm.len() + key.len() + 3).unwrap()];
    whole.extend(algorithm);
    whole.extend([3, u8::try_from(key.len() + 1).unwrap(), 0]);
    whole.extend(key);
    whole
}

/// The example of RFC 8037, appendix A.3.
#[test]
fn the_thumbprint_of_ed25519_is_the_rfcs() {
    let text = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    let x = URL_SAFE_NO_PAD.decode(text).unwrap();
    let key = PublicKey::from_spki(&spki(b"\x30\x05\x06\x03\x2b\x65\x70", &x)).unwrap();
    assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(key.jwk("a"), json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": text}));
}

/// The example of RFC 7638, section 3.1.
#[test]
fn the_thumbprint_of_rsa_is_the_rfcs() {
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let mut whole = b"\x30\x82\x01\x22\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00\x03\x82\x01\x0f\x00\x30\x82\x01\x0a\x02\x82\x01\x01\x00".to_vec();
    whole.extend(URL_SAFE_NO_PAD.decode(n).unwrap());
    whole.extend(b"\x02\x03\x01\x00\x01");
    let key = PublicKey::from_spki(&whole).unwrap();
    assert_eq!(key.kind(), KeyKind::Rsa { bits: 2048 });
    assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(key.jwk("a"), json!({"kty": "RSA", "kid": "a", "n": n, "e": "AQAB"}));
}

#[test]
fn the_jwk_of_a_curve_has_the_points_coordinates() {
    for (name, curve, length) in [("p256", "P-256", 43), ("p384", "P-384", 64), ("p521", "P-521", 88)] {
        let key = key(name);
        let jwk = key.public_jwk(&key.thumbprint());
        assert_eq!((&jwk["kty"], &jwk["crv"]), (&json!("EC"), &json!(curve)));
        for coordinate in ["x", "y"] {
            assert_eq!(jwk[coordinate].as_str().unwrap().len(), length);
        }
        let members = format!(r#"{{"crv":{},"kty":"EC","x":{},"y":{}}}"#, jwk["crv"], jwk["x"], jwk["y"]);
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, members.as_bytes());
        assert_eq!(jwk["kid"], URL_SAFE_NO_PAD.encode(digest));
    }
}

#[test]
fn broken_public_keys_are_none() {
    let p256 = b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    for broken in [
        spki(b"\x30\x05\x06\x03\x2b\x65\x70", &[0; 31]),
        spki(b"\x30\x05\x06\x03\x2b\x65\x71", &[0; 57]),
        spki(p256, &[2; 33]),
        spki(p256, &[2; 65]),
        spki(p256, &[4; 66]),
        spki(b"\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", b"\x30\x00"),
        vec![],
    ] {
        assert_eq!(PublicKey::from_spki(&broken), None);
    }
}
