//! Identity provider instances, at which people sign in. An instance of type UserStore is a user store.

mod confirm;
pub mod connection;
mod look_up;
mod metadata;
mod scim;
mod trial;

use chancery_application::{
    APPLICATION_GROUP, APPLICATION_GROUP_IDENTITY, APPLICATION_IDENTITY, APPLICATION_USER, ApplicationGroup,
    ApplicationIdentity, ApplicationUser, at_instances,
};
use chancery_presentation::location::normalise;
use chancery_record::{
    DERIVED, DefaultValue, Description, FIXED, HIDDEN, KEY, Name, OPEN, SHOWN, Timestamp, Token, Value, fold,
    id_types, record,
};
use chancery_resource::settings::Owner;
use chancery_resource::{
    CarriedBy, Child, Context, Links, Op, Pairs, Problem, ProposedRow, Protection, Reach, Relation, Shape,
    Tx, Unique, Violation, Writer, children, relation, standard,
};
use uuid::Uuid;

use crate::{
    cert_store::CERT_STORE,
    claim_rule::{CLAIM_RULE, ClaimRule},
    client_app::{
        CLIENT_APP,
        role::{CLIENT_APP_ROLE, ClientAppRole},
    },
    idp_type::{FactoryType, IdpTypeId, ProviderType, settle_types},
    link::{
        IDP_INSTANCE_CERT_STORE, IDP_INSTANCE_CLIENT_APP, IDP_INSTANCE_MFA_INSTANCE, TENANT_IDP_INSTANCE,
        within_subscription,
    },
    mfa_instance::MFA_INSTANCE,
    option::{self, OPTION},
    owning_subscription::resolve_subscription,
    role_assignment::{ROLE_ASSIGNMENT, RoleAssignment},
    subscription::SubscriptionId,
    tenant::TENANT,
    violation::violation_at,
};

pub use confirm::OPERATIONS as CONFIRM;
pub use look_up::OPERATIONS as LOOK_UPS;
pub use metadata::{IDP_INSTANCE_METADATA, IdpInstanceMetadata, OPERATIONS as METADATA};
pub use scim::OPERATIONS as SCIM;
pub use trial::OPERATIONS as TRIAL;

id_types! {
    /// The id of an identity provider instance.
    IdpInstanceId
}

record! {
    /// An identity provider instance.
    #[de("Identitätsanbieter", "Identitätsanbieter", "Ein Identitätsanbieter.")]
    pub struct IdpInstance {
        /// The instance.
        id: IdpInstanceId = KEY,
        /// The name, unique in the subscription without regard to case. The name of a user store is unique in the installation and can be
        /// used in a path.
        #[de(
            _,
            "Der Name, eindeutig im Abonnement. Groß- und Kleinschreibung wird nicht unterschieden. Der Name eines Benutzerspeichers ist in der Installation eindeutig und kann in einem Pfad verwendet werden."
        )]
        name: Name = OPEN.folded(),
        /// The position in the order.
        position: i64 = OPEN.or(DefaultValue::Int(0)),
        /// Whether users can sign in at the instance.
        #[de(_, "Ob sich Benutzer bei diesem Identitätsanbieter anmelden können.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// Whether claims of the identity provider about a second factor are trusted.
        #[de("Seinen zweiten Faktoren vertrauen", "Ob den Claims des Identitätsanbieters über einen zweiten Faktor vertraut wird.")]
        treat_mfa_factor_claims_as_confirmed: bool = OPEN.or(DefaultValue::Bool(false)),
        /// Whether a platform user is created for a person who signs in for the first time.
        #[de(
            "Benutzer bei der ersten Anmeldung anlegen",
            "Ob für eine Person, die sich zum ersten Mal anmeldet, ein Plattformbenutzer angelegt wird."
        )]
        auto_create_platform_user: bool = OPEN.or(DefaultValue::Bool(true)),
        /// Whether the instance is hidden from users who select an identity provider.
        #[de("Verborgen", "Ob der Identitätsanbieter in der Auswahl für Benutzer ausgeblendet ist.")]
        is_hidden: bool = OPEN.or(DefaultValue::Bool(false)),
        /// Its type.
        idp_type_id: IdpTypeId = FIXED,
        /// The subscription. If it is missing and `Default` is the only one, `Default` applies.
        subscription_id: Option<SubscriptionId> = FIXED,
        /// The implementation of the instance.
        #[de("Art")]
        idp_factory_type: Option<FactoryType> = SHOWN.stored_as("idp_type"),
        /// A user store's name, folded.
        store_name_key: Option<Name> = HIDDEN,
        /// The icon on the button of the instance: the location of an image among the custom assets. If it is missing or there is no image
        /// at that location, the button has a built-in icon.
        #[de(
            "Symbol",
            "Das Symbol auf der Schaltfläche des Identitätsanbieters: der Ort eines Bildes unter den eigenen Dateien. Fehlt die Angabe oder das Bild, zeigt die Schaltfläche ein Standardsymbol."
        )]
        icon: Option<Description> = OPEN.retained().like("/assets/global/partner.svg"),
        /// Whether a mandatory option is empty or an option cannot be read.
        has_configuration_error: bool = DERIVED.or(DefaultValue::Bool(false)),
        /// Who last confirmed the settings of an external instance.
        settings_confirmed_by: Option<Uuid> = HIDDEN,
        /// When the confirmed settings were reviewed.
        settings_confirmed_on: Option<Timestamp> = HIDDEN,
        /// Concurrency token. It changes with every write to the instance.
        concurrency_token: Token = SHOWN,
    }
}

