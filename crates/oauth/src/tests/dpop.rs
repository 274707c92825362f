//! DPoP proofs: the examples of RFC 9449, valid ones, and ones that break one rule each.

use chancery_record::Timestamp;
use serde_json::{Value, json};

use super::{NOW, now, proof_claims, request, signer, to_jwk, with};
use crate::{
    Algorithm, ErrorCode, NoncePolicy, Nonces, Proof, ProtocolError, Request, claims::to_base64, verify_proof,
};

/// The proof of section 4.2.
const TOKEN_REQUEST: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0\
    RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In\
    19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwia\
    WF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
/// The proof of section 7.1, with its access token.
const RESOURCE_REQUEST: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0\
    RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In\
    19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0Z\
    WRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9\
    RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
const ACCESS_TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
/// The thumbprint of the key of both (section 6.1).
const JKT: &str = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";

fn header() -> Value {
    json!({ "typ": "dpop+jwt", "jwk": signer::P256.jwk() })
}

fn verify(header: &Value, claims: &Value, request: &Request<'_>) -> Result<Proof, ProtocolError> {
    verify_proof(&signer::P256.sign(Algorithm::Es256, header, claims), request)
}

fn error_of(header: &Value, claims: &Value) -> &'static str {
    let refusal = verify(header, claims, &request()).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::InvalidDpopProof);
    refusal.detail
}

#[test]
fn the_examples_of_the_specification_verify() {
    let at =
        Request { url: "https://server.example.com/token", now: Timestamp(1_562_262_616_000), ..request() };
    let proof = verify_proof(TOKEN_REQUEST, &at).unwrap();
    assert_eq!((proof.jkt.as_str(), proof.jti.as_str()), (JKT, "-BwC3ESc6acc2lTc"));
    let at = Request {
        method: "GET",
        url: "https://resource.example.org/protectedresource?page=2",
        access_token: Some(ACCESS_TOKEN),
        ..at
    };
    let proof = verify_proof(RESOURCE_REQUEST, &at).unwrap();
    assert_eq!((proof.jkt.as_str(), proof.jti.as_str()), (JKT, "e1j3V_bKic8-LAEB"));
    let other = Request { access_token: Some("another"), ..at };
    assert!(verify_proof(RESOURCE_REQUEST, &other).unwrap_err().detail.contains("ath"));
}

#[test]
fn proofs_of_each_asymmetric_algorithm_verify() {
    for (algorithm, signer) in signer::asymmetric() {
        let token = signer.sign(algorithm, &with(header(), "jwk", signer.jwk()), &proof_claims());
        let proof = verify_proof(&token, &request()).unwrap();
        assert_eq!(proof.jkt, to_jwk(&signer.jwk()).key.thumbprint());
        assert_eq!(proof.issued_on, Timestamp((NOW - 10) * 1000));
        assert_eq!(proof.expires_on, Timestamp((NOW + 291) * 1000));
        assert_eq!(proof.nonce, None);
        // the id must be stored as long as the proof is accepted
        let last = Request { now: proof.expires_on.plus(-1), ..request() };
        assert!(verify_proof(&token, &last).is_ok());
        assert!(verify_proof(&token, &Request { now: proof.expires_on, ..request() }).is_err());
    }
}

#[test]
fn each_violation_of_the_claims_is_rejected() {
    let long = "x".repeat(257);
    for (name, value, detail) in [
        ("jti", Value::Null, "jti"),
        ("jti", json!(""), "jti"),
        ("jti", json!(long), "jti"),
        ("htm", Value::Null, "htm"),
        ("htm", json!("GET"), "htm"),
        ("htm", json!("post"), "htm"),
        ("htu", Value::Null, "htu"),
        ("htu", json!("https://id.example.org/connect"), "htu"),
        ("htu", json!("http://id.example.org/connect/token"), "htu"),
        ("htu", json!("/connect/token"), "htu"),
        ("iat", Value::Null, "iat"),
        ("iat", json!("now"), "iat"),
        ("iat", json!(NOW - 301), "iat"),
        ("iat", json!(NOW + 61), "iat"),
        ("iat", json!(i64::MIN), "iat"),
    ] {
        let error = error_of(&header(), &with(proof_claims(), name, value.clone()));
        assert!(error.contains(detail), "{name} {value}: {error}");
    }
    for (name, value) in [
        ("iat", json!(NOW - 300)),
        ("iat", json!(NOW + 60)),
        ("htu", json!("HTTPS://id.EXAMPLE.org:443/connect/token?a#b")),
        ("ath", json!("for no access token")),
    ] {
        assert!(verify(&header(), &with(proof_claims(), name, value), &request()).is_ok(), "{name}");
    }
}

