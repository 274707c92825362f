//! Whether a user could live without a password, and why not.

use std::collections::BTreeSet;

use chancery_record::Timestamp;

use crate::Policy;

/// What is known about a user's password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts that do not exclude each other")]
pub struct PasswordFacts {
    /// There is one.
    pub set: bool,
    /// It was set by somebody else for the first sign-in.
    pub initial: bool,
    /// It must be changed at the next sign-in.
    pub change_required: bool,
    /// It is past its day.
    pub expired: bool,
    /// There was one, and it was given up for passkeys.
    pub removed: bool,
}

/// What is known about a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// The make of authenticator.
    pub aaguid: [u8; 16],
    /// When it was registered.
    pub created_on: Timestamp,
    /// When it was last used to sign in.
    pub last_used_on: Option<Timestamp>,
    /// Whether it is copied to other devices.
    pub is_backed_up: bool,
    /// Whether it can be.
    pub is_backup_eligible: bool,
    /// Whether the metadata say something bad about its make, e.g. that its keys leaked.
    pub has_undesired_status: bool,
}

/// What is known about a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The user may sign in.
    pub user_active: bool,
    /// The user is locked, for now or for good.
    pub user_locked: bool,
    /// The user is deleted and can still be restored.
    pub in_quarantine: bool,
    /// The password.
    pub password: PasswordFacts,
    /// The credentials.
    pub credentials: Vec<CredentialFacts>,
    /// How many contacts are verified.
    pub verified_security_contacts: i64,
}

/// The contract's readiness of a user, without the user's id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the contract's members")]
pub struct Readiness {
    /// `NotSet`, `Initial`, `Active`, `ChangeRequired`, `Expired` or `Removed`.
    pub password_credential_status: &'static str,
    /// `None`, `PasswordOnly`, `PasswordAndPasskey` or `PasskeyOnly`.
    pub primary_authentication_status: &'static str,
    /// How many credentials are usable.
    pub usable_credential_count: i64,
    /// How many must be.
    pub required_credential_count: i64,
    /// How many contacts are verified.
    pub verified_security_contact_count: i64,
    /// How many must be.
    pub required_verified_security_contact_count: i64,
    /// Two makes of authenticator, or a credential that is backed up and one that cannot be.
    pub credential_diversity_satisfied: bool,
    /// There is a way back for who lost every authenticator.
    pub recovery_route_operational: bool,
    /// A credential is older than the policy's age and was used since.
    pub mature_binding_lineage_available: bool,
    /// Nothing blocks it.
    pub ready_for_password_removal: bool,
    /// What blocks it, in the contract's order.
    pub blocking_reasons: Vec<&'static str>,
    /// Which policy this was judged by.
    pub policy_fingerprint: String,
}

/// Whether a credential counts: passkeys are on, the policy admits its make, and the metadata
/// say nothing bad about it.
pub fn is_usable(policy: &Policy, credential: &CredentialFacts) -> bool {
    policy.enabled && policy.admits(credential.aaguid) && !credential.has_undesired_status
}

/// Judges a user by the policy at a moment.
pub fn readiness(policy: &Policy, facts: &Facts, now: Timestamp) -> Readiness {
    let usable: Vec<_> = facts.credentials.iter().filter(|one| is_usable(policy, one)).collect();
    let count = i64::try_from(usable.len()).unwrap_or(i64::MAX);
    let has_password = facts.password.set && !facts.password.removed;
    let makes: BTreeSet<_> = usable.iter().map(|one| one.aaguid).collect();
    let copied_and_bound = usable.iter().any(|one| one.is_backed_up)
        && usable.iter().any(|one| !one.is_backup_eligible && !one.is_backed_up);
    let diverse = makes.len() > 1 || copied_and_bound;
    let enough_contacts = facts.verified_security_contacts >= policy.required_verified_security_contact_count;
    let recoverable = policy.temporary_access_pass_enabled || enough_contacts;
    let mature = usable.iter().any(|one| {
        one.created_on.plus(policy.binding_maturity_ms) <= now
            && one.last_used_on.is_some_and(|used| used > one.created_on)
    });
    let blocking_reasons: Vec<_> = [
        ("UserInactive", !facts.user_active),
        ("UserLocked", facts.user_locked),
        ("UserInDeletionQuarantine", facts.in_quarantine),
        ("PasswordNotSet", !has_password),
        ("InsufficientUsableCredentials", count < policy.required_credential_count),
        ("CredentialDiversityNotSatisfied", !diverse),
        ("InsufficientVerifiedSecurityContacts", !enough_contacts),
        ("RecoveryRouteNotOperational", !recoverable),
        ("MatureBindingLineageMissing", !mature),
    ]
    .into_iter()
    .filter_map(|(reason, blocks)| blocks.then_some(reason))
    .collect();
    Readiness {
        password_credential_status: password_status(facts.password),
        primary_authentication_status: match (has_password, count > 0) {
            (false, false) => "None",
            (true, false) => "PasswordOnly",
            (true, true) => "PasswordAndPasskey",
            (false, true) => "PasskeyOnly",
        },
        usable_credential_count: count,
        required_credential_count: policy.required_credential_count,
        verified_security_contact_count: facts.verified_security_contacts,
        required_verified_security_contact_count: policy.required_verified_security_contact_count,
        credential_diversity_satisfied: diverse,
        recovery_route_operational: recoverable,
        mature_binding_lineage_available: mature,
        ready_for_password_removal: blocking_reasons.is_empty(),
        blocking_reasons,
        policy_fingerprint: policy.fingerprint.clone(),
    }
}

/// The strongest word that is true: an initial password must be changed too, and an expired one
/// is of no use whatever else it is.
const fn password_status(password: PasswordFacts) -> &'static str {
    if password.removed {
        "Removed"
    } else if !password.set {
        "NotSet"
    } else if password.expired {
        "Expired"
    } else if password.initial {
        "Initial"
    } else if password.change_required {
        "ChangeRequired"
    } else {
        "Active"
    }
}

#[cfg(test)]
mod tests;
