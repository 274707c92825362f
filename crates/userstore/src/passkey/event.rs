//! Security events of a user's passkeys: written once, never changed.

use chancery_record::{
    FIXED, KEY, Record as _, SHOWN, ShortText, Timestamp, Uuid, choice_types, id_types, record,
};
use chancery_resource::{
    Action as A, Context, Custom, Method as M, Op, Permit::UserStore, Problem, Reach, Reply, Shape, Tx,
    list_where, new_row,
};

use crate::{UserId, user::USER};

id_types! {
    /// The id of a security event.
    EventId
}

choice_types! {
    /// The type of a security event.
    EventType {
        /// A passkey was created.
        PasskeyRegistered,
        /// A passkey got another name.
        PasskeyRenamed,
        /// A passkey was deleted.
        PasskeyDeleted,
        /// A passkey was used to sign in.
        PasskeyUsed,
        /// A passkey was refused.
        PasskeyAuthenticationFailed,
        /// A signature counter went backwards: there may be a copy.
        PasskeyCloneSuspected,
        /// A temporary access pass was created.
        TemporaryAccessPassIssued,
        /// A temporary access pass was used.
        TemporaryAccessPassUsed,
        /// A temporary access pass was revoked.
        TemporaryAccessPassRevoked,
        /// A recovery was requested.
        RecoveryStarted,
        /// A recovery was completed.
        RecoveryCompleted,
        /// A recovery was cancelled.
        RecoveryCancelled,
        /// The password was removed.
        PasswordRemoved,
        /// The password was restored.
        PasswordRestored,
        /// The metadata of authenticators was refreshed.
        TrustSnapshotRefreshed,
    }
}

record! {
    /// A security event in connection with a user's passkeys.
    #[de("Sicherheitsereignis", "Sicherheitsereignisse", "Ein Sicherheitsereignis im Zusammenhang mit den Passkeys eines Benutzers.")]
    pub struct PasskeySecurityEvent {
        /// The id of the event.
        #[de(_, "Die Kennung des Ereignisses.")]
        id: EventId = KEY,
        /// The user.
        user_id: UserId = FIXED,
        /// The type of the event.
        #[de("Ereignis")]
        event_type: EventType = SHOWN,
        /// The date and time.
        occurred_on: Timestamp = SHOWN,
        /// The actor: the id of a client app or user.
        #[de("Veranlasst von")]
        actor_id: Option<Uuid> = SHOWN,
        /// The passkey that the event concerns.
        credential_id: Option<Uuid> = SHOWN,
        /// Further details as human-readable text.
        #[de("Einzelheiten")]
        details: Option<ShortText> = SHOWN,
    }
}

/// The shape of security events.
pub static EVENT: Shape =
    Shape::of::<PasskeySecurityEvent>("PasskeySecurityEvent", "passkey_security_event", Reach::Store)
        .of_person(&USER, PasskeySecurityEvent::USER_ID);

/// The operations on security events.
pub static OPERATIONS: &[Op] = &[Op::new(
    "ListPasskeySecurityEvents",
    M::Get,
    "/administration/passkey-security/events",
    UserStore,
    &EVENT,
    A::Custom(Custom::listing(|call, tx| list_where(call, tx, &|_| ())).replying(Reply::Items)),
    "Lists the security events in connection with passkeys.",
)];

/// Records an event.
pub fn record(
    context: &Context,
    tx: &mut Tx<'_>,
    user: UserId,
    event_type: EventType,
    credential: Option<Uuid>,
    details: Option<&str>,
) -> Result<(), Problem> {
    let wrong =
        |_| Problem::from(chancery_resource::StoreError::Internal("an event's own text is too long".into()));
    let event = PasskeySecurityEvent {
        id: EventId(context.new_id()),
        user_id: user,
        event_type,
        occurred_on: context.now,
        actor_id: context.actor,
        credential_id: credential,
        details: details.map(ShortText::new).transpose().map_err(wrong)?,
    };
    let values = new_row(context, &EVENT, None, event.into_values())?;
    chancery_resource::insert_unaudited(context, tx, &EVENT, None, &values)
}
