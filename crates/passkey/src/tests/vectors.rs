//! The test vectors of WebAuthn Level 3 (section "Test Vectors"): no attestation, self
//! attestation, packed attestation, and what this server refuses of them.

use serde::Deserialize;
use serde_json::json;

use super::{expect_challenge, finish_authentication, finish_registration, policy, user};
use crate::{Policy, UserVerification, answer::to_base64, start_authentication, start_registration};

#[derive(Deserialize)]
struct Vector {
    name: String,
    aaguid: String,
    credential_id: String,
    challenge: String,
    client_data: String,
    attestation_object: String,
    #[serde(default)]
    get_challenge: String,
    #[serde(default)]
    get_client_data: String,
    #[serde(default)]
    authenticator_data: String,
    #[serde(default)]
    signature: String,
    refused: Option<String>,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn lax() -> Policy {
    Policy { user_verification: UserVerification::Discouraged, ..policy() }
}

#[test]
fn the_specifications_vectors() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../testdata/webauthn-vectors.json")).unwrap();
    assert_eq!(vectors.len(), 8);
    for vector in vectors {
        let id = to_base64(&bytes(&vector.credential_id));
        let (_, state) = start_registration(&lax(), &user(), &[]).unwrap();
        let state = expect_challenge(&state, "Registration", &bytes(&vector.challenge));
        let answer = json!({"id": id, "rawId": id, "type": "public-key", "response": {
            "clientDataJSON": to_base64(vector.client_data.as_bytes()),
            "attestationObject": to_base64(&bytes(&vector.attestation_object)),
        }});
        let made = finish_registration(&lax(), &state, &answer);
        if let Some(kind) = vector.refused {
            assert_eq!(format!("{:?}", made.unwrap_err().kind), kind, "{}", vector.name);
            continue;
        }
        let credential = made.unwrap();
        assert_eq!(credential.id, bytes(&vector.credential_id));
        assert_eq!(credential.aaguid.to_vec(), bytes(&vector.aaguid));
        assert_eq!(credential.attestation_chain.len(), usize::from(vector.name == "packed.ES256"));
        let (_, state) = start_authentication(&lax(), Some(std::slice::from_ref(&credential))).unwrap();
        let state = expect_challenge(&state, "Authentication", &bytes(&vector.get_challenge));
        let answer = json!({"id": id, "rawId": id, "type": "public-key", "response": {
            "clientDataJSON": to_base64(vector.get_client_data.as_bytes()),
            "authenticatorData": to_base64(&bytes(&vector.authenticator_data)),
            "signature": to_base64(&bytes(&vector.signature)),
        }});
        let used = finish_authentication(&lax(), &state, &answer, &credential).unwrap();
        assert_eq!(used.sign_count, 0, "{}", vector.name);
    }
}
