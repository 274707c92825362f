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
    /// The number of required approvals.
    Approvals(1..=10);
    /// For how many minutes a request is open.
    Lifetime(5..=43_200);
}

record! {
    /// A request to replace one identity of a platform user with another.
    #[de("Identitätswechsel", "Identitätswechsel", "Ein Antrag, eine Identität eines Plattformbenutzers durch eine andere zu ersetzen.")]
    pub struct IdentityReplacement {
        /// The replacement.
        id: IdentityReplacementId = KEY,
        /// The platform user.
        platform_user_id: ApplicationUserId = FIXED,
        /// The identity that is replaced.
        #[de("Jetzige Identität", "Die Identität, die ersetzt wird.")]
        current_identity_id: ApplicationIdentityId = SHOWN,
        /// The replacement identity.
        #[de("Neue Identität", "Die neue Identität.")]
        replacement_identity_id: ApplicationIdentityId = SHOWN,
        /// The status.
        status: ReplacementStatus = SHOWN,
        /// The actor who requested it.
        requested_by_actor_id: Option<Uuid> = SHOWN,
        /// Why the identity is replaced.
        reason: ShortText = FIXED,
        /// The number of required approvals.
        required_approvals: Approvals = FIXED,
        /// The actors who approved, in the order of their approvals.
        #[de("Genehmigt von")]
        approved_by_actor_ids: Ids = SHOWN,
        /// When it was requested.
        requested_on: Timestamp = SHOWN,
        /// When the request expires. It can be executed until then.
        expires_on: Timestamp = SHOWN,
        /// When the identity that is replaced was proven.
        #[de("Jetzige Identität nachgewiesen am")]
        current_identity_proven_on: Option<Timestamp> = SHOWN,
        /// When the replacement identity was proven.
        #[de("Neue Identität nachgewiesen am")]
        replacement_identity_proven_on: Option<Timestamp> = SHOWN,
        /// When the required number of approvals was reached.
        #[de("Genehmigt am")]
        approval_satisfied_on: Option<Timestamp> = SHOWN,
        /// When the identity was replaced.
        #[de("Ausgeführt am")]
        executed_on: Option<Timestamp> = SHOWN,
        /// When all sessions and tokens of the replaced identity were revoked.
        #[de("Widerruf abgeschlossen am")]
        revocation_completed_on: Option<Timestamp> = SHOWN,
        /// The number of attempts to revoke the sessions and tokens of the replaced identity.
        #[de("Versuche des Widerrufs")]
        revocation_attempts: i64 = SHOWN,
        /// When the next revocation attempt is due. Null if nothing is left to revoke or an attempt is in progress.
        #[de("Nächster Versuch des Widerrufs")]
        revocation_due_on: Option<Timestamp> = DERIVED,
        /// Why the last revocation attempt failed.
        #[de("Letzter Fehler des Widerrufs")]
        revocation_error: Option<ShortText> = DERIVED,
        /// The SHA-256 of the replacement settings at the time of the request, in hexadecimal.
        policy_fingerprint: Name = SHOWN,
        /// The instance of the identity that takes its place.
        replacement_idp_instance_id: Uuid = HIDDEN,
        /// The issuer (`iss`) of the identity.
        replacement_issuer: OptionValue = HIDDEN,
        /// The subject (`sub`) at the issuer.
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
    /// The request for an identity replacement: the platform user, the new identity and the reason.
    pub struct NewIdentityReplacement {
        /// The platform user.
        platform_user_id: ApplicationUserId = OPEN,
        /// The identity provider instance of the new identity.
        #[de(_, "Der Identitätsanbieter der neuen Identität.")]
        replacement_idp_instance_id: IdpInstanceId = OPEN,
        /// The unique id of the person at the instance. For a user store, it is the id of the user.
        #[de(
            "Benutzerkennung der neuen Identität",
            "Die eindeutige Kennung der Person beim Identitätsanbieter. Bei einem Benutzerspeicher ist es die Kennung des Benutzers."
        )]
        replacement_unique_user_id: Name = OPEN,
        /// The issuer of the new identity. If missing, the option ClaimIssuer of a user store applies, or the option Authority of another
        /// instance.
        #[de(
            _,
            "Der Aussteller der neuen Identität. Fehlt er, gilt bei einem Benutzerspeicher die Einstellung ClaimIssuer, sonst die Einstellung Authority."
        )]
        replacement_issuer: Option<OptionValue> = OPEN,
        /// The subject of the new identity at the issuer. If missing, `replacementUniqueUserId` applies.
        #[de(_, "Der Bezeichner der neuen Identität beim Aussteller. Fehlt er, gilt die Benutzerkennung der neuen Identität.")]
        replacement_subject: Option<Name> = OPEN,
        /// Whether the instance is a user store. If missing, the server determines it.
        #[de(_, "Ob der Identitätsanbieter ein Benutzerspeicher ist. Fehlt die Angabe, ermittelt sie der Server.")]
        is_user_store_identity: Option<bool> = OPEN,
        /// Why the identity is replaced.
        reason: ShortText = OPEN,
        /// The SHA-256 of the replacement settings that the caller expects, in the form of `policyFingerprint` in the records.
        #[de(
            _,
            "Der SHA-256-Wert der Einstellungen zum Identitätswechsel, den der Antragsteller erwartet, in der Form, in der er in den Vorgängen steht."
        )]
        policy_fingerprint: Option<Name> = OPEN,
        /// The number of required approvals.
        required_approvals: Approvals = OPEN.or(DefaultValue::Int(1)),
        /// The lifetime of the request, in minutes.
        #[de(_, "Die Gültigkeitsdauer des Antrags in Minuten.")]
        lifetime_minutes: Lifetime = OPEN.or(DefaultValue::Int(1440)),
    }
}

record! {
    /// A proof that one of the two identities belongs to the person.
    pub struct Proof {
        /// The identity that was proven.
        #[de("Identität", "Die nachgewiesene Identität.")]
        identity: WhichIdentity = OPEN,
    }
}