/// Every field but name, position and icon affects who signs in at the instance, or how.
static PROTECTION: Protection = Protection::new(
    at_instances,
    CarriedBy::WhoSignsIn,
    &[
        IdpInstance::NAME.field(),
        IdpInstance::STORE_NAME_KEY.field(),
        IdpInstance::POSITION.field(),
        IdpInstance::ICON.field(),
    ],
    Links::AllBut(&["idp_instance_client_app"]),
);

impl IdpInstance {
    /// The second factors that are required here.
    pub const MFA_INSTANCES: Relation = Relation::new(
        "mfaInstances",
        "The second factors that are required at the instance.",
        IDP_INSTANCE_MFA_INSTANCE.forward(),
        &MFA_INSTANCE,
    )
    .guarded(within_subscription);
    /// The tenants to which it is assigned.
    pub const TENANTS: Relation = Relation::new(
        "tenants",
        "The tenants to which it is assigned.",
        TENANT_IDP_INSTANCE.reverse(),
        &TENANT,
    )
    .guarded(within_subscription);
    /// The client apps for which the instance is offered.
    pub const CLIENT_APPS: Relation = Relation::new(
        "clientApps",
        "The client apps for which the instance is offered.",
        IDP_INSTANCE_CLIENT_APP.forward(),
        &CLIENT_APP,
    )
    .guarded(within_subscription);
    /// The certificates of the instance.
    pub const CERT_STORES: Relation = Relation::new(
        "certStores",
        "The certificates of the instance.",
        IDP_INSTANCE_CERT_STORE.forward(),
        &CERT_STORE,
    )
    .guarded(within_subscription);
}

/// The SQL condition that a linked certificate authenticates this server to the provider of the instance `i`, instead of its
/// ClientSecret. An AD FS instance with a linked certificate of its own tokens is no OpenID provider.
macro_rules! is_proven_by_certificate {
    () => {
        "i.idp_type IN ('OpenIdConnect', 'AdfsOAuth', 'Microsoft', 'Google') AND EXISTS (SELECT 1 FROM idp_instance_cert_store l \
         JOIN cert_store k ON k.rid = l.cert_store_rid AND k.cert_type = 'OidcTokenSigning' WHERE l.idp_instance_rid = i.rid) \
         AND NOT (i.idp_type = 'AdfsOAuth' AND EXISTS (SELECT 1 FROM idp_instance_cert_store l \
         JOIN cert_store k ON k.rid = l.cert_store_rid AND k.cert_type = 'AdfsOAuthTokenSigning' WHERE l.idp_instance_rid = i.rid))"
    };
}

/// The SQL condition that the instance `i` cannot be used as it is set.
macro_rules! has_configuration_error {
    () => {
        concat!(
            "(EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_idp_instance_id = i.id AND o.has_configuration_error \
             AND NOT (o.name = 'ClientSecret' AND ",
            is_proven_by_certificate!(),
            ")) OR EXISTS (SELECT 1 FROM (VALUES \
             ('OpenIdConnect', 'Authority'), ('OpenIdConnect', 'ClientId'), ('OpenIdConnect', 'ClientSecret'), \
             ('AdfsOAuth', 'Authority'), ('AdfsOAuth', 'ClientId'), ('AdfsOAuth', 'ClientSecret'), \
             ('Microsoft', 'ClientId'), ('Microsoft', 'ClientSecret'), \
             ('Google', 'ClientId'), ('Google', 'ClientSecret'), \
             ('Facebook', 'ClientId'), ('Facebook', 'ClientSecret'), \
             ('Twitter', 'ClientId'), ('Twitter', 'ClientSecret')) AS m \
             WHERE m.column1 = i.idp_type AND NOT EXISTS (SELECT 1 FROM option_value o \
             WHERE o.apply_to_idp_instance_id = i.id AND o.name = m.column2) AND NOT (m.column2 = 'ClientSecret' AND ",
            is_proven_by_certificate!(),
            ")))"
        )
    };
}

