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
    /// A record of a sign-in attempt by a known user.
    #[de("Anmeldung", "Anmeldungen", "Ein Eintrag über den Anmeldeversuch eines bekannten Benutzers.")]
    pub struct SignInRecord {
        /// The record.
        id: SignInRecordId = KEY,
        /// When the attempt took place.
        occurred_on: Timestamp = SHOWN,
        /// The tenant.
        tenant_id: TenantId = SHOWN,
        /// The client app.
        client_app_id: Option<ClientAppId> = SHOWN,
        /// The identity provider instance through which the person signed in.
        idp_instance_id: Option<IdpInstanceId> = SHOWN,
        /// The platform user.
        platform_user_id: ApplicationUserId = SHOWN,
        /// The outcome of the attempt.
        #[de("Ergebnis")]
        outcome: SignInOutcome = SHOWN,
        /// Why the attempt was refused.
        reason: Option<SignInReason> = SHOWN,
        /// The authentication methods that were used: values of `amr`, separated by single spaces.
        #[de("Verfahren")]
        methods: ShortText = SHOWN,
        /// The authentication context class that was reached (`acr`).
        #[de("Authentifizierungsstufe")]
        acr: Option<Name> = SHOWN,
        /// The session.
        session_id: Option<SignInSessionId> = SHOWN,
        /// The address of the browser. Null after the person is erased.
        address: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// The user agent of the browser. Null after the person is erased.
        #[de("Browser")]
        user_agent: Option<ShortText> = SHOWN.sealed(Sealing::Person),
        /// The number of attempts in the record. Failed attempts of a user from one address within an hour and for the same reason share
        /// one record.
        #[de(
            "Versuche",
            "Die Anzahl der Versuche in diesem Eintrag. Fehlgeschlagene Versuche eines Benutzers von einer Adresse innerhalb einer Stunde und aus demselben Grund stehen in einem Eintrag."
        )]
        attempts: i64 = SHOWN,
        /// When the last attempt in the record took place. Client app, instance and methods are those of the last attempt.
        #[de(
            "Letzter Versuch am",
            "Wann der letzte Versuch in diesem Eintrag stattfand. Anwendung, Instanz und Verfahren sind die des letzten Versuchs."
        )]
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
        "Lists the records of sign-in attempts.",
    )
    .added(),
    Op::new(
        "GetSignInRecord",
        M::Get,
        "/SignInRecord/{id}",
        Permit::SignInRecord,
        &SIGN_IN_RECORD,
        A::Read,
        "Reads the record of a sign-in attempt.",
    )
    .added(),
];

/// The associated data of the personal data in a record.
pub fn associated_data(column: &str, id: Uuid) -> String {
    chancery_resource::personal_associated_data(SIGN_IN_RECORD.name, column, id)
}
