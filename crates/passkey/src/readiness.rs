//! The readiness of a user for the removal of the password, and what blocks it.

use std::collections::BTreeSet;

use chancery_record::Timestamp;

use crate::Policy;

/// The facts about a user's password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts that do not exclude each other")]
pub struct PasswordFacts {
    /// Whether a password is set.
    pub set: bool,
    /// Whether an administrator set it for the first sign-in.
    pub initial: bool,
    /// Whether it must be changed at the next sign-in.
    pub change_required: bool,
    /// Whether it has expired.
    pub expired: bool,
    /// Whether the password was removed in favour of passkeys.
    pub removed: bool,
}

/// The facts about a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialFacts {
    /// The model of authenticator.
    pub aaguid: [u8; 16],
    /// When the credential was registered.
    pub created_on: Timestamp,
    /// When the credential was last used to sign in.
    pub last_used_on: Option<Timestamp>,
    /// Whether the credential is copied to other devices.
    pub is_backed_up: bool,
    /// Whether the credential can be copied to other devices.
    pub is_backup_eligible: bool,
    /// Whether the metadata call the model undesired, e.g. because its keys leaked.
    pub has_undesired_status: bool,
}

/// The facts about a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether the user is active.
    pub user_active: bool,
    /// Whether the user is locked, temporarily or permanently.
    pub user_locked: bool,
    /// Whether the user is deleted and can still be restored.
    pub in_quarantine: bool,
    /// The facts about the password.
    pub password: PasswordFacts,
    /// The facts about each credential.
    pub credentials: Vec<CredentialFacts>,
    /// The number of verified security contacts.
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
    /// The number of usable credentials.
    pub usable_credential_count: i64,
    /// The number that the policy requires.
    pub required_credential_count: i64,
    /// The number of verified security contacts.
    pub verified_security_contact_count: i64,
    /// The number that the policy requires.
    pub required_verified_security_contact_count: i64,
    /// Whether there are two models of authenticator, or a credential that is backed up and one that cannot
    /// be.
    pub credential_diversity_satisfied: bool,
    /// Whether a user who lost every authenticator can recover access.
    pub recovery_route_operational: bool,
    /// Whether a credential has the policy's age and was used after its registration.
    pub mature_binding_lineage_available: bool,
    /// Whether nothing blocks the removal of the password.
    pub ready_for_password_removal: bool,
    /// The reasons that block it, in the contract's order.
    pub blocking_reasons: Vec<&'static str>,
    /// The fingerprint of the policy that applied.
    pub policy_fingerprint: String,
}

/// Whether a credential is usable: passkeys are enabled, the policy admits its model, and the metadata do not
/// call it undesired.
pub fn is_usable(policy: &Policy, credential: &CredentialFacts) -> bool {
    policy.enabled && policy.admits(credential.aaguid) && !credential.has_undesired_status
}

/// The possible blocking reasons, in the contract's order.
pub const REASONS: [&str; 9] = [
    "UserInactive",
    "UserLocked",
    "UserInDeletionQuarantine",
    "PasswordNotSet",
    "InsufficientUsableCredentials",
    "CredentialDiversityNotSatisfied",
    "InsufficientVerifiedSecurityContacts",
    "RecoveryRouteNotOperational",
    "MatureBindingLineageMissing",
];

/// The readiness of a user by the policy, at a time.
pub fn readiness(policy: &Policy, facts: &Facts, now: Timestamp) -> Readiness {
    let usable: Vec<_> = facts.credentials.iter().filter(|one| is_usable(policy, one)).collect();
    let count = i64::try_from(usable.len()).unwrap_or(i64::MAX);
    let has_password = facts.password.set && !facts.password.removed;
    let models: BTreeSet<_> = usable.iter().map(|one| one.aaguid).collect();
    let copied_and_bound = usable.iter().any(|one| one.is_backed_up)
        && usable.iter().any(|one| !one.is_backup_eligible && !one.is_backed_up);
    let diverse = models.len() > 1 || copied_and_bound;
    let enough_contacts = facts.verified_security_contacts >= policy.required_verified_security_contact_count;
    let recoverable = policy.temporary_access_pass_enabled || enough_contacts;
    let mature = usable.iter().any(|one| {
        one.created_on.plus(policy.binding_maturity_ms) <= now
            && one.last_used_on.is_some_and(|used| used > one.created_on)
    });
    let blocks = [
        !facts.user_active,
        facts.user_locked,
        facts.in_quarantine,
        !has_password,
        count < policy.required_credential_count,
        !diverse,
        !enough_contacts,
        !recoverable,
        !mature,
    ];
    let reasons = REASONS.into_iter().zip(blocks);
    let blocking_reasons: Vec<_> = reasons.filter_map(|(reason, blocks)| blocks.then_some(reason)).collect();
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

/// The strongest status that applies: an initial password must be changed, too, and an expired one cannot be
/// used in any case.
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
