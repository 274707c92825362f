//! Second factors that people enrolled.

use chancery_application::{APPLICATION_USER, ApplicationUserId, sign_out_by};
use chancery_record::{KEY, SHOWN, Timestamp, choice_types, id_types, record};
use chancery_resource::{
    Action as A, Answer, Call, Context, Custom, Method as M, Op, Permit::Administrator, Problem, Reach,
    Reply, Shape, StateTable, StoredRow, Tx, audit_removal, event_name, event_type, load, load_statements,
    select_where,
};
use uuid::Uuid;

use crate::mfa_instance::{MFA_INSTANCE, MfaInstanceId};

id_types! {
    /// The id of a second factor that a person enrolled.
    SignInFactorId
}

choice_types! {
    /// The kind of a second factor.
    SignInFactorKind {
        /// An authenticator app, which shows a time-based code.
        Authenticator,
    }
}

record! {
    /// A second factor that a user enrolled. Its secret is never returned.
    #[de(
        "Eingerichteter Faktor",
        "Eingerichtete Faktoren",
        "Ein zweiter Faktor, den ein Benutzer eingerichtet hat. Sein Geheimnis wird nie ausgegeben."
    )]
    pub struct SignInFactor {
        /// The factor.
        id: SignInFactorId = KEY,
        /// The platform user.
        platform_user_id: ApplicationUserId = SHOWN,
        /// The MFA instance.
        #[de("Zweiter Faktor")]
        mfa_instance_id: MfaInstanceId = SHOWN,
        /// The kind of second factor.
        #[de(_, "Die Art des zweiten Faktors.")]
        kind: SignInFactorKind = SHOWN,
        /// The number of remaining recovery codes that can be used instead of the factor.
        #[de("Wiederherstellungscodes")]
        recovery_codes: i64 = SHOWN,
        /// When it was enrolled.
        #[de("Eingerichtet am")]
        enrolled_on: Timestamp = SHOWN,
        /// When it was last used.
        used_on: Option<Timestamp> = SHOWN,
    }
}

/// In the scope of the person, or of the MFA instance.
static REACH: [Reach; 2] = [
    Reach::Of(SignInFactor::MFA_INSTANCE_ID.field(), &MFA_INSTANCE),
    Reach::Of(SignInFactor::PLATFORM_USER_ID.field(), &APPLICATION_USER),
];

/// The shape of second factors, which people enrol while they sign in.
pub static SIGN_IN_FACTOR: Shape = Shape::of::<SignInFactor>(
    "SignInFactor",
    "(SELECT f.rid, f.id, f.person_id AS platform_user_id, f.mfa_instance_id, 'Authenticator' AS kind, \
     (SELECT count(*) FROM recovery_code c WHERE c.second_factor_id = f.id) AS recovery_codes, \
     f.enrolled_on, f.used_on, CAST(0 AS BIGINT) AS last_entry FROM second_factor f)",
    Reach::Any(&REACH),
)
.of_person(&APPLICATION_USER, SignInFactor::PLATFORM_USER_ID)
.sensitive()
.event_types(&[(event_name!("removed"), event_type!("platform.signin.factor.removed"))]);

/// The operations on second factors.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetSignInFactors",
        M::Get,
        "/SignInFactor",
        Administrator,
        &SIGN_IN_FACTOR,
        A::List,
        "Lists the second factors that people enrolled.",
    )
    .added(),
    Op::new(
        "DeleteSignInFactor",
        M::Delete,
        "/SignInFactor/{id}",
        Administrator,
        &SIGN_IN_FACTOR,
        A::Custom(Custom::writing(remove).replying(Reply::Empty)),
        "Removes a person's second factor and recovery codes, and ends the sessions that it was used in.",
    )
    .answering(204, Reply::Empty)
    .added(),
];

fn remove(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = SIGN_IN_FACTOR.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &SIGN_IN_FACTOR, None, key)?;
    remove_one(&call.context, tx, &was)?;
    Ok(Answer::new(call.request.op.status))
}

/// Removes all second factors of a person, within the scope.
pub fn remove_of(context: &Context, tx: &mut Tx<'_>, person: Uuid) -> Result<(), Problem> {
    let of_person = select_where(context, &SIGN_IN_FACTOR, SignInFactor::PLATFORM_USER_ID, person.into());
    for (_, was) in load_statements(context, tx, &SIGN_IN_FACTOR, &[of_person])? {
        remove_one(context, tx, &was)?;
    }
    Ok(())
}

/// The recovery codes replace the authenticator, so they are deleted with it.
fn remove_one(context: &Context, tx: &mut Tx<'_>, was: &StoredRow) -> Result<(), Problem> {
    let id = SignInFactor::ID.get(&was.values)?.0;
    tx.queue(&StateTable::SecondFactor.delete("WHERE id = ?1"), vec![id.into()])?;
    sign_out_by(context, tx, SignInFactor::PLATFORM_USER_ID.get(&was.values)?.0, id)?;
    audit_removal(context, tx, &SIGN_IN_FACTOR, was, event_name!("removed"))
}
