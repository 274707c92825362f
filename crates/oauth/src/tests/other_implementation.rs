//! Tokens of another implementation, npm `jose` 6.2.17, generated once into `testdata/jose.json`: for each algorithm
//! `new SignJWT(..).sign(key)` with a fresh key, its `exportJWK` and `calculateJwkThumbprint`; time fixed at `now`, claims
//! as in `super::claims` and `super::proof_claims`.

use chancery_record::{Secret, Timestamp};
use serde_json::Value;

use super::{expected, request, to_jwk};
use crate::{Algorithm, AssertionKeys, Expected, Request, verify_assertion, verify_proof};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../testdata/jose.json")).unwrap()
}

fn generated_at(vectors: &Value) -> Timestamp {
    Timestamp(vectors["now"].as_i64().unwrap() * 1000)
}

#[test]
fn assertions_of_another_implementation_verify() {
    let vectors = vectors();
    let expected = Expected { now: generated_at(&vectors), ..expected() };
    let assertions = vectors["assertions"].as_array().unwrap();
    assert_eq!(assertions.len(), 14);
    for vector in assertions {
        let name = vector["alg"].as_str().unwrap();
        let token = vector["jwt"].as_str().unwrap();
        let verified = if let Some(secret) = vector["secret"].as_str() {
            verify_assertion(token, AssertionKeys::Secrets(&[Secret::new(secret)]), &expected)
        } else {
            let jwk = to_jwk(&vector["jwk"]);
            assert_eq!(jwk.kid, Some(jwk.key.thumbprint()));
            verify_assertion(token, AssertionKeys::Public(&[jwk]), &expected)
        };
        let verified = verified.unwrap();
        assert_eq!(Some(verified.algorithm), Algorithm::named(name));
        assert_eq!(verified.jti, format!("jti-{name}"));
    }
}

#[test]
fn proofs_of_another_implementation_verify() {
    let vectors = vectors();
    let proofs = vectors["proofs"].as_array().unwrap();
    assert_eq!(proofs.len(), 5);
    for vector in proofs {
        let at = Request {
            now: generated_at(&vectors),
            access_token: vector["accessToken"].as_str(),
            ..request()
        };
        let proof = verify_proof(vector["proof"].as_str().unwrap(), &at).unwrap();
        assert_eq!(proof.jkt, vector["jkt"]);
    }
}
