//! Roles of a client app: what it may do on this server.

use std::collections::HashSet;

use chancery_record::{
    DefaultValue, FIXED, FieldType as _, HIDDEN, KEY, Name, OPEN, Record as _, SHOWN, Token, Value, id_types,
    record,
};
use chancery_resource::{
    Findings, Op, Parent, Problem, ProposedRow, ProvidedFields, Reach, RoleType, Rules, ScopeKind, Shape, Tx,
    Unique, Violation, Writer, list_of, standard,
};
use uuid::Uuid;

use super::{CLIENT_APP, ClientAppId, administrator, controller::note, scope_and_resource::of_client_app};
use crate::{
    grant::{
        Target, check_grants, check_stores, check_targets, covers_owner, owners_of, target_of, targets_alone,
    },
    idp_instance::{IDP_INSTANCE, IdpInstanceId},
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a role of a client app.
    ClientAppRoleId
}

record! {
    /// A role of a client app on this server. CustomerAdmin and SubscriptionAdmin apply to its own customer and subscription.
    #[de(
        "Rolle einer Client-App",
        "Rollen von Client-Apps",
        "Eine Rolle einer Client-App auf diesem Server. CustomerAdmin und SubscriptionAdmin gelten für ihren eigenen Kunden und ihr eigenes Abonnement."
    )]
    pub struct ClientAppRole {
        /// The role.
        id: ClientAppRoleId = KEY,
        /// The assigned role.
        role_type: RoleType = OPEN,
        /// The tenant to which the role applies, for a TenantAdmin or an ApplicationDataReader.
        apply_to_tenant_id: Option<TenantId> = OPEN,
        /// The identity provider instance to which the role applies, for a UserStoreAdmin or an ApplicationDataReader.
        apply_to_idp_instance_id: Option<IdpInstanceId> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// What it applies to, as text.
        target_key: Name = HIDDEN.or(DefaultValue::Text("")),
        /// Concurrency token. It changes with every write to the role.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for ClientAppRole {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        let target = self.targets().into_iter().find_map(|(.., target)| target);
        let key = target.map_or_else(String::new, |id| id.to_string());
        if let Ok(key) = Name::from_value(Value::Text(key)) {
            self.target_key = key;
        }
    }

    fn check(&self, wrong: &mut Findings) {
        check_targets(self.role_type, &self.targets(), wrong);
    }
}

impl ClientAppRole {
    /// The targets of the role. Customer and subscription are not among them: these are always the client
    /// app's own.
    fn targets(&self) -> [Target; 2] {
        [
            (ScopeKind::Tenant, Self::APPLY_TO_TENANT_ID.field(), self.apply_to_tenant_id.map(|id| id.0)),
            (
                ScopeKind::IdpInstance,
                Self::APPLY_TO_IDP_INSTANCE_ID.field(),
                self.apply_to_idp_instance_id.map(|id| id.0),
            ),
        ]
    }
}

/// The shape of roles of client apps.
pub static CLIENT_APP_ROLE: Shape = Shape::of::<ClientAppRole>(
    "ClientAppRole",
    "client_app_role",
    Reach::Of(ClientAppRole::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[
    Parent::new(ClientAppRole::CLIENT_APP_ID, &CLIENT_APP),
    Parent::new(ClientAppRole::APPLY_TO_TENANT_ID, &TENANT).open(),
    Parent::new(ClientAppRole::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE).open(),
])
.unique(&[
    Unique::new("client_app_role__id", &[ClientAppRole::ID.field()]),
    Unique::new(
        "client_app_role__client_app_id__role_type__target_key",
        &[
            ClientAppRole::CLIENT_APP_ID.field(),
            ClientAppRole::ROLE_TYPE.field(),
            ClientAppRole::TARGET_KEY.field(),
        ],
    )
    .reported_at(ClientAppRole::ROLE_TYPE),
])
.ruled::<ClientAppRole>()
.validate_rows(check)
.after_write(|context, tx, values| note(context, tx, ClientAppRole::CLIENT_APP_ID.get(values)?))
.postcondition(administrator::require_system_admin)
.bumps_epoch();

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let roles = rows
        .iter()
        .map(|row| ClientAppRole::from_values(row.values.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let apps: HashSet<Uuid> = roles.iter().map(|role| role.client_app_id.0).collect();
    let owners = owners_of(tx, &apps.into_iter().collect::<Vec<_>>())?;
    let grants = roles.iter().map(|role| {
        let covered = owners
            .get(&role.client_app_id.0)
            .filter(|owners| covers_owner(&writer.context.scope, owners.customer, owners.subscription));
        let scope = role.role_type.scope(|kind| match kind {
            ScopeKind::Customer => covered.map(|owners| owners.customer),
            ScopeKind::Subscription => covered.map(|owners| owners.subscription),
            _ => target_of(kind, targets_alone(&role.targets())),
        });
        (role.role_type, scope)
    });
    let grants: Vec<_> = grants.collect();
    let mut violations = check_grants(writer.context, &grants, ClientAppRole::ROLE_TYPE.field());
    violations.extend(check_stores(tx, &grants, ClientAppRole::APPLY_TO_IDP_INSTANCE_ID.field())?);
    Ok(violations)
}

/// The operations on roles of client apps.
pub static OPERATIONS: [Op; 9] =
    standard!("ClientAppRole", "/ClientAppRole", TenantMember, SubscriptionAdmin, &CLIENT_APP_ROLE);
/// The operation that lists the roles of a client app.
pub static OF_CLIENT_APP: &[Op] = &[of_client_app(
    "GetClientAppRolesByClientApp",
    "/ClientAppRole/clientapp/{clientAppId}",
    &CLIENT_APP_ROLE,
    |call, tx| list_of(call, tx, &CLIENT_APP, 0, ClientAppRole::CLIENT_APP_ID),
)];