/// The SQL condition that the instance `i` cannot be used as it is set: an option is mandatory and empty, or cannot be read.
pub const HAS_CONFIGURATION_ERROR: &str = has_configuration_error!();

/// The shape of identity provider instances.
pub static IDP_INSTANCE: Shape = Shape::of::<IdpInstance>(
    "IdpInstance",
    "idp_instance",
    Reach::Instance(IdpInstance::SUBSCRIPTION_ID.field(), IdpInstance::ID.field()),
)
.read_from(concat!(
    "(SELECT i.*, ",
    has_configuration_error!(),
    " AS has_configuration_error FROM idp_instance i)"
))
.unique(&[
    Unique::new("idp_instance__id", &[IdpInstance::ID.field()]),
    Unique::new(
        "idp_instance__subscription_id__name_key",
        &[IdpInstance::SUBSCRIPTION_ID.field(), IdpInstance::NAME.field()],
    ),
    Unique::new("idp_instance__store_name_key", &[IdpInstance::STORE_NAME_KEY.field()])
        .reported_at(IdpInstance::NAME),
])
.held_by(&[
    Child::in_table("user", "user_account", "store", "login_name"),
    Child::in_table("group", "user_group", "store", "name"),
    Child::new(
        "platform user",
        &APPLICATION_USER,
        ApplicationUser::IDP_INSTANCE_ID,
        ApplicationUser::LAST_NAME,
    ),
    Child::new(
        "platform group",
        &APPLICATION_GROUP,
        ApplicationGroup::IDP_INSTANCE_ID,
        ApplicationGroup::NAME,
    ),
    Child::new(
        "identity",
        &APPLICATION_IDENTITY,
        ApplicationIdentity::IDP_INSTANCE_ID,
        ApplicationIdentity::SUBJECT,
    ),
    Child::new(
        "group's identity",
        &APPLICATION_GROUP_IDENTITY,
        ApplicationIdentity::IDP_INSTANCE_ID,
        ApplicationIdentity::SUBJECT,
    ),
    Child::new("claim rule", &CLAIM_RULE, ClaimRule::APPLY_TO_IDP_INSTANCE_ID, ClaimRule::NAME),
    Child::new("role", &CLIENT_APP_ROLE, ClientAppRole::APPLY_TO_IDP_INSTANCE_ID, ClientAppRole::ROLE_TYPE),
    Child::new(
        "role assignment",
        &ROLE_ASSIGNMENT,
        RoleAssignment::APPLY_TO_IDP_INSTANCE_ID,
        RoleAssignment::ROLE_TYPE,
    ),
])
.relations(
    const {
        &[
            IdpInstance::MFA_INSTANCES,
            IdpInstance::TENANTS,
            IdpInstance::CLIENT_APPS,
            IdpInstance::CERT_STORES,
            children!(
                "options",
                "The options and their values.",
                "idp_instance",
                "option_value",
                "apply_to_idp_instance_id",
                &OPTION
            ),
            children_of_instance(),
        ]
    },
)
.protected_by(&PROTECTION)
.validate_rows(check)
.after_insert(create_options)
.created_rows(|| option::max_created(|owner| owner != Owner::Tenant && !owner.is_second_factor()))
.bumps_epoch();

const fn children_of_instance() -> Relation {
    Relation::new(
        "metadata",
        "The metadata entries, by key.",
        Pairs { table: "idp_instance_metadata", own: "idp_instance_rid", other: "rid" },
        &IDP_INSTANCE_METADATA,
    )
    .showing(
        const {
            &[
                IdpInstanceMetadata::KEY.field(),
                IdpInstanceMetadata::VALUE.field(),
                IdpInstanceMetadata::CONCURRENCY_TOKEN.field(),
            ]
        },
    )
}

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let own = IdpInstance::SUBSCRIPTION_ID;
    let mut violations = resolve_subscription(writer.context, tx, rows, own, &[], |_| Ok(false))?;
    // version 1 accepts any text as an icon
    if writer.shape.base.is_none() {
        violations.extend(invalid_icons(rows));
    }
    let (type_id, served_by) = (IdpInstance::IDP_TYPE_ID, IdpInstance::IDP_FACTORY_TYPE);
    violations.extend(settle_types(tx, rows, type_id, served_by, ProviderType::IdentityProvider)?);
    for (index, row) in rows.iter_mut().enumerate() {
        if row.text(IdpInstance::IDP_FACTORY_TYPE) != Some(FactoryType::UserStore.name()) {
            continue;
        }
        let name = row.get(IdpInstance::NAME)?;
        if !is_path_safe(name.as_str()) {
            let detail = "names a user store, so it stands in paths: letters, digits, `-`, `.`, `_` and `~`, and no UUID";
            violations.push(violation_at(index, IdpInstance::NAME, detail));
        }
        IdpInstance::STORE_NAME_KEY.field().set(row.values, fold(name.as_str()).into());
    }
    Ok(violations)
}