#[test]
fn each_violation_of_the_header_is_rejected() {
    let private = with(signer::P256.jwk(), "d", json!("AQAB"));
    for (name, value, detail) in [
        ("typ", Value::Null, "typ"),
        ("typ", json!("JWT"), "typ"),
        ("crit", json!(["b64"]), "crit"),
        ("jwk", Value::Null, "jwk is missing"),
        ("jwk", json!("key"), "cannot be read"),
        ("jwk", private, "private"),
        ("jwk", json!({ "kty": "oct", "k": to_base64(&[1; 32]) }), "symmetric"),
        ("jwk", json!({ "kty": "RSA", "n": to_base64(&[255; 128]), "e": "AQAB" }), "2048"),
        ("jwk", with(signer::P256.jwk(), "crv", json!("secp256k1")), "not served"),
        ("jwk", signer::P384.jwk(), "signature"),
        ("jwk", signer::RSA.jwk(), "signature"),
        ("jwk", with(signer::P256.jwk(), "use", json!("enc")), "signature"),
        ("jwk", with(signer::P256.jwk(), "alg", json!("ES384")), "signature"),
    ] {
        let error = error_of(&with(header(), name, value.clone()), &proof_claims());
        assert!(error.contains(detail), "{name} {value}: {error}");
    }
    let signer = signer::Signer::Secret(signer::secret(64));
    let token = signer.sign(Algorithm::Hs256, &header(), &proof_claims());
    assert!(verify_proof(&token, &request()).unwrap_err().detail.contains("private key"));
    let two = format!("{token}, {token}");
    assert_eq!(verify_proof(&two, &request()).unwrap_err().code, ErrorCode::InvalidDpopProof);
}

#[test]
fn the_proof_must_have_the_hash_of_the_access_token() {
    let at = Request { access_token: Some(ACCESS_TOKEN), ..request() };
    let with_hash = |hash: Value| with(proof_claims(), "ath", hash);
    assert!(verify(&header(), &with_hash(json!("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")), &at).is_ok());
    for wrong in [Value::Null, json!(""), json!("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo="), json!(1)] {
        assert!(verify(&header(), &with_hash(wrong), &at).unwrap_err().detail.contains("ath"));
    }
}

#[test]
fn a_nonce_is_requested_only_if_the_proof_is_otherwise_valid() {
    let nonces = Nonces::new(&[1; 32]);
    let valid = nonces.issue(now());
    let old = nonces.issue(Timestamp((NOW - 1000) * 1000));
    let given = |nonce: Value| with(proof_claims(), "nonce", nonce);
    let verify =
        |nonce: Value, policy| verify(&header(), &given(nonce), &Request { nonce: policy, ..request() });
    let (required, optional) = (NoncePolicy::Required(&nonces), NoncePolicy::Optional(&nonces));
    for policy in [required, optional] {
        assert_eq!(verify(json!(valid), policy).unwrap().nonce.as_deref(), Some(valid.as_str()));
        for wrong in [json!(old), json!(""), json!(1), json!("x".repeat(257))] {
            assert_eq!(verify(wrong, policy).unwrap_err().code, ErrorCode::UseDpopNonce);
        }
    }
    assert_eq!(verify(Value::Null, required).unwrap_err().code, ErrorCode::UseDpopNonce);
    assert_eq!(verify(Value::Null, optional).unwrap().nonce, None);
    assert_eq!(verify(json!(old), NoncePolicy::Ignored).unwrap().nonce, None);
    let broken = with(given(json!(old)), "htm", json!("GET"));
    let at = Request { nonce: required, ..request() };
    assert_eq!(super::dpop::verify(&header(), &broken, &at).unwrap_err().code, ErrorCode::InvalidDpopProof);
}
