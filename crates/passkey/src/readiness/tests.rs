//! Each blocking reason alone, and the properties of all.

use chancery_record::Timestamp;
use proptest::prelude::*;

use super::{CredentialFacts, Facts, PasswordFacts, readiness};
use crate::{Policy, tests::policy};

const NOW: Timestamp = Timestamp(1_000_000);
const REASONS: [&str; 9] = [
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

fn credential(model: u8) -> CredentialFacts {
    CredentialFacts {
        aaguid: [model; 16],
        created_on: Timestamp(NOW.0 - 1000),
        last_used_on: Some(NOW),
        is_backed_up: false,
        is_backup_eligible: false,
        has_undesired_status: false,
    }
}

fn ready() -> Facts {
    Facts {
        user_active: true,
        user_locked: false,
        in_quarantine: false,
        password: PasswordFacts { set: true, ..PasswordFacts::default() },
        credentials: vec![credential(1), credential(2)],
        verified_security_contacts: 1,
    }
}

fn reasons(policy: &Policy, facts: &Facts) -> Vec<&'static str> {
    readiness(policy, facts, NOW).blocking_reasons
}

#[test]
fn a_user_who_has_everything_is_ready() {
    let assessment = readiness(&policy(), &ready(), NOW);
    assert!(assessment.ready_for_password_removal && assessment.blocking_reasons.is_empty());
    assert_eq!((assessment.usable_credential_count, assessment.required_credential_count), (2, 2));
    assert_eq!(
        (assessment.verified_security_contact_count, assessment.required_verified_security_contact_count),
        (1, 1)
    );
    assert!(assessment.credential_diversity_satisfied && assessment.recovery_route_operational);
    assert!(assessment.mature_binding_lineage_available);
    assert_eq!(assessment.policy_fingerprint, "print");
}

#[test]
fn each_reason_blocks_alone() {
    type Spoil = fn(&mut Policy, &mut Facts);
    let spoils: [(Spoil, &[&str]); 13] = [
        (|_, facts| facts.user_active = false, &["UserInactive"]),
        (|_, facts| facts.user_locked = true, &["UserLocked"]),
        (|_, facts| facts.in_quarantine = true, &["UserInDeletionQuarantine"]),
        (|_, facts| facts.password.set = false, &["PasswordNotSet"]),
        (|_, facts| facts.password.removed = true, &["PasswordNotSet"]),
        (|policy, _| policy.required_credential_count = 3, &["InsufficientUsableCredentials"]),
        (|_, facts| facts.credentials[1].aaguid = [1; 16], &["CredentialDiversityNotSatisfied"]),
        (|_, facts| facts.verified_security_contacts = 0, &["InsufficientVerifiedSecurityContacts"]),
        (
            |policy, facts| {
                policy.temporary_access_pass_enabled = false;
                facts.verified_security_contacts = 0;
            },
            &["InsufficientVerifiedSecurityContacts", "RecoveryRouteNotOperational"],
        ),
        (|policy, _| policy.binding_maturity_ms = 1001, &["MatureBindingLineageMissing"]),
        (
            |_, facts| facts.credentials.iter_mut().for_each(|one| one.last_used_on = None),
            &["MatureBindingLineageMissing"],
        ),
        (
            |policy, _| policy.blocked_aaguids.push("01".repeat(16)),
            &["InsufficientUsableCredentials", "CredentialDiversityNotSatisfied"],
        ),
        (
            |_, facts| facts.credentials[0].has_undesired_status = true,
            &["InsufficientUsableCredentials", "CredentialDiversityNotSatisfied"],
        ),
    ];
    for (index, (spoil, expected)) in spoils.into_iter().enumerate() {
        let (mut policy, mut facts) = (policy(), ready());
        spoil(&mut policy, &mut facts);
        assert_eq!(reasons(&policy, &facts), expected, "case {index}");
    }
}

#[test]
fn enough_contacts_are_a_recovery_route() {
    let mut without_passes = policy();
    without_passes.temporary_access_pass_enabled = false;
    assert_eq!(reasons(&without_passes, &ready()), Vec::<&str>::new());
}

#[test]
fn disabled_passkeys_do_not_count() {
    let mut off = policy();
    off.enabled = false;
    let assessment = readiness(&off, &ready(), NOW);
    assert_eq!(
        (assessment.usable_credential_count, assessment.primary_authentication_status),
        (0, "PasswordOnly")
    );
}

