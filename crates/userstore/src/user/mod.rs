//! Users: the people who sign in.

mod admission;
mod lock;
mod mirror;
mod rules;
mod search;
mod states;
mod unique_email;

use chancery_application::{SignOutScope, counting_roles_of_users, first_above, roles_of_users, sign_out};
use chancery_record::{
    Birthdate, Bytes, DefaultValue, Email, Field, Gender, HIDDEN, KEY, Locale, LoginName, Name, OPEN,
    PersonalUrl, Phone, SCOPE, SHOWN, ScimExtra, Timestamp, Token, Zone, record,
};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    Action as A, Answer, Call, CarriedBy, Context, Custom, JsonForm, Links, Method as M, Op,
    Permit::UserStore, Problem, Protection, Reach, Relation, RelationChange, Shape, Tx, Unique, delta,
    read_one, select_by,
};

use uuid::Uuid;

pub use admission::{Admission, PasswordDue, PasswordTerms};
pub(crate) use lock::key_in_path;
pub use lock::{StateChange, UserForUpdate, limits, sign_out_user, user_of};
pub use mirror::MIRROR;
pub use search::reads as search_reads;
pub use states::{STATES_OPERATIONS, elements_of, refuse_elements};
pub use unique_email::find_taken_by;

use crate::{
    InstanceId, UserId,
    event::changes,
    group::{GROUP, GROUP_MEMBER},
};

const TRUE: DefaultValue = DefaultValue::Bool(true);
const FALSE: DefaultValue = DefaultValue::Bool(false);

record! {
    /// A user of a user store: a person who signs in.
    #[de("Benutzer", "Benutzer", "Ein Benutzer eines Benutzerspeichers: eine Person, die sich anmeldet.")]
    pub struct User {
        /// The user store that the user is in.
        instance_id: InstanceId = SCOPE,
        /// The user.
        id: UserId = KEY,
        /// The user's identifier in a system that users are synchronized from.
        external_unique_identifier: Option<Name> = SHOWN,
        /// The name with which the user signs in. It is unique in the store and case-insensitive.
        #[de(
            _,
            "Der Name, mit dem sich der Benutzer anmeldet. Er ist im Speicher eindeutig, Groß- und Kleinschreibung wird nicht unterschieden."
        )]
        login_name: LoginName = OPEN.folded(),
        /// Given name.
        first_name: Option<Name> = OPEN.folded(),
        /// Family name.
        last_name: Option<Name> = OPEN.folded(),
        /// E-mail address.
        email_address: Option<Email> = OPEN.folded(),
        /// Whether the e-mail address is confirmed to belong to the user. A new address without this field is not confirmed.
        #[de(
            "E-Mail-Adresse bestätigt",
            "Ob bestätigt ist, dass die E-Mail-Adresse dem Benutzer gehört. Eine neue Adresse ohne diese Angabe ist nicht bestätigt."
        )]
        email_address_confirmed: bool = OPEN.or(FALSE),
        /// Telephone number.
        #[de("Telefonnummer")]
        phone_number: Option<Phone> = OPEN,
        /// Whether the telephone number is confirmed to belong to the user. A new number without this field is not confirmed.
        #[de(
            "Telefonnummer bestätigt",
            "Ob bestätigt ist, dass die Telefonnummer dem Benutzer gehört. Eine neue Nummer ohne diese Angabe ist nicht bestätigt."
        )]
        phone_number_confirmed: bool = OPEN.or(FALSE),
        /// Middle name.
        #[de("Weiterer Vorname")]
        middle_name: Option<Name> = OPEN,
        /// Nickname.
        #[de("Spitzname")]
        nickname: Option<Name> = OPEN,
        /// Address of the user's profile page.
        #[de("Profilseite", "Adresse der Profilseite des Benutzers.")]
        profile: Option<PersonalUrl> = OPEN,
        /// Address of a picture of the user.
        #[de(_, "Adresse eines Bildes des Benutzers.")]
        picture: Option<PersonalUrl> = OPEN,
        /// Address of the user's web site.
        #[de("Website", "Adresse der Website des Benutzers.")]
        website: Option<PersonalUrl> = OPEN,
        /// Gender, in the user's own words.
        #[de("Geschlecht", "Geschlecht, in den eigenen Worten des Benutzers.")]
        gender: Option<Gender> = OPEN,
        /// Day of birth.
        #[de("Geburtstag")]
        birthdate: Option<Birthdate> = OPEN,
        /// Time zone.
        #[de("Zeitzone")]
        zoneinfo: Option<Zone> = OPEN,
        /// Language.
        #[de("Sprache")]
        locale: Option<Locale> = OPEN,
        /// Time from which the user may sign in.
        #[de("Gültig ab", "Zeitpunkt, ab dem sich der Benutzer anmelden darf.")]
        user_valid_from: Option<Timestamp> = OPEN,
        /// Time until which the user may sign in.
        #[de("Gültig bis", "Zeitpunkt, bis zu dem sich der Benutzer anmelden darf.")]
        user_valid_to: Option<Timestamp> = OPEN,
        /// Whether the user may sign in at all.
        is_user_active: bool = OPEN.or(TRUE),
        /// Whether failed sign-ins can lock the user.
        #[de("Fehlversuche können sperren", "Ob misslungene Anmeldungen den Benutzer sperren können.")]
        is_user_lock_enabled: bool = OPEN.or(TRUE),
        /// Whether the user is locked until unlocked by an administrator.
        is_user_locked: bool = SHOWN.or(FALSE),
        /// The number of failed sign-ins that count towards the permanent lock.
        #[de("Fehlversuche")]
        failed_user_login_attempts: i64 = SHOWN.or(DefaultValue::Int(0)),
        /// The number of failed sign-ins that count towards the temporary lock.
        #[de("Fehlversuche seit der letzten Sperre")]
        failed_temporary_lock_attempts: i64 = SHOWN.or(DefaultValue::Int(0)),
        /// Time until which the user is locked.
        locked_until: Option<Timestamp> = SHOWN,
        /// Whether the password never expires.
        #[de("Kennwort läuft nie ab", "Ob das Kennwort nie abläuft.")]
        password_never_expires: bool = OPEN.or(FALSE),
        /// Whether an expired password can still be used to set a new one.
        #[de("Darf abgelaufenes Kennwort ändern", "Ob mit einem abgelaufenen Kennwort noch ein neues gesetzt werden kann.")]
        can_change_password_on_expiration: bool = OPEN.or(TRUE),
        /// When the password expires.
        password_expiration: Option<Timestamp> = OPEN,
        /// Whether the password is the initial one.
        #[de("Initiales Kennwort")]
        is_initial_password: bool = SHOWN.or(FALSE),
        /// Whether the user must set a new password.
        #[de("Kennwortänderung erforderlich")]
        is_password_change_required: bool = SHOWN.or(FALSE),
        /// Since when the user waits to be deleted.
        quarantined_on: Option<Timestamp> = HIDDEN,
        /// Whose SCIM tokens made the user: the first of their line.
        scim_owner: Option<Uuid> = HIDDEN.audited(),
        /// What a directory tells of the user beyond the fields.
        scim_extra: Option<ScimExtra> = HIDDEN.audited(),
        /// Who last set the login name, the e-mail address or the telephone number, or what is confirmed of them, if that
        /// was not the user.
        address_set_by: Option<Uuid> = HIDDEN,
        /// Attempts to sign in since the last success, which the throttle slows.
        throttle_step: i64 = HIDDEN.or(DefaultValue::Int(0)),
        /// Until when attempts are refused by the throttle.
        throttled_until: Option<Timestamp> = HIDDEN,
        /// The attempt that reached a limit and is being decided: others wait.
        closing_attempt: Option<Uuid> = HIDDEN,
        /// Since when it is being decided.
        closing_since: Option<Timestamp> = HIDDEN,
        /// The key of what the audit trail says of the user, sealed. It goes with the user.
        audit_key: Option<Bytes> = HIDDEN,
        /// Concurrency token. It changes with every write to the user's own fields.
        concurrency_token: Token = SHOWN,
    }
}

