//! Passkeys in a sign-in on a page of this server: how they are asked for, shown, used and made.

use std::sync::Arc;

use chancery_passkey::{
    AuthenticatorModels, Credential, CredentialFacts, Policy, Refusal, User as Person, is_usable,
};
use chancery_record::Uuid;
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{Context, OwnerRow, Problem, StoreError, Tx, find_owner};
use chancery_trust::Snapshot;
use serde_json::{Value as Json, json};

pub use super::ceremony::{Proved, Shown, Used, note_use, recognize};
use super::{authenticator_model, ceremony, policy, policy_by};
use crate::{
    password::mail::display_name,
    user::{USER, user_of},
};

/// What a browser is asked, and what must be known to judge its answer. The latter stays hidden from the browser.
pub type Started = (Json, Vec<u8>);

/// The relying party of a store's passkeys, where pages of this server can ask for them: they are on, and it is a domain.
pub fn relying_party(options: &Options<UserStoreOption>, public_url: &str) -> Option<String> {
    let policy = policy_by(options, public_url);
    let is_address = policy.relying_party_id.parse::<std::net::IpAddr>().is_ok();
    let is_domain =
        !policy.relying_party_id.is_empty() && !is_address && !policy.relying_party_id.contains('[');
    (policy.enabled && is_domain).then_some(policy.relying_party_id)
}

/// Asks for any passkey of the store: no name is told.
///
/// # Errors
/// An internal error where the policy cannot be used.
pub fn start(options: &Options<UserStoreOption>, public_url: &str) -> Result<Started, StoreError> {
    let started = chancery_passkey::start_authentication(&policy_by(options, public_url), None);
    started.map_err(|refusal| StoreError::Internal(refusal.detail))
}

/// What is known of a user's passkeys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// How many can be used.
    pub usable: i64,
    /// Whether one of them verifies its user.
    pub verifies_user: bool,
    /// Whether one of these is known to keep its key in hardware.
    pub is_hardware: bool,
}

/// The passkeys of the user with this row number.
///
/// # Errors
/// Those of the store.
pub fn held(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<Held, Problem> {
    let (policy, snapshot) = (policy(context)?, authenticator_model::snapshot(context, tx)?);
    let models = AuthenticatorModels::new(snapshot.as_deref(), context.now);
    let mut held = Held::default();
    for credential in ceremony::of_user(tx, user)?.iter().filter(|one| counts(&policy, models, one)) {
        held.usable += 1;
        held.verifies_user |= credential.user_verified;
        held.is_hardware |= credential.user_verified && credential.is_hardware(models);
    }
    Ok(held)
}

fn counts(policy: &Policy, models: AuthenticatorModels<'_>, credential: &Credential) -> bool {
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

/// Asks for a new passkey of the user with this row number.
///
/// # Errors
/// Those of the store.
pub fn start_registration(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<Option<Started>, Problem> {
    let Some(found) = user_of(context, tx, user)? else { return Ok(None) };
    let person = Person {
        id: found.user.id.0,
        login_name: found.user.login_name.as_str().to_owned(),
        display_name: display_name(&found.user),
    };
    let started = chancery_passkey::start_registration(&policy(context)?, &person, &[]);
    let Ok((mut asked, state)) = started else { return Ok(None) };
    // the browser is told of all that are there; the state, which a cookie holds, is not: the database refuses one that
    // is there already
    let existing = ceremony::of_user(tx, user)?;
    if let Some(members) = asked.as_object_mut() {
        let listed = existing
            .iter()
            .map(|one| json!({ "type": "public-key", "id": chancery_passkey::to_base64(&one.id) }));
        members.insert("excludeCredentials".to_owned(), listed.collect());
    }
    Ok(Some((asked, state)))
}

/// All by which the answer of an authenticator that made a passkey is judged.
pub struct Registering {
    policy: Policy,
    snapshot: Option<Arc<Snapshot>>,
    now: chancery_record::Timestamp,
}

/// Reads all by which an answer is judged.
///
/// # Errors
/// Those of the store.
pub fn registering(context: &Context, tx: &mut Tx<'_>) -> Result<Registering, Problem> {
    Ok(Registering {
        policy: policy(context)?,
        snapshot: authenticator_model::snapshot(context, tx)?,
        now: context.now,
    })
}

impl Registering {
    /// Judges an answer.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn verify(&self, state: &[u8], answer: &Json) -> Result<Credential, Refusal> {
        let models = AuthenticatorModels::new(self.snapshot.as_deref(), self.now);
        chancery_passkey::finish_registration(&self.policy, models, state, answer)
    }
}

/// A passkey that was made, or why it was refused.
pub type Made = Result<Credential, Refusal>;

/// Keeps a passkey of the user with this id; the passkey's id. `None`: it is another user's.
///
/// # Errors
/// Those of the store; a conflict where it is there already.
pub fn keep(
    context: &Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    made: &Credential,
) -> Result<Option<Uuid>, Problem> {
    if made.user != user {
        return Ok(None);
    }
    let owner: OwnerRow = find_owner(context, tx, &USER, user)?;
    let values = ceremony::keep(context, tx, &owner, made)?;
    Ok(Some(super::PasskeyCredential::ID.get(&values)?.0))
}
