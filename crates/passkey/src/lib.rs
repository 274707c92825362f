//! Passkeys (WebAuthn Level 3): the policy, the two ceremonies and the readiness of a user for the removal of
//! the password, as pure functions.
//!
//! Nothing here knows a clock, a database or HTTP. A ceremony's state is bytes that the caller stores for a
//! few minutes and accepts once. The cryptography and the parsing of attestations are `webauthn-rs-core`'s;
//! the checks that the specification leaves to the relying party and that crate leaves open are made here,
//! see [`finish_registration`] and [`finish_authentication`].

mod answer;
mod attestation;
mod authentication;
mod authenticator_model;
mod credential;
mod policy;
mod readiness;
mod refusal;
mod registration;
mod state;

pub use answer::{credential_id_of, to_base64, user_handle_of};
pub use authentication::{AuthenticationResult, finish_authentication, start_authentication};
pub use authenticator_model::AuthenticatorModels;
pub use credential::Credential;
pub use policy::{Attestation, Policy, PolicyOption, UserVerification, fingerprint};
pub use readiness::{CredentialFacts, Facts, PasswordFacts, REASONS, Readiness, is_usable, readiness};
pub use refusal::{CeremonyRefusal, RefusalKind};
pub use registration::{User, finish_registration, start_registration};

#[cfg(test)]
mod tests;