/// Rejects new icons that are no location of an asset.
fn invalid_icons(rows: &[ProposedRow<'_>]) -> Vec<Violation> {
    let is_invalid = |row: &ProposedRow<'_>| {
        let icon = row.text(IdpInstance::ICON).filter(|icon| !icon.is_empty());
        let is_unchanged = row.was.is_some_and(|was| was.text(IdpInstance::ICON) == icon);
        icon.is_some_and(|icon| !is_unchanged && normalise(icon).as_deref() != Ok(icon))
    };
    let detail =
        "is no location of a custom asset: one begins with a slash, such as /assets/global/partner.svg";
    let invalid = rows.iter().enumerate().filter(|(_, row)| is_invalid(row));
    invalid.map(|(index, _)| violation_at(index, IdpInstance::ICON, detail)).collect()
}

fn is_path_safe(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    name.chars().all(plain) && name.chars().any(|letter| letter != '.') && Uuid::try_parse(name).is_err()
}

fn create_options(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    let subscription = IdpInstance::SUBSCRIPTION_ID.get(values)?;
    let owner = IdpInstance::IDP_FACTORY_TYPE.text(values).and_then(Owner::of_type);
    let (Some(subscription), Some(owner)) = (subscription, owner) else { return Ok(()) };
    option::create_all(context, tx, owner, IdpInstance::ID.get(values)?.0, subscription.0)
}

/// The operations on identity provider instances.
pub static OPERATIONS: [Op; 9] =
    standard!("IdpInstance", "/IdpInstance", TenantMember, SubscriptionAdmin, &IDP_INSTANCE);
/// Operations on an instance's tenants.
pub static TENANTS: [Op; 3] = relation!(
    "IdpInstanceTenants",
    "/IdpInstance/{id}/tenants",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    IdpInstance::TENANTS
);
/// Operations on an instance's certificates.
pub static CERT_STORES: [Op; 3] = relation!(
    "IdpInstanceCertStores",
    "/IdpInstance/{id}/certstores",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    IdpInstance::CERT_STORES
);
/// Operations on an instance's client apps.
pub static CLIENT_APPS: [Op; 3] = relation!(
    "IdpInstanceClientApps",
    "/IdpInstance/{id}/clientapps",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    IdpInstance::CLIENT_APPS
);
/// Operations on an instance's second factors.
pub static MFA_INSTANCES: [Op; 3] = chancery_resource::added_at(
    relation!(
        "IdpInstanceMfaInstances",
        "/IdpInstance/{id}/mfainstances",
        SubscriptionAdmin,
        &IDP_INSTANCE,
        IdpInstance::MFA_INSTANCES
    ),
    [1, 2],
);

#[cfg(test)]
mod tests {
    use chancery_resource::settings::{CATALOGUE, Owner};

    use super::IDP_INSTANCE;

    /// The SQL view that reports missing options lists exactly the mandatory options of the catalogue.
    #[test]
    fn the_view_lists_exactly_the_mandatory_options() {
        let view = IDP_INSTANCE.reads.view.unwrap();
        // skips the conditions about single types and names
        let (_, list) = view.split_once("(VALUES").unwrap();
        let (view, _) = list.split_once(" AS m").unwrap();
        let mandatory = CATALOGUE.iter().filter(|entry| entry.mandatory && !entry.owner.is_second_factor());
        let mut count = 0;
        for entry in mandatory {
            let (kind, _) = Owner::TYPES.iter().find(|(_, owner)| *owner == entry.owner).unwrap();
            assert!(view.contains(&format!("('{kind}', '{}')", entry.name)), "{kind} {}", entry.name);
            count += 1;
        }
        assert_eq!(view.matches("('").count(), count);
    }
}
