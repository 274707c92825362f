//! Passkeys in a sign-in on a page of this server: requested, verified, used and registered.

use std::sync::Arc;

use chancery_passkey::{
    AuthenticatorModels, CeremonyRefusal, Credential, CredentialFacts, Policy, User as Person, is_usable,
};
use chancery_record::Uuid;
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{Context, OwnerRow, Problem, StoreError, Tx, find_owner};
use chancery_trust::Snapshot;
use serde_json::{Value as Json, json};

pub use super::ceremony::{Assertion, UsedPasskey, VerifiedAssertion, note_use, recognize};
use super::{authenticator_model, ceremony, policy, policy_by};
use crate::{
    password::mail::display_name,
    user::{USER, user_of},
};

/// The WebAuthn options for the browser, and the state for the verification of its response, which is hidden from the browser.
pub type Started = (Json, Vec<u8>);

/// The relying party of a store's passkeys, if pages of this server can request them: passkeys are enabled, and it is a domain.
pub fn relying_party(options: &Options<UserStoreOption>, public_url: &str) -> Option<String> {
    let policy = policy_by(options, public_url);
    let is_address = policy.relying_party_id.parse::<std::net::IpAddr>().is_ok();
    let is_domain =
        !policy.relying_party_id.is_empty() && !is_address && !policy.relying_party_id.contains('[');
    (policy.enabled && is_domain).then_some(policy.relying_party_id)
}

/// Requests any passkey of the store, without a user name.
///
/// # Errors
/// An internal error if the policy is unusable.
pub fn start(options: &Options<UserStoreOption>, public_url: &str) -> Result<Started, StoreError> {
    let started = chancery_passkey::start_authentication(&policy_by(options, public_url), None);
    started.map_err(|refusal| StoreError::Internal(refusal.detail))
}

/// A summary of a user's passkeys.
#[derive(Clone, Copy, Debug, Default)]
pub struct PasskeySummary {
    /// The number of usable passkeys.
    pub usable: i64,
    /// Whether one of them verifies its user.
    pub verifies_user: bool,
    /// Whether one of these is known to store its key in hardware.
    pub is_hardware: bool,
}

/// The passkeys of the user with this row number.
pub fn summary_of(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<PasskeySummary, Problem> {
    let (policy, snapshot) = (policy(context)?, authenticator_model::snapshot(context, tx)?);
    let models = AuthenticatorModels::new(snapshot.as_deref(), context.now);
    let mut summary = PasskeySummary::default();
    for credential in ceremony::of_user(tx, user)?.iter().filter(|one| is_usable_now(&policy, models, one)) {
        summary.usable += 1;
        summary.verifies_user |= credential.user_verified;
        summary.is_hardware |= credential.user_verified && credential.is_hardware(models);
    }
    Ok(summary)
}

fn is_usable_now(policy: &Policy, models: AuthenticatorModels<'_>, credential: &Credential) -> bool {
    let facts = CredentialFacts {
        aaguid: credential.aaguid,
        created_on: chancery_record::Timestamp(0),
        last_used_on: None,
        is_backed_up: credential.is_backed_up,
        is_backup_eligible: credential.is_backup_eligible,
        has_undesired_status: models.is_undesired(credential.aaguid),
    };
    is_usable(policy, &facts)
}

/// Requests a new passkey of the user with this row number.
pub fn start_registration(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<Option<Started>, Problem> {
    let Some(loaded) = user_of(context, tx, user)? else { return Ok(None) };
    let person = Person {
        id: loaded.user.id.0,
        login_name: loaded.user.login_name.as_str().to_owned(),
        display_name: display_name(&loaded.user),
    };
    let started = chancery_passkey::start_registration(&policy(context)?, &person, &[]);
    let Ok((mut request_options, state)) = started else { return Ok(None) };
    // the browser gets the list of existing passkeys; the state, which a cookie holds, does not: the database refuses a
    // duplicate
    let existing = ceremony::of_user(tx, user)?;
    if let Some(members) = request_options.as_object_mut() {
        let excluded = existing
            .iter()
            .map(|one| json!({ "type": "public-key", "id": chancery_passkey::to_base64(&one.id) }));
        members.insert("excludeCredentials".to_owned(), excluded.collect());
    }
    Ok(Some((request_options, state)))
}

/// State for the verification of a registration response.
pub struct RegistrationVerifier {
    policy: Policy,
    snapshot: Option<Arc<Snapshot>>,
    now: chancery_record::Timestamp,
}

/// Reads the state for the verification of a registration response.
pub fn registration_verifier(context: &Context, tx: &mut Tx<'_>) -> Result<RegistrationVerifier, Problem> {
    Ok(RegistrationVerifier {
        policy: policy(context)?,
        snapshot: authenticator_model::snapshot(context, tx)?,
        now: context.now,
    })
}

impl RegistrationVerifier {
    /// Verifies a registration response.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn verify(&self, state: &[u8], answer: &Json) -> Result<Credential, CeremonyRefusal> {
        let models = AuthenticatorModels::new(self.snapshot.as_deref(), self.now);
        chancery_passkey::finish_registration(&self.policy, models, state, answer)
    }
}

/// A new passkey, or the reason of its refusal.
pub type RegistrationResult = Result<Credential, CeremonyRefusal>;

/// Stores a passkey of the user with this id; returns the passkey's id. `None`: it is another user's.
///
/// # Errors
/// A conflict if it exists already.
pub fn store_passkey(
    context: &Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    credential: &Credential,
) -> Result<Option<Uuid>, Problem> {
    if credential.user != user {
        return Ok(None);
    }
    let owner: OwnerRow = find_owner(context, tx, &USER, user)?;
    let values = ceremony::store(context, tx, &owner, credential)?;
    Ok(Some(super::PasskeyCredential::ID.get(&values)?.0))
}
