//! Tenants: people sign in at the assigned instances, and use the assigned client apps.

use chancery_application::at_tenants;
use chancery_record::{
    DefaultValue, Description, FIXED, KEY, Name, OPEN, SHOWN, Token, Value, id_types, record,
};
use chancery_resource::settings::Owner;
use chancery_resource::{
    CarriedBy, Child, Context, Links, Op, Parent, Problem, Protection, Reach, Relation, Shape, Tx, Unique,
    added, relation, standard,
};

use chancery_webhook::EventSubscription;

use crate::{
    cert_store::{CERT_STORE, CertStore},
    claim_rule::{CLAIM_RULE, ClaimRule},
    client_app::{
        CLIENT_APP,
        role::{CLIENT_APP_ROLE, ClientAppRole},
    },
    custom_asset::{CUSTOM_ASSET, CustomAsset},
    custom_view::{CUSTOM_VIEW, CustomView},
    event_subscription::EVENT_SUBSCRIPTION,
    idp_instance::IDP_INSTANCE,
    ip_address_range::{IP_ADDRESS_RANGE, IpAddressRange},
    link::{TENANT_CLIENT_APP, TENANT_IDP_INSTANCE, TENANT_MFA_INSTANCE, within_subscription},
    mfa_instance::MFA_INSTANCE,
    option,
    role_assignment::{ROLE_ASSIGNMENT, RoleAssignment},
    subscription::{SUBSCRIPTION, SubscriptionId},
    user_questionnaire_item::{USER_QUESTIONNAIRE_ITEM, UserQuestionnaireItem},
};

id_types! {
    /// The id of a tenant.
    TenantId
}

record! {
    /// A tenant of a subscription.
    #[de("Mandant", "Mandanten", "Ein Mandant eines Abonnements.")]
    pub struct Tenant {
        /// The tenant.
        id: TenantId = KEY,
        /// Its name, unique in the subscription without regard to case.
        name: Name = OPEN.folded(),
        /// What it is for.
        description: Option<Description> = OPEN,
        /// Whether users of the tenant can sign in.
        #[de(_, "Ob sich Benutzer des Mandanten anmelden können.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// The subscription.
        subscription_id: SubscriptionId = FIXED,
        /// Concurrency token. It changes with every write to the tenant.
        concurrency_token: Token = SHOWN,
    }
}

/// Every field but name and description affects who signs in at the tenant, or how.
static PROTECTION: Protection = Protection::new(
    at_tenants,
    CarriedBy::WhoSignsIn,
    &[Tenant::NAME.field(), Tenant::DESCRIPTION.field()],
    Links::AllBut(&["tenant_client_app"]),
);

impl Tenant {
    /// The identity provider instances of the tenant.
    pub const IDP_INSTANCES: Relation = Relation::new(
        "idpInstances",
        "The identity provider instances of the tenant.",
        TENANT_IDP_INSTANCE.forward(),
        &IDP_INSTANCE,
    )
    .guarded(within_subscription);
    /// The second factors of the tenant.
    pub const MFA_INSTANCES: Relation = Relation::new(
        "mfaInstances",
        "The second factors of the tenant.",
        TENANT_MFA_INSTANCE.forward(),
        &MFA_INSTANCE,
    )
    .guarded(within_subscription);
    /// The client apps of the tenant.
    pub const CLIENT_APPS: Relation = Relation::new(
        "clientApps",
        "The client apps of the tenant.",
        TENANT_CLIENT_APP.forward(),
        &CLIENT_APP,
    )
    .guarded(within_subscription);
}

/// The shape of tenants.
pub static TENANT: Shape = Shape::of::<Tenant>(
    "Tenant",
    "tenant",
    Reach::Tenant(Tenant::SUBSCRIPTION_ID.field(), Tenant::ID.field()),
)
.belonging(&[Parent::new(Tenant::SUBSCRIPTION_ID, &SUBSCRIPTION)])
.held_by(&[
    Child::new("claim rule", &CLAIM_RULE, ClaimRule::APPLY_TO_TENANT_ID, ClaimRule::NAME),
    Child::new("cert store", &CERT_STORE, CertStore::APPLY_TO_TENANT_ID, CertStore::NAME),
    Child::new("role", &CLIENT_APP_ROLE, ClientAppRole::APPLY_TO_TENANT_ID, ClientAppRole::ROLE_TYPE),
    Child::new(
        "role assignment",
        &ROLE_ASSIGNMENT,
        RoleAssignment::APPLY_TO_TENANT_ID,
        RoleAssignment::ROLE_TYPE,
    ),
    Child::new("address range", &IP_ADDRESS_RANGE, IpAddressRange::TENANT_ID, IpAddressRange::LOWER),
    Child::new(
        "questionnaire item",
        &USER_QUESTIONNAIRE_ITEM,
        UserQuestionnaireItem::TENANT_ID,
        UserQuestionnaireItem::KEY,
    ),
    Child::new("asset", &CUSTOM_ASSET, CustomAsset::TENANT_ID, CustomAsset::LOCATION),
    Child::new("view", &CUSTOM_VIEW, CustomView::TENANT_ID, CustomView::LOCATION),
    Child::new(
        "event subscription",
        &EVENT_SUBSCRIPTION,
        EventSubscription::APPLY_TO_TENANT_ID,
        EventSubscription::NAME,
    ),
])
.unique(&[
    Unique::new("tenant__id", &[Tenant::ID.field()]),
    Unique::new(
        "tenant__subscription_id__name_key",
        &[Tenant::SUBSCRIPTION_ID.field(), Tenant::NAME.field()],
    ),
])
.relations(const { &[Tenant::IDP_INSTANCES, Tenant::MFA_INSTANCES, Tenant::CLIENT_APPS] })
.protected_by(&PROTECTION)
.after_insert(create_options)
.created_rows(|| option::max_created(|owner| owner == Owner::Tenant))
.bumps_epoch();

fn create_options(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    let (id, subscription) = (Tenant::ID.get(values)?, Tenant::SUBSCRIPTION_ID.get(values)?);
    option::create_all(context, tx, Owner::Tenant, id.0, subscription.0)
}

/// The operations on tenants.
pub static OPERATIONS: [Op; 9] =
    added(standard!("Tenant", "/Tenant", TenantMember, SubscriptionAdmin, &TENANT));
/// Operations on a tenant's instances.
pub static IDP_INSTANCES: [Op; 3] = added(relation!(
    "TenantIdpInstances",
    "/Tenant/{id}/idpinstances",
    SubscriptionAdmin,
    &TENANT,
    Tenant::IDP_INSTANCES
));
/// Operations on a tenant's second factors.
pub static MFA_INSTANCES: [Op; 3] = added(relation!(
    "TenantMfaInstances",
    "/Tenant/{id}/mfainstances",
    SubscriptionAdmin,
    &TENANT,
    Tenant::MFA_INSTANCES
));
/// Operations on a tenant's client apps.
pub static CLIENT_APPS: [Op; 3] = added(relation!(
    "TenantClientApps",
    "/Tenant/{id}/clientapps",
    SubscriptionAdmin,
    &TENANT,
    Tenant::CLIENT_APPS
));