/// The protected fields of a user with roles: all that affect who can sign in as the user. Names, pictures and the
/// like are not protected.
static PROTECTION: Protection = Protection::new(
    counting_roles_of_users,
    CarriedBy::Itself,
    &[
        User::FIRST_NAME.field(),
        User::LAST_NAME.field(),
        User::MIDDLE_NAME.field(),
        User::NICKNAME.field(),
        User::PROFILE.field(),
        User::PICTURE.field(),
        User::WEBSITE.field(),
        User::GENDER.field(),
        User::BIRTHDATE.field(),
        User::ZONEINFO.field(),
        User::LOCALE.field(),
        User::SCIM_EXTRA.field(),
    ],
    Links::Open,
)
.contact_fields(&[User::EMAIL_ADDRESS.field(), User::PHONE_NUMBER.field()]);

/// Whether a credential that an actor created for a user is still valid: the actor must hold all roles that the user carries. A
/// credential that the user requested is.
pub fn is_still_valid(
    context: &Context,
    tx: &mut Tx<'_>,
    user: UserId,
    creator: Option<Uuid>,
) -> Result<bool, Problem> {
    if creator == Some(user.0) {
        return Ok(true);
    }
    let carried = roles_of_users(context, tx, &[user.0])?;
    Ok(first_above(tx, &carried, creator)?.is_none())
}

impl User {
    /// The groups that the user is in.
    pub const MEMBER_OF_GROUPS: Relation =
        Relation::new("memberOfGroups", "The groups that the user is in.", GROUP_MEMBER.reverse(), &GROUP);
}

