//! Consents: the access that a person, or an administrator for the person, grants to a client app.

use chancery_application::{APPLICATION_USER, ApplicationUserId, SignOutScope, sign_out};
use chancery_record::{
    DefaultValue, FIXED, KEY, SHOWN, ShortText, Timestamp, Token, choice_types, id_types, record,
};
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Parent, Permit::TenantMember, Problem, ProposedRow,
    Reach, Reply, Shape, Tx, Unique, Violation, Writer, delete, event_name, event_type, load,
};

use crate::client_app::{CLIENT_APP, ClientAppId};

id_types! {
    /// The id of a consent.
    SignInConsentId
}

choice_types! {
    /// Who gave a consent.
    ConsentSource {
        /// The person.
        Person,
        /// An administrator, for the person.
        Administrator,
    }
}

record! {
    /// A consent: the access that a client app may have on behalf of a user.
    #[de("Zustimmung", "Zustimmungen", "Eine Zustimmung: der Zugriff, den eine Client-App im Namen eines Benutzers haben darf.")]
    pub struct SignInConsent {
        /// The consent.
        id: SignInConsentId = KEY,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// The platform user.
        platform_user_id: ApplicationUserId = FIXED.stored_as("person_id"),
        /// The scopes, separated by single spaces.
        scope: ShortText = FIXED,
        /// The resources, separated by single spaces.
        #[de(_, "Die Ressourcen, durch einzelne Leerzeichen getrennt.")]
        resources: ShortText = FIXED.or(DefaultValue::Text("")),
        /// Who gave the consent.
        source: ConsentSource = SHOWN.or(DefaultValue::Text("Administrator")),
        /// When the consent was given or last extended.
        #[de("Erteilt am")]
        given_on: Option<Timestamp> = SHOWN,
        /// When the user granted the client app the user's own rights at the platform, on a page. An administrator cannot grant them.
        #[de("Zugriff auf die Plattform erteilt am")]
        platform_given_on: Option<Timestamp> = SHOWN,
        /// Concurrency token. It changes with every write to the consent.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of consents, in the scope of the person.
pub static SIGN_IN_CONSENT: Shape = Shape::of::<SignInConsent>(
    "SignInConsent",
    "sign_in_consent",
    Reach::Of(SignInConsent::PLATFORM_USER_ID.field(), &APPLICATION_USER),
)
.belonging(&[
    Parent::new(SignInConsent::CLIENT_APP_ID, &CLIENT_APP),
    Parent::new(SignInConsent::PLATFORM_USER_ID, &APPLICATION_USER),
])
.unique(&[
    Unique::new("sign_in_consent__id", &[SignInConsent::ID.field()]),
    Unique::new(
        "sign_in_consent__client_app_id__person_id",
        &[SignInConsent::CLIENT_APP_ID.field(), SignInConsent::PLATFORM_USER_ID.field()],
    )
    .reported_at(SignInConsent::CLIENT_APP_ID),
])
.validate_rows(set_time)
.of_person(&APPLICATION_USER, SignInConsent::PLATFORM_USER_ID)
.open()
.event_types(&[
    (event_name!("created"), event_type!("platform.signin.consent.given")),
    (event_name!("updated"), event_type!("platform.signin.consent.given")),
    (event_name!("deleted"), event_type!("platform.signin.consent.withdrawn")),
]);

/// Sets the time of new consents.
fn set_time(
    writer: Writer<'_>,
    _: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    for row in rows.iter_mut().filter(|row| row.was.is_none()) {
        row.set(SignInConsent::GIVEN_ON, Some(writer.context.now))?;
    }
    Ok(Vec::new())
}

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, TenantMember, &SIGN_IN_CONSENT, action, summary).added()
}

/// The operations on consents.
pub static OPERATIONS: &[Op] = &[
    op("GetSignInConsents", M::Get, "/SignInConsent", A::List, "Lists the consents of users to client apps."),
    op("GetSignInConsent", M::Get, "/SignInConsent/{id}", A::Read, "Reads a consent."),
    op(
        "CreateSignInConsent",
        M::Post,
        "/SignInConsent",
        A::Create,
        "Creates a consent on behalf of a user. Client apps with accessGrantConsent External require it.",
    ),
    op(
        "WithdrawSignInConsent",
        M::Delete,
        "/SignInConsent/{id}",
        A::Custom(Custom::writing(withdraw).replying(Reply::Empty)),
        "Withdraws a consent and revokes all grants of the client app for the user.",
    )
    .answering(204, Reply::Empty),
];

fn withdraw(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = SIGN_IN_CONSENT.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &SIGN_IN_CONSENT, None, key)?;
    let access = SignOutScope::Access {
        client_app: SignInConsent::CLIENT_APP_ID.get(&was.values)?.0,
        person: SignInConsent::PLATFORM_USER_ID.get(&was.values)?.0,
    };
    sign_out(&call.context, tx, access)?;
    delete(&call.context, tx, &SIGN_IN_CONSENT, &was)?;
    Ok(Answer::new(call.request.op.status))
}
