//! The server's state between the start and the finish of a ceremony.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use webauthn_rs_core::{
    WebauthnCore,
    proto::{AuthenticationState, RegistrationState, UserVerificationPolicy},
};

use crate::{CeremonyRefusal, Policy, RefusalKind, UserVerification, answer::malformed};

/// The timeout for a client, as WebAuthn recommends with user verification.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The state of a ceremony. The variant's name is stored, so that the state of one kind cannot finish the
/// other.
#[derive(Serialize, Deserialize)]
pub(crate) enum State {
    Registration {
        core: RegistrationState,
        user: Uuid,
        existing: Vec<String>,
    },
    /// `allowed` are the ids of the credentials that may answer; without it any may if its authenticator names
    /// its user.
    Authentication {
        core: AuthenticationState,
        allowed: Option<Vec<String>>,
    },
}

impl State {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, CeremonyRefusal> {
        serde_json::from_slice(bytes).map_err(|_| malformed("the ceremony's state cannot be read"))
    }
}

/// The policy in the library's form.
pub(crate) fn relying_party(policy: &Policy) -> Result<WebauthnCore, CeremonyRefusal> {
    if !policy.enabled || policy.relying_party_id.is_empty() {
        return Err(CeremonyRefusal::new(
            RefusalKind::Disabled,
            "passkeys are off, or have no relying party",
        ));
    }
    let origins = policy.allowed_origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    Ok(WebauthnCore::new_unsafe_experts_only(
        &policy.relying_party_name,
        &policy.relying_party_id,
        origins,
        TIMEOUT,
        Some(false),
        Some(false),
    ))
}

impl From<UserVerification> for UserVerificationPolicy {
    fn from(verification: UserVerification) -> Self {
        match verification {
            UserVerification::Required => Self::Required,
            UserVerification::Preferred => Self::Preferred,
            UserVerification::Discouraged => Self::Discouraged_DO_NOT_USE,
        }
    }
}

/// Checks user verification by the current policy, which may be stricter than when the ceremony started.
pub(crate) fn check_verified(policy: &Policy, verified: bool) -> Result<(), CeremonyRefusal> {
    if verified || policy.user_verification != UserVerification::Required {
        Ok(())
    } else {
        Err(CeremonyRefusal::new(RefusalKind::UserVerification, "the user was not verified"))
    }
}
