//! Grants: the access of client apps to people who signed in.

use chancery_application::{APPLICATION_USER, ApplicationUserId, SignOutScope, sign_out_audited};
use chancery_record::{KEY, SHOWN, ShortText, Timestamp, id_types, record};
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::Administrator, Problem, Reach, Reply, Shape,
    Tx, audit_state, event_name, event_type, load,
};

use super::session::SignInSessionId;
use crate::{
    client_app::ClientAppId,
    idp_instance::IdpInstanceId,
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a grant.
    SignInGrantId
}

record! {
    /// A grant: the access of a client app on behalf of a user. Its tokens are valid only while the grant is.
    #[de(
        "Erlaubnis",
        "Erlaubnisse",
        "Eine Erlaubnis: der Zugriff einer Client-App im Namen eines Benutzers. Ihre Token gelten nur, solange die Erlaubnis gilt."
    )]
    pub struct SignInGrant {
        /// The id of the grant: `gid` in tokens.
        #[de(_, "Die Kennung der Erlaubnis: `gid` in Token.")]
        id: SignInGrantId = KEY,
        /// The client app.
        client_app_id: ClientAppId = SHOWN,
        /// The tenant.
        tenant_id: TenantId = SHOWN,
        /// The platform user.
        platform_user_id: ApplicationUserId = SHOWN,
        /// The identity provider instance through which the person signed in.
        idp_instance_id: IdpInstanceId = SHOWN,
        /// The session in which the grant was created. Null for a grant to a device.
        session_id: Option<SignInSessionId> = SHOWN,
        /// The scopes, separated by single spaces.
        scope: ShortText = SHOWN,
        /// Whether the grant is for offline access: by a refresh token, beyond the session.
        #[de("Offline-Zugriff")]
        is_offline: bool = SHOWN,
        /// When it began.
        started_on: Timestamp = SHOWN,
        /// When its refresh token was last used.
        used_on: Timestamp = SHOWN,
        /// When the last token of the grant expires.
        expires_on: Timestamp = SHOWN,
        /// When it was ended.
        ended_on: Option<Timestamp> = SHOWN,
    }
}

/// In the scope of the tenant, or of the person.
static REACH: [Reach; 2] = [
    Reach::Of(SignInGrant::TENANT_ID.field(), &TENANT),
    Reach::Of(SignInGrant::PLATFORM_USER_ID.field(), &APPLICATION_USER),
];

/// The shape of grants, which are written where people sign in.
pub static SIGN_IN_GRANT: Shape = Shape::of::<SignInGrant>(
    "SignInGrant",
    "(SELECT rid, id, client_app_id, tenant_id, person_id AS platform_user_id, idp_instance_id, session_id, scope, \
     is_offline, started_on, used_on, expires_on, ended_on, CAST(0 AS BIGINT) AS last_entry FROM sign_in_grant)",
    Reach::Any(&REACH),
)
.of_person(&APPLICATION_USER, SignInGrant::PLATFORM_USER_ID)
.open()
.event_types(&[(event_name!("revoked"), event_type!("platform.signin.grant.revoked"))]);

/// The operations on grants.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetSignInGrants",
        M::Get,
        "/SignInGrant",
        Administrator,
        &SIGN_IN_GRANT,
        A::List,
        "Lists the grants of client apps.",
    )
    .added(),
    Op::new(
        "GetSignInGrant",
        M::Get,
        "/SignInGrant/{id}",
        Administrator,
        &SIGN_IN_GRANT,
        A::Read,
        "Reads a grant of a client app.",
    )
    .added(),
    Op::new(
        "RevokeSignInGrant",
        M::Delete,
        "/SignInGrant/{id}",
        Administrator,
        &SIGN_IN_GRANT,
        A::Custom(Custom::writing(revoke).replying(Reply::Empty)),
        "Revokes a grant of a client app. Its tokens are no longer valid.",
    )
    .answering(204, Reply::Empty)
    .added(),
];

fn revoke(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = SIGN_IN_GRANT.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &SIGN_IN_GRANT, None, key)?;
    if SignInGrant::ENDED_ON.get(&was.values)?.is_none() {
        let mut values = was.values.clone();
        SignInGrant::ENDED_ON.set(&mut values, Some(call.context.now))?;
        sign_out_audited(&call.context, tx, SignOutScope::Grant(SignInGrant::ID.get(&was.values)?.0))?;
        audit_state(&call.context, tx, &SIGN_IN_GRANT, &was, &values, event_name!("revoked"))?;
    }
    Ok(Answer::new(call.request.op.status))
}
