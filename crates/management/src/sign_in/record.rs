//! Records of attempts to sign in.

use chancery_application::{APPLICATION_USER, ApplicationUserId};
use chancery_record::{KEY, Name, SHOWN, Sealing, ShortText, Timestamp, choice_types, id_types, record};
use chancery_resource::{Action as A, Method as M, Op, Permit, Reach, Shape};
use uuid::Uuid;

use super::session::SignInSessionId;
use crate::{
    client_app::ClientAppId,
    idp_instance::IdpInstanceId,
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a record.
    SignInRecordId
}

choice_types! {
    /// The outcome of an attempt.
    SignInOutcome {
        /// The person is signed in.
        SignedIn,
        /// The person is not admitted.
        Refused,
        /// The person completed a step-up.
        SteppedUp,
        /// The person signed out.
        SignedOut,
        /// A refresh token that was replaced was shown again: the grant ended.
        Reused,
    }
    /// The reason of a refusal.
    SignInReason {
        /// Name or password was wrong.
        Credentials,
        /// The account is locked, or must not be used now.
        Locked,
        /// The person may not use the client app.
        NotAdmitted,
        /// The second factor was wrong.
        SecondFactor,
        /// No second factor can be used.
        SecondFactorUnavailable,
        /// The identity provider refused.
        Provider,
        /// There is no consent.
        Consent,
        /// The person denied access.
        Denied,
        /// The claim rules in force cannot run.
        ClaimRules,
    }
}

record! {
    /// What came of an attempt to sign in, by a person who is known.
    pub struct SignInRecord {
        /// The record.
        id: SignInRecordId = KEY,
        /// When it was.
        occurred_on: Timestamp = SHOWN,
        /// The tenant.
        tenant_id: TenantId = SHOWN,
        /// The client app.
        client_app_id: Option<ClientAppId> = SHOWN,
        /// The instance by which the person signed in.
        idp_instance_id: Option<IdpInstanceId> = SHOWN,
        /// The platform user.
        platform_user_id: ApplicationUserId = SHOWN,
        /// What came of it.
        outcome: SignInOutcome = SHOWN,
        /// Why it was refused.
        reason: Option<SignInReason> = SHOWN,
        /// How the person proved who they are: words of `amr`, with one space between them.
        methods: ShortText = SHOWN,
        /// The class that was reached: `acr`.
        acr: Option<Name> = SHOWN,
        /// The session.
        session_id: Option<SignInSessionId> = SHOWN,
        /// The address that the browser came from; null once the person is erased.
        address: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// The browser, as it names itself; null once the person is erased.
        user_agent: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// How many attempts it counts. Failed ones of a person from one address within an hour, with one reason, are one record.
        attempts: i64 = SHOWN,
        /// When the last of them was. Client app, instance and methods are those of the last one.
        last_attempt_on: Timestamp = SHOWN,
    }
}

/// The shape of records, which are written where people sign in. Address and browser go with the person.
pub static SIGN_IN_RECORD: Shape = Shape::of::<SignInRecord>(
    "SignInRecord",
    "(SELECT rid, id, occurred_on, tenant_id, client_app_id, idp_instance_id, person_id AS platform_user_id, outcome, \
     reason, methods, acr, session_id, address, user_agent, attempts, \
     COALESCE(last_attempt_on, occurred_on) AS last_attempt_on, CAST(0 AS BIGINT) AS store, person_id AS person \
     FROM sign_in_record)",
    Reach::Of(SignInRecord::TENANT_ID.field(), &TENANT),
)
.audit_of(&[&APPLICATION_USER]);

/// The operations on records.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetSignInRecords",
        M::Get,
        "/SignInRecord",
        Permit::SignInRecord,
        &SIGN_IN_RECORD,
        A::List,
        "Lists what came of attempts to sign in.",
    )
    .added(),
    Op::new(
        "GetSignInRecord",
        M::Get,
        "/SignInRecord/{id}",
        Permit::SignInRecord,
        &SIGN_IN_RECORD,
        A::Read,
        "Reads what came of an attempt to sign in.",
    )
    .added(),
];

/// The associated data of the personal data in a record.
pub fn associated_data(column: &str, id: Uuid) -> String {
    chancery_resource::personal_associated_data(SIGN_IN_RECORD.name, column, id)
}
