//! The record of an identity replacement, and the bodies of its operations.

use chancery_application::{ApplicationIdentityId, ApplicationUserId};
use chancery_record::{
    DERIVED, DefaultValue, FIXED, FieldType, HIDDEN, Ids, KEY, Kind, Mismatch, Name, OPEN, OptionValue,
    SHOWN, ShortText, Timestamp, Token, Uuid, Value, choice_types, id_types, record,
};

use crate::idp_instance::IdpInstanceId;

id_types! {
    /// The id of an identity replacement.
    IdentityReplacementId
}

choice_types! {
    /// The status of an identity replacement.
    ReplacementStatus {
        /// It waits for approvals.
        PendingApproval,
        /// Enough have approved: it can be executed.
        Approved,
        /// The identity was replaced; the sessions and tokens of the old one are being ended.
        Executed,
        /// All of them are ended.
        Completed,
        /// Ending them failed. It is retried.
        RevocationFailed,
        /// It was cancelled.
        Cancelled,
        /// It expired.
        Expired,
    }
    /// One of the two identities of a replacement.
    WhichIdentity {
        /// The one that is replaced.
        Current,
        /// The replacement.
        Replacement,
    }
}

/// Declares whole numbers within bounds.
macro_rules! bounded {
    ($($(#[doc = $doc:literal])* $name:ident($min:literal..=$max:literal);)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub i64);
        impl FieldType for $name {
            const KIND: Kind = Kind::Int { min: $min, max: $max };
            fn into_value(self) -> Value {
                Value::Int(self.0)
            }
            fn from_value(value: Value) -> Result<Self, Mismatch> {
                i64::from_value(value).map(Self)
            }
        }
    )*};
}

bounded! {
    /// How many must approve.
    Approvals(1..=10);
    /// For how many minutes a request is open.
    Lifetime(5..=43_200);
}

record! {
    /// A request to put one identity of a platform user in the place of another.
    pub struct IdentityReplacement {
        /// The replacement.
        id: IdentityReplacementId = KEY,
        /// The platform user.
        platform_user_id: ApplicationUserId = FIXED,
        /// The identity that is replaced.
        current_identity_id: ApplicationIdentityId = SHOWN,
        /// The identity that takes its place.
        replacement_identity_id: ApplicationIdentityId = SHOWN,
        /// Where it stands.
        status: ReplacementStatus = SHOWN,
        /// Who requested it.
        requested_by_actor_id: Option<Uuid> = SHOWN,
        /// Why the identity is replaced.
        reason: ShortText = FIXED,
        /// How many must approve.
        required_approvals: Approvals = FIXED,
        /// Who approved, in order.
        approved_by_actor_ids: Ids = SHOWN,
        /// When it was requested.
        requested_on: Timestamp = SHOWN,
        /// Until when it can be executed.
        expires_on: Timestamp = SHOWN,
        /// When the identity that is replaced was proven.
        current_identity_proven_on: Option<Timestamp> = SHOWN,
        /// When the identity that takes its place was proven.
        replacement_identity_proven_on: Option<Timestamp> = SHOWN,
        /// When enough had approved.
        approval_satisfied_on: Option<Timestamp> = SHOWN,
        /// When the identity was replaced.
        executed_on: Option<Timestamp> = SHOWN,
        /// When all that the replaced identity had was ended.
        revocation_completed_on: Option<Timestamp> = SHOWN,
        /// How often it was tried to end it.
        revocation_attempts: i64 = SHOWN,
        /// When it is tried next; null where nothing is left to be ended, or it is being tried now.
        revocation_due_on: Option<Timestamp> = DERIVED,
        /// Why the last try failed.
        revocation_error: Option<ShortText> = DERIVED,
        /// SHA-256 over the replacement settings when it was requested, hexadecimal.
        policy_fingerprint: Name = SHOWN,
        /// The instance of the identity that takes its place.
        replacement_idp_instance_id: Uuid = HIDDEN,
        /// Who vouches for it.
        replacement_issuer: OptionValue = HIDDEN,
        /// Its name there.
        replacement_subject: Name = HIDDEN,
        /// Whether the instance is a user store.
        replacement_is_user_store: bool = HIDDEN,
        /// The platform user while the request is open.
        open_user_id: Option<Uuid> = HIDDEN,
        /// Changes with every step: of two at once only one is done.
        concurrency_token: Token = HIDDEN,
    }
}

record! {
    /// Whose identity is to be replaced, by which one, and why.
    pub struct NewIdentityReplacement {
        /// The platform user.
        platform_user_id: ApplicationUserId = OPEN,
        /// The instance of the new identity.
        replacement_idp_instance_id: IdpInstanceId = OPEN,
        /// Who the person is there: of a user store, the user's id.
        replacement_unique_user_id: Name = OPEN,
        /// Who vouches for the new identity. Where it is missing, a user store's option ClaimIssuer
        /// says, or another instance's option Authority.
        replacement_issuer: Option<OptionValue> = OPEN,
        /// What the issuer calls the person; replacementUniqueUserId where it is missing.
        replacement_subject: Option<Name> = OPEN,
        /// Whether the instance is a user store; known where it is missing.
        is_user_store_identity: Option<bool> = OPEN,
        /// Why the identity is replaced.
        reason: ShortText = OPEN,
        /// What the caller takes the replacement settings to be: their SHA-256, as records have it.
        policy_fingerprint: Option<Name> = OPEN,
        /// How many must approve.
        required_approvals: Approvals = OPEN.or(DefaultValue::Int(1)),
        /// For how many minutes the request is open.
        lifetime_minutes: Lifetime = OPEN.or(DefaultValue::Int(1440)),
    }
}

record! {
    /// Which of the two identities was shown to be the person's.
    pub struct Proof {
        /// Which one.
        identity: WhichIdentity = OPEN,
    }
}
