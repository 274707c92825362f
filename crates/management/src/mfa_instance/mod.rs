//! MFA instances: second factors that people can use.

use chancery_application::with_factors;
use chancery_record::{
    DERIVED, DefaultValue, FIXED, HIDDEN, KEY, Name, OPEN, SHOWN, Token, Value, id_types, record,
};
use chancery_resource::settings::Owner;
use chancery_resource::{
    CarriedBy, Context, Links, Op, Problem, ProposedRow, Protection, Reach, Relation, Shape, Tx, Unique,
    Violation, Writer, added, children, relation, standard,
};

use crate::{
    client_app::CLIENT_APP,
    idp_instance::IDP_INSTANCE,
    idp_type::{FactoryType, IdpTypeId, ProviderType, settle_types},
    link::{CLIENT_APP_MFA_INSTANCE, IDP_INSTANCE_MFA_INSTANCE, TENANT_MFA_INSTANCE, within_subscription},
    option::{self, OPTION},
    owning_subscription::resolve_subscription,
    subscription::SubscriptionId,
    tenant::TENANT,
};

id_types! {
    /// The id of a second factor.
    MfaInstanceId
}

record! {
    /// A second factor that people can use.
    #[de("Zweiter Faktor", "Zweite Faktoren", "Ein zweiter Faktor, den Personen verwenden können.")]
    pub struct MfaInstance {
        /// The second factor.
        id: MfaInstanceId = KEY,
        /// Its name, unique in the subscription without regard to case.
        name: Name = OPEN.folded(),
        /// The position in the order.
        position: i64 = OPEN.or(DefaultValue::Int(0)),
        /// Whether it can be used.
        #[de(_, "Ob er verwendet werden kann.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// Its type.
        idp_type_id: IdpTypeId = FIXED,
        /// The subscription. If it is missing and `Default` is the only one, `Default` applies.
        subscription_id: Option<SubscriptionId> = FIXED,
        /// The implementation of the instance.
        #[de("Art des Anbieters")]
        idp_type: Option<FactoryType> = HIDDEN,
        /// Whether a mandatory option is empty or an option cannot be read.
        has_configuration_error: bool = DERIVED.or(DefaultValue::Bool(false)),
        /// Concurrency token. It changes with every write to the second factor.
        concurrency_token: Token = SHOWN,
    }
}

/// Every field but name and position affects how people sign in.
static PROTECTION: Protection = Protection::new(
    with_factors,
    CarriedBy::WhoSignsIn,
    &[MfaInstance::NAME.field(), MfaInstance::POSITION.field()],
    Links::AllBut(&["client_app_mfa_instance"]),
);

impl MfaInstance {
    /// The tenants to which it is assigned.
    pub const TENANTS: Relation = Relation::new(
        "tenants",
        "The tenants to which it is assigned.",
        TENANT_MFA_INSTANCE.reverse(),
        &TENANT,
    )
    .guarded(within_subscription);
    /// The identity provider instances that require the second factor.
    pub const IDP_INSTANCES: Relation = Relation::new(
        "idpInstances",
        "The identity provider instances that require the second factor.",
        IDP_INSTANCE_MFA_INSTANCE.reverse(),
        &IDP_INSTANCE,
    )
    .guarded(within_subscription);
    /// The client apps that require it.
    pub const CLIENT_APPS: Relation = Relation::new(
        "clientApps",
        "The client apps that require the second factor.",
        CLIENT_APP_MFA_INSTANCE.reverse(),
        &CLIENT_APP,
    )
    .guarded(within_subscription);
}

/// The shape of MFA instances.
pub static MFA_INSTANCE: Shape = Shape::of::<MfaInstance>(
    "MfaInstance",
    "mfa_instance",
    Reach::Assigned(MfaInstance::SUBSCRIPTION_ID.field(), "tenant_mfa_instance", "mfa_instance_rid"),
)
.read_from(
    "(SELECT i.*, EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_mfa_instance_id = i.id \
     AND o.has_configuration_error) AS has_configuration_error FROM mfa_instance i)",
)
.unique(&[
    Unique::new("mfa_instance__id", &[MfaInstance::ID.field()]),
    Unique::new(
        "mfa_instance__subscription_id__name_key",
        &[MfaInstance::SUBSCRIPTION_ID.field(), MfaInstance::NAME.field()],
    ),
])
.relations(
    const {
        &[
            MfaInstance::TENANTS,
            MfaInstance::IDP_INSTANCES,
            MfaInstance::CLIENT_APPS,
            children!(
                "options",
                "The options and their values.",
                "mfa_instance",
                "option_value",
                "apply_to_mfa_instance_id",
                &OPTION
            ),
        ]
    },
)
.protected_by(&PROTECTION)
.validate_rows(check)
.after_insert(create_options)
.created_rows(|| option::max_created(Owner::is_second_factor))
.bumps_epoch();

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let own = MfaInstance::SUBSCRIPTION_ID;
    let mut violations = resolve_subscription(writer.context, tx, rows, own, &[], |_| Ok(false))?;
    let (type_id, served_by) = (MfaInstance::IDP_TYPE_ID, MfaInstance::IDP_TYPE);
    violations.extend(settle_types(tx, rows, type_id, served_by, ProviderType::MultiFactor)?);
    Ok(violations)
}

fn create_options(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    let subscription = MfaInstance::SUBSCRIPTION_ID.get(values)?;
    let owner = MfaInstance::IDP_TYPE.text(values).and_then(Owner::of_type);
    let (Some(subscription), Some(owner)) = (subscription, owner) else { return Ok(()) };
    option::create_all(context, tx, owner, MfaInstance::ID.get(values)?.0, subscription.0)
}

/// The operations on MFA instances.
pub static OPERATIONS: [Op; 9] =
    added(standard!("MfaInstance", "/MfaInstance", TenantMember, SubscriptionAdmin, &MFA_INSTANCE));
/// Operations on an MFA instance's tenants.
pub static TENANTS: [Op; 3] = added(relation!(
    "MfaInstanceTenants",
    "/MfaInstance/{id}/tenants",
    SubscriptionAdmin,
    &MFA_INSTANCE,
    MfaInstance::TENANTS
));
/// Operations on an MFA instance's instances.
pub static IDP_INSTANCES: [Op; 3] = added(relation!(
    "MfaInstanceIdpInstances",
    "/MfaInstance/{id}/idpinstances",
    SubscriptionAdmin,
    &MFA_INSTANCE,
    MfaInstance::IDP_INSTANCES
));
/// Operations on an MFA instance's client apps.
pub static CLIENT_APPS: [Op; 3] = added(relation!(
    "MfaInstanceClientApps",
    "/MfaInstance/{id}/clientapps",
    SubscriptionAdmin,
    &MFA_INSTANCE,
    MfaInstance::CLIENT_APPS
));
