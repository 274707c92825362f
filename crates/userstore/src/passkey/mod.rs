//! Passkeys of users: the credentials, the ceremonies that register and use them, and the passes and
//! recoveries for users who lost theirs.

mod access_pass;
mod authenticator_model;
mod ceremony;
mod event;
mod facts;
mod overview;
mod progress;
mod recovery;
pub mod sign_in;

use chancery_application::sign_out_user_by;
use chancery_passkey::{Policy, PolicyOption};
use chancery_record::{
    Bytes, HIDDEN, KEY, Name, OWNER, Record as _, SCOPE, SHOWN, Timestamp, id_types, record,
};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Action as A, Answer, Body, Call, Context, Custom, JsonForm, Method as M, Op, Permit::UserStore, Problem,
    Purpose, Reach, Reply, Shape, Tx, Unique, audit_trail::Digest, delete as delete_row, load, owner_of,
};
use serde_json::json;
use uuid::Uuid;

pub use access_pass::{
    ACCESS_PASS, OPERATIONS as ACCESS_PASS_OPERATIONS, find as find_access_pass, has_any as has_access_pass,
    note_use as note_access_pass, revoke_open_passes, revoke_passes,
};
pub use event::{
    EventType as SecurityEvent, OPERATIONS as EVENT_OPERATIONS, record as record_security_event,
};
pub use facts::blocking_reasons;
pub use overview::OPERATIONS as OVERVIEW_OPERATIONS;
pub use progress::OPERATIONS as PROGRESS_OPERATIONS;
pub use recovery::{OPERATIONS as RECOVERY_OPERATIONS, RECOVERY};

use crate::{InstanceId, UserId, password::options, user::USER};

id_types! {
    /// The id of a passkey.
    PasskeyId
}

record! {
    /// A passkey: a key pair of a user. An authenticator stores the private key.
    #[de("Passkey", "Passkeys")]
    pub struct PasskeyCredential {
        /// The passkey.
        id: PasskeyId = KEY,
        /// The user.
        user_id: UserId = OWNER,
        /// The name.
        name: Name = SHOWN,
        /// The credential id of the passkey, base64.
        #[de("Kennung des Passkeys")]
        credential_id_base64: Bytes = SHOWN.stored_as("credential_id"),
        /// The model of the authenticator.
        #[de("Modell des Authentikators")]
        aaguid_hex: Digest = SHOWN.stored_as("aaguid"),
        /// When it was registered.
        created_on: Timestamp = SHOWN,
        /// When it was last used.
        last_used_on: Option<Timestamp> = SHOWN,
        /// The user store that the user is in.
        instance_id: InstanceId = SCOPE,
        /// Whether the passkey can be copied to other devices.
        #[de("Kann kopiert werden")]
        is_backup_eligible: bool = SHOWN,
        /// Whether the passkey was copied to other devices.
        #[de("Auf andere Geräte kopiert")]
        is_backed_up: bool = SHOWN,
        /// Who registered it, if that was not the user.
        set_by: Option<Uuid> = HIDDEN,
        /// Its public key and what was proved with it.
        kept: Bytes = HIDDEN,
    }
}

/// The shape of passkeys.
pub static PASSKEY: Shape =
    Shape::of::<PasskeyCredential>("PasskeyCredential", "passkey_credential", Reach::Store)
        .owned(&USER, "user_rid")
        .noting_setter(PasskeyCredential::SET_BY, &[PasskeyCredential::CREDENTIAL_ID_BASE64.field()])
        .unique(&[
            Unique::new("passkey_credential__store__id", &[PasskeyCredential::ID.field()]),
            Unique::new(
                "passkey_credential__store__credential_id",
                &[PasskeyCredential::CREDENTIAL_ID_BASE64.field()],
            ),
        ]);

/// The answer of a client's WebAuthn interface: `credential.toJSON()`.
static ANSWER: JsonForm = JsonForm {
    name: "PasskeyAnswer",
    schema: || {
        json!({
            "type": "object",
            "description": "The response of the browser's credential: PublicKeyCredential.toJSON() (WebAuthn Level 3).",
            "required": ["id", "rawId", "type", "response"],
            "properties": {
                "id": { "type": "string", "description": "The credential's id, base64url." },
                "rawId": { "type": "string", "description": "The same value as `id`." },
                "type": { "type": "string", "description": "public-key" },
                "response": { "type": "object", "description": "The authenticator's response." },
            },
        })
    },
};

static CEREMONY: JsonForm = JsonForm {
    name: "PasskeyCeremony",
    schema: || {
        json!({
            "type": "object",
            "description": "A WebAuthn ceremony that was started. It can be finished once, within five minutes.",
            "required": ["ceremonyId", "publicKey"],
            "properties": {
                "ceremonyId": { "type": "string", "format": "uuid", "description": "The id of the ceremony." },
                "publicKey": { "type": "object", "description": "The options with which the browser's WebAuthn interface is to be called." },
            },
        })
    },
};

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &PASSKEY, action, summary)
}

const USER_PATH: &str = "/administration/PasskeyCredential/user/{userId}";