/// The shape of users.
pub static USER: Shape = Shape::of::<User>("User", "user_account", Reach::Store)
    .ruled::<User>()
    .protected_by(&PROTECTION)
    .noting_setter(User::ADDRESS_SET_BY, ADDRESS)
    .validate_rows(unique_email::find_taken)
    .on_purge(forget)
    .after_write(lock::sign_out_if_not_admitted)
    .name_change(lock::name_change)
    .quarantined(User::QUARANTINED_ON, UserStoreOption::USER_DELETION_QUARANTINE_ENABLED)
    .person(User::AUDIT_KEY)
    .unique(&[
        Unique::new("user_account__store__id", &[User::ID.field()]),
        Unique::new("user_account__store__login_name_key", &[User::LOGIN_NAME.field()]),
        Unique::new(
            "user_account__store__external_unique_identifier__scim_owner",
            &[User::EXTERNAL_UNIQUE_IDENTIFIER.field(), User::SCIM_OWNER.field()],
        )
        .reported_at(User::EXTERNAL_UNIQUE_IDENTIFIER),
    ])
    .relations(const { &[User::MEMBER_OF_GROUPS] });

const ALL: &str = "/administration/User";
const ONE: &str = "/administration/User/{id}";
const BATCH: &str = "/administration/User/batch";
const GROUPS: &str = "/administration/User/{userId}/groups";
const EMAIL: &[&Field] = &[User::EMAIL_ADDRESS.field(), User::EMAIL_ADDRESS_CONFIRMED.field()];

/// The addresses for links and codes, the login name, and their confirmations.
const ADDRESS: &[&Field] = &[
    User::LOGIN_NAME.field(),
    User::EMAIL_ADDRESS.field(),
    User::EMAIL_ADDRESS_CONFIRMED.field(),
    User::PHONE_NUMBER.field(),
    User::PHONE_NUMBER_CONFIRMED.field(),
];

static DELTA: JsonForm = JsonForm { name: "UserDelta", schema: || delta::schema("User") };

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &USER, action, summary)
}

/// The operations on users.
pub static OPERATIONS: &[Op] = &[
    op("GetUsers", M::Get, ALL, A::List, "Lists the users."),
    op(
        "SearchUsers",
        M::Get,
        "/administration/User/search",
        A::Custom(Custom::listing(search::search)),
        "Finds users by the beginning of a name or an e-mail address. Matches by login name come first, then matches by e-mail address.",
    )
    .with_query(search::PARAMETERS)
    .added(),
    op(
        "GetUserDelta",
        M::Get,
        "/administration/User/delta",
        changes(&DELTA),
        "Lists the users that changed after a cursor, in themselves or in their groups. Each user is listed once, in its current state or as deleted.",
    )
    .with_query(delta::QUERY)
    .added(),
    op("CreateUser", M::Post, ALL, A::Create, "Creates a user."),
    op("UpdateUsers", M::Put, BATCH, A::ReplaceBatch, "Replaces many users, all or none."),
    op("CreateBatch", M::Post, BATCH, A::CreateBatch, "Creates many users, all or none."),
    op("DeleteBatch", M::Delete, BATCH, A::DeleteBatch, "Deletes many users, all or none."),
    op("GetUser", M::Get, ONE, A::Read, "Reads a user."),
    op("UpdateUser", M::Put, ONE, A::Replace, "Replaces a user."),
    op("DeleteUser", M::Delete, ONE, A::Delete, "Deletes a user: hidden at once, purged later."),
    op("PatchUser", M::Patch, ONE, A::Patch, "Changes a user."),
    op(
        "GetUserByLoginName",
        M::Get,
        "/administration/User/loginname/{userName}",
        A::Custom(Custom::reading(by_login_name)),
        "Reads a user by login name, without regard to case.",
    ),
    op(
        "UpdateUserEmailAddress",
        M::Put,
        "/administration/User/{userId}/emailaddress",
        A::ReplaceMembers(EMAIL),
        "Replaces a user's e-mail address.",
    ),
    op(
        "SetUserMemberOfGroups",
        M::Put,
        GROUPS,
        A::Relate(&User::MEMBER_OF_GROUPS, RelationChange::Set),
        "Replaces the groups that a user is in.",
    ),
    op(
        "AddUserToGroup",
        M::Post,
        GROUPS,
        A::Relate(&User::MEMBER_OF_GROUPS, RelationChange::Add),
        "Adds a user to groups.",
    ),
    op(
        "RemoveUserFromGroup",
        M::Delete,
        GROUPS,
        A::Relate(&User::MEMBER_OF_GROUPS, RelationChange::Remove),
        "Removes a user from groups.",
    ),
];

fn by_login_name(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let sql = select_by(&call.context, call.request.op.shape, User::LOGIN_NAME, call.request.parameter(0));
    read_one(call, tx, call.request.op.shape, None, &sql)
}

/// Deletes the queued mails and the mirrors of purged users, who are signed out first: client apps are notified.
fn forget(context: &mut Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<(), Problem> {
    chancery_mail::forget(tx, context.scope.store(), ids)?;
    let users = SignOutScope::StoreUsers { store: context.scope.of_store()?.id, users: ids };
    sign_out(context, tx, users)?;
    MIRROR.forget(context, tx, ids)
}