#[test]
fn a_copied_and_a_bound_credential_of_one_make_are_diverse() {
    let mut facts = ready();
    facts.credentials[1].aaguid = [1; 16];
    facts.credentials[1].is_backup_eligible = true;
    assert_eq!(reasons(&policy(), &facts), ["CredentialDiversityNotSatisfied"], "eligible is not copied");
    facts.credentials[1].is_backed_up = true;
    assert_eq!(reasons(&policy(), &facts), Vec::<&str>::new());
    facts.credentials[0].is_backup_eligible = true;
    assert_eq!(reasons(&policy(), &facts), ["CredentialDiversityNotSatisfied"], "eligible is not bound");
}

#[test]
fn password_and_authentication_statuses() {
    let password = |set, initial, change_required, expired, removed| PasswordFacts {
        set,
        initial,
        change_required,
        expired,
        removed,
    };
    for (facts, word, primary) in [
        (password(false, false, false, false, false), "NotSet", "PasskeyOnly"),
        (password(true, false, false, false, false), "Active", "PasswordAndPasskey"),
        (password(true, false, true, false, false), "ChangeRequired", "PasswordAndPasskey"),
        (password(true, true, true, false, false), "Initial", "PasswordAndPasskey"),
        (password(true, true, true, true, false), "Expired", "PasswordAndPasskey"),
        (password(false, false, false, true, true), "Removed", "PasskeyOnly"),
    ] {
        let assessment = readiness(&policy(), &Facts { password: facts, ..ready() }, NOW);
        assert_eq!(
            (assessment.password_credential_status, assessment.primary_authentication_status),
            (word, primary)
        );
        let bare = Facts { password: facts, credentials: Vec::new(), ..ready() };
        let expected = if primary == "PasskeyOnly" { "None" } else { "PasswordOnly" };
        assert_eq!(readiness(&policy(), &bare, NOW).primary_authentication_status, expected);
    }
}

fn any_credential() -> impl Strategy<Value = CredentialFacts> {
    (0..3_u8, 0..2000_i64, proptest::option::of(0..2000_i64), any::<(bool, bool, bool)>()).prop_map(
        |(model, age, used, (is_backed_up, is_backup_eligible, has_undesired_status))| CredentialFacts {
            aaguid: [model; 16],
            created_on: Timestamp(NOW.0 - age),
            last_used_on: used.map(|used| Timestamp(NOW.0 - used)),
            is_backed_up,
            is_backup_eligible,
            has_undesired_status,
        },
    )
}

proptest! {
    #[test]
    fn ready_means_no_reason_and_reasons_are_in_order(
        (user_active, user_locked, in_quarantine) in any::<(bool, bool, bool)>(),
        (set, initial, change_required, expired, removed) in any::<(bool, bool, bool, bool, bool)>(),
        credentials in proptest::collection::vec(any_credential(), 0..4),
        verified_security_contacts in 0..3_i64,
        passes in any::<bool>(),
    ) {
        let facts = Facts {
            user_active,
            user_locked,
            in_quarantine,
            password: PasswordFacts { set, initial, change_required, expired, removed },
            credentials,
            verified_security_contacts,
        };
        let policy = Policy { temporary_access_pass_enabled: passes, ..policy() };
        let assessment = readiness(&policy, &facts, NOW);
        prop_assert_eq!(assessment.ready_for_password_removal, assessment.blocking_reasons.is_empty());
        let positions: Vec<_> = assessment.blocking_reasons.iter()
            .map(|reason| REASONS.iter().position(|known| known == reason).unwrap())
            .collect();
        prop_assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(assessment.blocking_reasons.contains(&REASONS[5]), !assessment.credential_diversity_satisfied);
        prop_assert_eq!(assessment.blocking_reasons.contains(&REASONS[7]), !assessment.recovery_route_operational);
        prop_assert_eq!(assessment.blocking_reasons.contains(&REASONS[8]), !assessment.mature_binding_lineage_available);
        // a further good credential never takes readiness away
        let mut more = facts.clone();
        more.credentials.push(CredentialFacts { aaguid: [8; 16], ..credential(8) });
        let better = readiness(&policy, &more, NOW).blocking_reasons;
        prop_assert!(better.iter().all(|reason| assessment.blocking_reasons.contains(reason)));
    }
}
