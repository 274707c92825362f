//! Sessions of people who are signed in.

use chancery_application::{
    APPLICATION_USER, ApplicationUser, ApplicationUserId, SignOutScope, sign_out, sign_out_audited,
};
use chancery_record::{KEY, SHOWN, Timestamp, id_types, record};
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::Administrator, Problem, Reach, Reply, Shape,
    Tx, audit_state, event_name, event_type, load,
};

use crate::{
    idp_instance::IdpInstanceId,
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a session.
    SignInSessionId
}

record! {
    /// A session: the sign-in of a user in one browser.
    #[de("Anmeldesitzung", "Anmeldesitzungen", "Eine Sitzung: die Anmeldung eines Benutzers in einem Browser.")]
    pub struct SignInSession {
        /// The session.
        id: SignInSessionId = KEY,
        /// The tenant.
        tenant_id: TenantId = SHOWN,
        /// The platform user.
        platform_user_id: ApplicationUserId = SHOWN,
        /// The identity provider instance through which the person signed in.
        idp_instance_id: IdpInstanceId = SHOWN,
        /// Whether the session outlives the browser session.
        #[de("Bleibt nach dem Schließen bestehen")]
        is_kept: bool = SHOWN,
        /// When the person signed in.
        started_on: Timestamp = SHOWN,
        /// When the session was last used, accurate to five minutes.
        used_on: Timestamp = SHOWN,
        /// When the session expires if it is not used.
        expires_on: Timestamp = SHOWN,
        /// When it was ended.
        ended_on: Option<Timestamp> = SHOWN,
    }
}

/// In the scope of the tenant, or of the person.
pub(super) static REACH: [Reach; 2] = [
    Reach::Of(SignInSession::TENANT_ID.field(), &TENANT),
    Reach::Of(SignInSession::PLATFORM_USER_ID.field(), &APPLICATION_USER),
];

/// The shape of sessions, which are written where people sign in.
pub static SIGN_IN_SESSION: Shape = Shape::of::<SignInSession>(
    "SignInSession",
    "(SELECT rid, id, tenant_id, person_id AS platform_user_id, idp_instance_id, is_kept, started_on, used_on, \
     expires_on, ended_on, CAST(0 AS BIGINT) AS last_entry FROM sign_in_session)",
    Reach::Any(&REACH),
)
.of_person(&APPLICATION_USER, SignInSession::PLATFORM_USER_ID)
.open()
.sensitive()
.event_types(&[(event_name!("ended"), event_type!("platform.signin.session.ended"))]);

/// The operations on sessions.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetSignInSessions",
        M::Get,
        "/SignInSession",
        Administrator,
        &SIGN_IN_SESSION,
        A::List,
        "Lists the sessions of users.",
    )
    .added(),
    Op::new(
        "GetSignInSession",
        M::Get,
        "/SignInSession/{id}",
        Administrator,
        &SIGN_IN_SESSION,
        A::Read,
        "Reads a session.",
    )
    .added(),
    Op::new(
        "EndSignInSession",
        M::Delete,
        "/SignInSession/{id}",
        Administrator,
        &SIGN_IN_SESSION,
        A::Custom(Custom::writing(end).replying(Reply::Empty)),
        "Ends a session: the user has to sign in again. Grants for offline access remain valid.",
    )
    .answering(204, Reply::Empty)
    .added(),
    Op::new(
        "SignOutApplicationUser",
        M::Post,
        "/ApplicationUser/{id}/signout",
        Administrator,
        &APPLICATION_USER,
        // a person who is signed out can sign in again: nothing of the person changes
        A::Custom(Custom::writing(sign_out_person).replying(Reply::Empty).by_rows()),
        "Ends all sessions of a user and revokes all grants of client apps for the user.",
    )
    .answering(204, Reply::Empty)
    .sensitive()
    .added(),
];

fn end(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = SIGN_IN_SESSION.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &SIGN_IN_SESSION, None, key)?;
    if SignInSession::ENDED_ON.get(&was.values)?.is_none() {
        let mut values = was.values.clone();
        SignInSession::ENDED_ON.set(&mut values, Some(call.context.now))?;
        sign_out_audited(&call.context, tx, SignOutScope::Session(SignInSession::ID.get(&was.values)?.0))?;
        audit_state(&call.context, tx, &SIGN_IN_SESSION, &was, &values, event_name!("ended"))?;
    }
    Ok(Answer::new(call.request.op.status))
}

fn sign_out_person(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = APPLICATION_USER.read_key(call.request.parameter(0))?;
    let person = load(&call.context, tx, &APPLICATION_USER, None, key)?;
    let id = ApplicationUser::ID.get(&person.values)?.0;
    sign_out(&call.context, tx, SignOutScope::People(&[id]))?;
    audit_state(&call.context, tx, &APPLICATION_USER, &person, &person.values, event_name!("signed-out"))?;
    Ok(Answer::new(call.request.op.status))
}
