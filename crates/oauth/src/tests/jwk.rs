//! Public keys: the standards' examples, and rejected keys.

use serde_json::{Value, json};

use super::{signer, to_json, to_jwk, with};
use crate::{
    Algorithm, Jwk, JwkSet, KeyFault, KeyProblem, MAX_LENGTH, PublicKey, Purpose, claims::to_base64,
};

/// The modulus of RFC 7638, section 3.1.
const N: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi\
    FV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgd\
    AZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEg\
    U8awapJzKnqDKgw";

fn rsa() -> Value {
    json!({ "kty": "RSA", "n": N, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29" })
}

fn fault(jwk: &Value) -> KeyFault {
    Jwk::read(&to_json(jwk)).unwrap_err()
}

#[test]
fn thumbprints_match_the_standards() {
    let thumbprint = |jwk: &Value| to_jwk(jwk).key.thumbprint();
    assert_eq!(thumbprint(&rsa()), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    // RFC 8037, appendix A.3
    let okp = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    assert_eq!(thumbprint(&okp), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    // RFC 9449, sections 4.2 and 6.1
    let ec = json!({
        "kty": "EC", "crv": "P-256", "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    });
    assert_eq!(thumbprint(&ec), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
}

#[test]
fn use_key_ops_and_alg_are_respected() {
    let (rs256, ps256) = (Algorithm::Rs256, Algorithm::Ps256);
    let any = with(rsa(), "alg", Value::Null);
    let may_verify = |jwk: &Value| [rs256, ps256].map(|algorithm| to_jwk(jwk).may_verify(algorithm));
    assert_eq!(may_verify(&any), [true, true]);
    assert_eq!(may_verify(&rsa()), [true, false]);
    assert_eq!(may_verify(&with(any.clone(), "alg", json!("RSA-OAEP-256"))), [false, false]);
    for (member, value, signature, encryption) in [
        ("use", json!("sig"), true, false),
        ("use", json!("enc"), false, true),
        ("use", json!("other"), false, false),
        ("key_ops", json!(["verify"]), true, false),
        ("key_ops", json!(["wrapKey", "encrypt"]), false, true),
        ("key_ops", json!([]), false, false),
    ] {
        let jwk = with(any.clone(), member, value.clone());
        let allowed = [Purpose::Signature, Purpose::Encryption].map(|purpose| to_jwk(&jwk).allows(purpose));
        assert_eq!(allowed, [signature, encryption], "{value}");
        assert_eq!(may_verify(&jwk), [signature, signature], "{value}");
    }
    for operations in [json!(["verify", "verify"]), json!("verify"), json!([1]), json!(null)] {
        let mut jwk = any.clone();
        jwk["key_ops"] = operations;
        assert!(matches!(fault(&jwk), KeyFault::Malformed(_)), "{jwk}");
    }
    let both = with(with(any, "use", json!("sig")), "key_ops", json!(["encrypt"]));
    assert!(matches!(fault(&both), KeyFault::Malformed(_)));
}

#[test]
fn private_and_symmetric_keys_are_rejected() {
    for member in ["d", "p", "q", "dp", "dq", "qi", "oth", "priv"] {
        assert_eq!(fault(&with(rsa(), member, json!("AQAB"))), KeyFault::Private, "{member}");
    }
    assert_eq!(fault(&json!({ "kty": "unknown", "d": "AQAB" })), KeyFault::Private);
    assert_eq!(fault(&json!({ "kty": "oct", "k": "AQAB" })), KeyFault::Symmetric);
    assert_eq!(fault(&with(rsa(), "k", json!("AQAB"))), KeyFault::Symmetric);
    assert!(KeyFault::Private.to_string().contains("private"));
}

#[test]
fn sizes_and_forms_are_checked() {
    let modulus = |bytes: usize| json!(to_base64(&vec![0xff; bytes]));
    assert_eq!(fault(&with(rsa(), "n", modulus(128))), KeyFault::Weak);
    assert_eq!(fault(&with(rsa(), "n", modulus(255))), KeyFault::Weak);
    assert_eq!(fault(&with(rsa(), "n", modulus(1025))), KeyFault::Weak);
    to_jwk(&with(rsa(), "n", modulus(1024)));
    let leading = to_base64(&[vec![0], vec![0xff; 256]].concat());
    let mut even = vec![0xff; 256];
    even[255] = 0xfe;
    let point = signer::P256.jwk();
    let ed25519 = signer::ED25519.jwk();
    for wrong in [
        with(rsa(), "n", json!(leading)),
        with(rsa(), "n", json!(to_base64(&even))),
        with(rsa(), "n", json!(format!("{N}=="))),
        with(rsa(), "n", json!(format!(" {N}"))),
        with(rsa(), "n", Value::Null),
        with(rsa(), "e", json!("AQ")),
        with(rsa(), "e", json!("AAEAAQ")),
        with(rsa(), "e", json!("AQAA")),
        with(rsa(), "e", json!("")),
        with(rsa(), "e", json!("AQAAAAAAAAAB")),
        with(rsa(), "e", json!(65537)),
        with(rsa(), "kty", Value::Null),
        with(rsa(), "kid", json!("")),
        with(rsa(), "kid", json!("k".repeat(513))),
        with(rsa(), "kid", json!(1)),
        with(rsa(), "alg", json!(1)),
        with(rsa(), "use", json!(1)),
        with(point.clone(), "x", point["y"].clone()),
        with(point.clone(), "x", json!(to_base64(&[1; 31]))),
        with(point.clone(), "x", json!(to_base64(&[0; 32]))),
        with(point.clone(), "crv", json!("P-384")),
        with(point.clone(), "crv", Value::Null),
        with(ed25519.clone(), "x", json!(to_base64(&[1; 31]))),
        with(ed25519.clone(), "crv", Value::Null),
    ] {
        assert!(matches!(fault(&wrong), KeyFault::Malformed(_)), "{wrong}");
    }
    assert_eq!(fault(&with(point, "crv", json!("secp256k1"))), KeyFault::Unsupported);
    assert_eq!(fault(&with(ed25519, "crv", json!("X25519"))), KeyFault::Unsupported);
    assert_eq!(fault(&json!({ "kty": "AKP" })), KeyFault::Unsupported);
    assert_eq!(Jwk::parse(br#"{"kty":"RSA","kty":"RSA"}"#), Err(KeyFault::NotJson));
    assert_eq!(Jwk::parse(rsa().to_string().as_bytes()).unwrap(), to_jwk(&rsa()));
}

#[test]
fn sets_are_bounded_and_have_unique_kids() {
    let parse = |value: Value| JwkSet::parse(value.to_string().as_bytes());
    let at = |position, fault| Err(KeyProblem { position: Some(position), fault });
    let named = |kid: &str| with(rsa(), "kid", json!(kid));
    let set = parse(json!({ "keys": [named("a"), { "kty": "AKP" }, named("b")] })).unwrap();
    assert_eq!((set.keys.len(), set.skipped), (2, vec![1]));
    assert_eq!(parse(json!({ "keys": [named("a"), named("b"), named("a")] })), at(2, KeyFault::TwiceNamed));
    assert_eq!(
        parse(json!({ "keys": [named("a"), with(rsa(), "d", json!("AQ"))] })),
        at(1, KeyFault::Private)
    );
    assert_eq!(parse(json!({ "keys": [{ "kty": "oct", "k": "AQ" }] })), at(0, KeyFault::Symmetric));
    assert_eq!(parse(json!({ "keys": [1] })), at(0, KeyFault::Malformed("kty is missing")));
    for (wrong, fault) in [
        (json!({ "keys": [] }), KeyFault::Empty),
        (json!({ "keys": [{ "kty": "AKP" }] }), KeyFault::Empty),
        (json!({ "keys": vec![json!({ "kty": "AKP" }); 101] }), KeyFault::TooMany),
        (json!({ "keys": {} }), KeyFault::NotASet),
        (json!([]), KeyFault::NotASet),
        (rsa(), KeyFault::NotASet),
        (json!({ "keys": [], "more": "x".repeat(MAX_LENGTH) }), KeyFault::TooLong),
    ] {
        assert_eq!(parse(wrong), Err(fault.into()));
    }
    assert_eq!(JwkSet::parse(br#"{"keys":[],"keys":[]}"#), Err(KeyFault::NotJson.into()));
    let problem = parse(json!({ "keys": [{ "kty": "oct" }] })).unwrap_err();
    assert_eq!(problem.to_string(), "/keys/0: is a symmetric key: send a public one");
}

#[test]
fn keys_of_certificates_are_parsed() {
    for (algorithm, signer) in signer::asymmetric() {
        let spki = signer.spki();
        let key = PublicKey::from_spki(&spki).unwrap();
        assert!(key.supports(algorithm));
        assert_eq!(Jwk::of(key.clone()).key, to_jwk(&signer.jwk()).key);
        assert!(PublicKey::from_spki(&[&spki[..], &[0]].concat()).is_err(), "{algorithm:?}");
        for length in 0..spki.len() {
            assert!(PublicKey::from_spki(&spki[..length]).is_err(), "{algorithm:?} {length}");
        }
    }
    assert!(matches!(PublicKey::from_spki(b"no key"), Err(KeyFault::Malformed(_))));
    let unknown = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x6e\x03\x21\x00";
    let unknown = [&unknown[..], &[7; 32]].concat();
    assert_eq!(PublicKey::from_spki(&unknown), Err(KeyFault::Unsupported), "X25519");
    // without its leading zero, and with all lengths one less, the same modulus is a negative number
    let mut negative = signer::RSA.spki();
    for (index, length) in [(3, 0x22), (22, 0x0f), (27, 0x0a), (31, 0x01)] {
        assert_eq!(negative[index], length);
        negative[index] = length.wrapping_sub(1);
    }
    negative[30] = 1;
    negative[31] = 0;
    assert_eq!(negative.remove(32), 0);
    assert!(matches!(PublicKey::from_spki(&negative), Err(KeyFault::Malformed(_))));
}
