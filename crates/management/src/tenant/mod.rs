//! Tenants: who signs in where; what is assigned to one is what its people meet.

use chancery_record::{Description, FIXED, KEY, Name, OPEN, Preset, SHOWN, Token, Value, id_types, record};
use chancery_resource::settings::Owner;
use chancery_resource::{
    Child, Context, Op, Parent, Problem, Reach, Relation, Shape, Tx, Unique, added, relation, standard,
};

use crate::{
    client_app::CLIENT_APP,
    idp_instance::IDP_INSTANCE,
    link::check_subscriptions,
    mfa_instance::MFA_INSTANCE,
    option,
    subscription::resolve::id_in,
    subscription::{SUBSCRIPTION, SubscriptionId},
};

id_types! {
    /// The id of a tenant.
    TenantId
}

record! {
    /// A tenant of a subscription.
    pub struct Tenant {
        /// The tenant.
        id: TenantId = KEY,
        /// Its name, unique in the subscription without regard to case.
        name: Name = OPEN.folded(),
        /// What it is for.
        description: Option<Description> = OPEN,
        /// Whether its people can sign in.
        is_active: bool = OPEN.or(Preset::Bool(true)),
        /// The subscription.
        subscription_id: SubscriptionId = FIXED,
        /// Changes with every write to the tenant.
        concurrency_token: Token = SHOWN,
    }
}

/// The resource.
pub static TENANT: Shape = Shape::of::<Tenant>("Tenant", "tenant", Reach::Tenant("subscription_id", "id"))
    .belonging(&[Parent::new("subscription_id", &SUBSCRIPTION)])
    .held_by(&[
        Child::new("claim rule", "claim_rule", "apply_to_tenant_id"),
        Child::new("cert store", "cert_store", "apply_to_tenant_id"),
        Child::new("role", "client_app_role", "apply_to_tenant_id").named_by("role_type"),
        Child::new("role assignment", "role_assignment", "apply_to_tenant_id").named_by("role_type"),
        Child::new("address range", "ip_address_range", "tenant_id").named_by("lower"),
        Child::new("questionnaire item", "user_questionnaire_item", "tenant_id").named_by("key"),
        Child::new("asset", "custom_asset", "tenant_id").named_by("location"),
        Child::new("view", "custom_view", "tenant_id").named_by("location"),
    ])
    .unique(&[Unique::new("tenant__id", "id"), Unique::new("tenant__subscription_id__name_key", "name")])
    .relations(&[
        Relation::new(
            "idpInstances",
            "The identity provider instances of the tenant.",
            ("tenant_idp_instance", "tenant_rid", "idp_instance_rid"),
            &IDP_INSTANCE,
        )
        .guarded(|tx, own, others| check_subscriptions(tx, ("tenant", own), ("idp_instance", others))),
        Relation::new(
            "mfaInstances",
            "The second factors of the tenant.",
            ("tenant_mfa_instance", "tenant_rid", "mfa_instance_rid"),
            &MFA_INSTANCE,
        )
        .guarded(|tx, own, others| check_subscriptions(tx, ("tenant", own), ("mfa_instance", others))),
        Relation::new(
            "clientApps",
            "The client apps of the tenant.",
            ("tenant_client_app", "tenant_rid", "client_app_rid"),
            &CLIENT_APP,
        )
        .guarded(|tx, own, others| check_subscriptions(tx, ("tenant", own), ("client_app", others))),
    ])
    .after_insert(make_options)
    .bumps_epoch();

fn make_options(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    let ids = (id_in(&TENANT, values, "id"), id_in(&TENANT, values, "subscription_id"));
    let (Some(id), Some(subscription)) = ids else { return Ok(()) };
    option::make_all(context, tx, Owner::Tenant, id, subscription)
}

/// Its operations.
pub static OPERATIONS: [Op; 9] =
    added(standard!("Tenant", "/Tenant", TenantMember, SubscriptionAdmin, &TENANT));
/// Its instances.
pub static IDP_INSTANCES: [Op; 3] = added(relation!(
    "TenantIdpInstances",
    "/Tenant/{id}/idpinstances",
    SubscriptionAdmin,
    &TENANT,
    "idpInstances"
));
/// Its second factors.
pub static MFA_INSTANCES: [Op; 3] = added(relation!(
    "TenantMfaInstances",
    "/Tenant/{id}/mfainstances",
    SubscriptionAdmin,
    &TENANT,
    "mfaInstances"
));
/// Its client apps.
pub static CLIENT_APPS: [Op; 3] =
    added(relation!("TenantClientApps", "/Tenant/{id}/clientapps", SubscriptionAdmin, &TENANT, "clientApps"));