/// The operations on passkeys.
pub static OPERATIONS: &[Op] = &[
    op("GetPasskeyCredentialsByUserId", M::Get, USER_PATH, A::List, "Lists a user's passkeys."),
    op(
        "DeletePasskeyCredential",
        M::Delete,
        "/administration/PasskeyCredential/user/{userId}/{passkeyId}",
        A::Custom(Custom::writing(delete).replying(Reply::Empty)),
        "Deletes a passkey of a user.",
    )
    .answering(204, Reply::Empty),
    op(
        "StartPasskeyRegistration",
        M::Post,
        "/administration/PasskeyCredential/user/{userId}/registration",
        A::Custom(Custom::writing(ceremony::start_registration).replying(Reply::Json(&CEREMONY))),
        "Starts the registration of a passkey for a user.",
    )
    .added(),
    op(
        "FinishPasskeyRegistration",
        M::Put,
        "/administration/PasskeyCredential/user/{userId}/registration/{ceremonyId}",
        A::Custom(
            Custom::working(Purpose::Passkey, ceremony::finish_registration).taking(Body::Json(&ANSWER)),
        ),
        "Registers the passkey that the user's authenticator created.",
    )
    .answering(201, Reply::One)
    .added(),
    op(
        "StartPasskeyAuthentication",
        M::Post,
        "/administration/PasskeyCredential/authentication",
        A::Custom(
            Custom::writing(ceremony::start_authentication)
                .taking(Body::Form(&ceremony::START))
                .replying(Reply::Json(&CEREMONY)),
        ),
        "Starts an authentication with a passkey, for one user or for any user with a discoverable credential.",
    )
    .added(),
    op(
        "FinishPasskeyAuthentication",
        M::Put,
        "/administration/PasskeyCredential/authentication/{ceremonyId}",
        A::Custom(
            Custom::working(Purpose::Passkey, ceremony::finish_authentication)
                .taking(Body::Json(&ANSWER))
                .replying(Reply::Form(&ceremony::AUTHENTICATED)),
        ),
        "Verifies the assertion of the authenticator, and returns the user.",
    )
    .added(),
];

/// The store's policy for passkeys.
fn policy(context: &Context) -> Result<Policy, Problem> {
    Ok(policy_by(&*options(context)?, &context.app.public_url))
}

fn text_of(options: &Options<UserStoreOption>, option: PolicyOption) -> &str {
    match option {
        PolicyOption::AllowedAaguids => options.text(UserStoreOption::PASSKEY_ALLOWED_AAGUIDS),
        PolicyOption::AllowedOrigins => options.text(UserStoreOption::PASSKEY_ALLOWED_ORIGINS),
        PolicyOption::Attestation => options.text(UserStoreOption::PASSKEY_ATTESTATION),
        PolicyOption::BindingMaturity => options.text(UserStoreOption::PASSKEY_BINDING_MATURITY),
        PolicyOption::BlockedAaguids => options.text(UserStoreOption::PASSKEY_BLOCKED_AAGUIDS),
        PolicyOption::Enabled => options.text(UserStoreOption::PASSKEY_ENABLED),
        PolicyOption::RelyingPartyId => options.text(UserStoreOption::PASSKEY_RELYING_PARTY_ID),
        PolicyOption::RelyingPartyName => options.text(UserStoreOption::PASSKEY_RELYING_PARTY_NAME),
        PolicyOption::RequiredCredentialCount => {
            options.text(UserStoreOption::PASSKEY_REQUIRED_CREDENTIAL_COUNT)
        }
        PolicyOption::RequiredVerifiedSecurityContactCount => {
            options.text(UserStoreOption::PASSKEY_REQUIRED_VERIFIED_SECURITY_CONTACT_COUNT)
        }
        PolicyOption::TemporaryAccessPassEnabled => {
            options.text(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED)
        }
        PolicyOption::UserVerification => options.text(UserStoreOption::PASSKEY_USER_VERIFICATION),
    }
}

fn policy_by(options: &Options<UserStoreOption>, public_url: &str) -> Policy {
    let maturity = options.get(UserStoreOption::PASSKEY_BINDING_MATURITY);
    Policy::from_options(|option| text_of(options, option), maturity, public_url)
}

fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner_of(call, tx, &PASSKEY)?.ok_or_else(|| Problem::not_found("User"))?;
    let key = PASSKEY.read_key(call.request.parameter(1))?;
    let was = load(&call.context, tx, &PASSKEY, Some(&owner), key)?;
    let passkey = PasskeyCredential::from_values(was.values.clone())?;
    delete_row(&call.context, tx, &PASSKEY, &was)?;
    let store = call.context.scope.of_store()?.id;
    sign_out_user_by(&call.context, tx, store, owner.id, passkey.id.0)?;
    event::record(
        &call.context,
        tx,
        UserId(owner.id),
        event::EventType::PasskeyDeleted,
        Some(passkey.id.0),
        Some(passkey.name.as_str()),
    )?;
    Ok(Answer::new(call.request.op.status))
}
