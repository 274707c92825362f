//! Platform users.

pub mod profile;

use chancery_record::{
    Bytes, DefaultValue, Email, HIDDEN, KEY, LoginName, Name, SHOWN, Timestamp, Token, Url, id_types, record,
};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    CarriedBy, Links, Protection, Reach, Relation, Shape, Unique, event_name, event_type,
};
use uuid::Uuid;

use crate::{
    carried_roles::of_people,
    identity::{ApplicationIdentity, identities},
};

id_types! {
    /// The id of a platform user.
    ApplicationUserId
}

record! {
    /// A platform user: a person, regardless of where the person signs in. It is created by synchronizing a user store and kept in sync
    /// with it.
    #[de(
        "Plattformbenutzer",
        "Plattformbenutzer",
        "Ein Plattformbenutzer: eine Person, unabhängig davon, wo sie sich anmeldet. Er entsteht beim Synchronisieren eines Benutzerspeichers und wird mit ihm synchron gehalten."
    )]
    pub struct ApplicationUser {
        /// The platform user.
        id: ApplicationUserId = KEY,
        /// Given name.
        first_name: Option<Name> = SHOWN.folded(),
        /// Family name.
        last_name: Option<Name> = SHOWN.folded(),
        /// E-mail address.
        email_address: Option<Email> = SHOWN.folded(),
        /// The person's organizational unit. User stores do not store it.
        #[de("Organisationseinheit")]
        organizational_unit: Option<Name> = SHOWN,
        /// Address of a picture of the person.
        picture: Option<Url> = SHOWN,
        /// The person's manager, a platform user. User stores do not store it.
        #[de("Vorgesetzte Person")]
        manager_id: Option<ApplicationUserId> = SHOWN,
        /// The subscription of the instance that the user comes from.
        subscription_id: Uuid = HIDDEN,
        /// The instance that the user comes from, and follows.
        idp_instance_id: Uuid = HIDDEN,
        /// The person's id at the directory that provisions it.
        external_id: Option<Name> = HIDDEN.audited(),
        /// The name by which that directory finds the person.
        #[de("Anmeldename")]
        user_name: Option<LoginName> = HIDDEN.audited().folded(),
        /// Whether that directory lets the person sign in.
        is_active: bool = HIDDEN.audited().or(DefaultValue::Bool(true)),
        /// Since when the user in the store waits to be deleted.
        hidden_on: Option<Timestamp> = HIDDEN,
        /// The key of what the audit trail says of the user, sealed. It goes with the user.
        audit_key: Bytes = HIDDEN,
        /// Concurrency token. It changes with every write to the user.
        concurrency_token: Token = SHOWN,
    }
}

static RELATIONS: [Relation; 2] =
    [identities(&APPLICATION_IDENTITY, "application_user_rid"), profile::entries()];

/// The protected fields of a platform user with roles: all that identify the person, with the person's
/// identities and second factors. Names, pictures and the like are not protected.
static PROTECTION: Protection = Protection::new(
    |_, tx, people| of_people(tx, people),
    CarriedBy::Itself,
    &[
        ApplicationUser::FIRST_NAME.field(),
        ApplicationUser::LAST_NAME.field(),
        ApplicationUser::ORGANIZATIONAL_UNIT.field(),
        ApplicationUser::PICTURE.field(),
        ApplicationUser::MANAGER_ID.field(),
    ],
    Links::Open,
);

/// The shape of platform users.
pub static APPLICATION_USER: Shape = Shape::of::<ApplicationUser>(
    "ApplicationUser",
    "application_user",
    Reach::Instance(ApplicationUser::SUBSCRIPTION_ID.field(), ApplicationUser::IDP_INSTANCE_ID.field()),
)
.protected_by(&PROTECTION)
.person(ApplicationUser::AUDIT_KEY)
.quarantined(ApplicationUser::HIDDEN_ON, UserStoreOption::USER_DELETION_QUARANTINE_ENABLED)
.event_types(&[(event_name!("enrolled"), event_type!("platform.signin.factor.enrolled"))])
.unique(&[
    Unique::new(
        "application_user__idp_instance_id__user_name_key",
        &[ApplicationUser::IDP_INSTANCE_ID.field(), ApplicationUser::USER_NAME.field()],
    )
    .reported_at(ApplicationUser::USER_NAME),
    Unique::new(
        "application_user__idp_instance_id__external_id",
        &[ApplicationUser::IDP_INSTANCE_ID.field(), ApplicationUser::EXTERNAL_ID.field()],
    )
    .reported_at(ApplicationUser::EXTERNAL_ID),
])
.relations(&RELATIONS);

/// The identities of platform users.
pub static APPLICATION_IDENTITY: Shape =
    Shape::of::<ApplicationIdentity>("ApplicationIdentity", "application_identity", Reach::Part)
        .owned(&APPLICATION_USER, "application_user_rid")
        .noting_setter(ApplicationIdentity::SET_BY, &[ApplicationIdentity::SUBJECT.field()])
        .noting_when(ApplicationIdentity::SET_ON);
