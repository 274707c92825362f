//! The ceremonies with a software authenticator, the specification's test vectors, and damaged input.

mod authenticator;
mod ceremony;
mod models;
mod noise;
mod tampering;
mod vectors;

use chancery_record::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Attestation, AuthenticationResult, AuthenticatorModels, CeremonyRefusal, Credential, Policy, User,
    UserVerification, start_authentication, start_registration,
};
use authenticator::Authenticator;

pub fn policy() -> Policy {
    Policy {
        enabled: true,
        relying_party_id: "example.org".to_owned(),
        relying_party_name: "Example".to_owned(),
        allowed_origins: vec!["https://example.org".to_owned(), "https://other.example.org".to_owned()],
        user_verification: UserVerification::Required,
        attestation: Attestation::None,
        allowed_aaguids: Vec::new(),
        blocked_aaguids: Vec::new(),
        required_credential_count: 2,
        required_verified_security_contact_count: 1,
        binding_maturity_ms: 1000,
        temporary_access_pass_enabled: true,
        fingerprint: "print".to_owned(),
    }
}

pub fn user() -> User {
    User { id: Uuid::from_u128(7), login_name: "ada".to_owned(), display_name: "Ada Byron".to_owned() }
}

/// Without metadata, no model is known.
const UNKNOWN: AuthenticatorModels<'static> = AuthenticatorModels::new(None, Timestamp(0));

pub fn finish_registration(
    policy: &Policy,
    state: &[u8],
    answer: &Value,
) -> Result<Credential, CeremonyRefusal> {
    crate::finish_registration(policy, UNKNOWN, state, answer)
}

pub fn finish_authentication(
    policy: &Policy,
    state: &[u8],
    answer: &Value,
    credential: &Credential,
) -> Result<AuthenticationResult, CeremonyRefusal> {
    crate::finish_authentication(policy, UNKNOWN, state, answer, credential)
}

pub fn register(policy: &Policy, device: &Authenticator) -> Result<Credential, CeremonyRefusal> {
    let (options, state) = start_registration(policy, &user(), &[])?;
    finish_registration(policy, &state, &device.create(&options))
}

pub fn authenticate(
    policy: &Policy,
    device: &Authenticator,
    credential: &Credential,
) -> Result<AuthenticationResult, CeremonyRefusal> {
    let (options, state) = start_authentication(policy, Some(std::slice::from_ref(credential)))?;
    finish_authentication(policy, &state, &device.get(&options), credential)
}

/// Replaces the challenge that a state expects.
pub fn expect_challenge(state: &[u8], ceremony: &str, challenge: &[u8]) -> Vec<u8> {
    let mut state: Value = serde_json::from_slice(state).unwrap();
    state[ceremony]["core"]["challenge"] = crate::answer::to_base64(challenge).into();
    serde_json::to_vec(&state).unwrap()
}
