//! Roles of a client app: what it may do here.

use std::collections::HashSet;

use chancery_record::{
    FIXED, FieldType as _, HIDDEN, KEY, Name, OPEN, Preset, Record as _, SHOWN, Token, Value, id_types,
    record,
};
use chancery_resource::{
    Call, Op, Parent, Problem, Proposed, ProvidedFields, Reach, RoleType, Rules, ScopeKind, Shape, Tx,
    Unique, Violation, standard,
};
use uuid::Uuid;

use super::{
    CLIENT_APP, ClientAppId, administrator, controller::note_change, scope_and_resource::of_client_app,
};
use crate::{
    grant::{Target, check_grants, check_stores, check_targets, homes_of, is_home, target_of},
    idp_instance::{IDP_INSTANCE, IdpInstanceId},
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a role of a client app.
    ClientAppRoleId
}

record! {
    /// What a client app may do here. CustomerAdmin and SubscriptionAdmin are those of its own
    /// customer and subscription.
    pub struct ClientAppRole {
        /// The role.
        id: ClientAppRoleId = KEY,
        /// What may be done.
        role_type: RoleType = OPEN,
        /// The tenant, of a TenantAdmin or an ApplicationDataReader.
        apply_to_tenant_id: Option<TenantId> = OPEN,
        /// The instance, of a UserStoreAdmin or an ApplicationDataReader.
        apply_to_idp_instance_id: Option<IdpInstanceId> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// What it applies to, as text.
        target_key: Name = HIDDEN.or(Preset::Text("")),
        /// Changes with every write to the role.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for ClientAppRole {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_>) {
        let target = self.targets().into_iter().find_map(|(_, target)| target);
        let key = target.map_or_else(String::new, |id| id.to_string());
        if let Ok(key) = Name::from_value(Value::Text(key)) {
            self.target_key = key;
        }
    }

    fn check(&self, wrong: &mut Vec<(&'static str, String)>) {
        check_targets(self.role_type, &self.targets(), wrong);
    }
}

impl ClientAppRole {
    /// What it is given at; that its customer and its subscription are the client app's own is no choice.
    fn targets(&self) -> [Target; 2] {
        [
            (ScopeKind::Tenant, self.apply_to_tenant_id.map(|id| id.0)),
            (ScopeKind::IdpInstance, self.apply_to_idp_instance_id.map(|id| id.0)),
        ]
    }
}

/// The resource.
pub static CLIENT_APP_ROLE: Shape =
    Shape::of::<ClientAppRole>("ClientAppRole", "client_app_role", Reach::Of("client_app_id", &CLIENT_APP))
        .belonging(&[
            Parent::new("client_app_id", &CLIENT_APP),
            Parent::new("apply_to_tenant_id", &TENANT),
            Parent::new("apply_to_idp_instance_id", &IDP_INSTANCE),
        ])
        .unique(&[
            Unique::new("client_app_role__id", "id"),
            Unique::new("client_app_role__client_app_id__role_type__target_key", "role_type"),
        ])
        .ruled::<ClientAppRole>()
        .validate_rows(check)
        .after_write(note_change)
        .postcondition(administrator::keep_one)
        .bumps_epoch();

fn check(call: &Call, tx: &mut Tx<'_>, rows: &mut [Proposed<'_>]) -> Result<Vec<Violation>, Problem> {
    let roles = rows
        .iter()
        .map(|row| ClientAppRole::from_values(row.values.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let apps: HashSet<Uuid> = roles.iter().map(|role| role.client_app_id.0).collect();
    let homes = homes_of(tx, &apps.into_iter().collect::<Vec<_>>())?;
    let grants = roles.iter().map(|role| {
        let home = homes.get(&role.client_app_id.0).copied();
        let (customer, subscription) = home.filter(|home| is_home(&call.context.scope, *home)).unzip();
        let scope = role.role_type.scope(|kind| match kind {
            ScopeKind::Customer => customer,
            ScopeKind::Subscription => subscription,
            _ => target_of(kind, &role.targets()),
        });
        (role.role_type, scope)
    });
    let grants: Vec<_> = grants.collect();
    let mut violations = check_grants(&call.context, &grants);
    violations.extend(check_stores(tx, &grants)?);
    Ok(violations)
}

/// Its operations.
pub static OPERATIONS: [Op; 9] =
    standard!("ClientAppRole", "/ClientAppRole", TenantMember, SubscriptionAdmin, &CLIENT_APP_ROLE);
/// Those of a client app.
pub static OF_CLIENT_APP: &[Op] = &[of_client_app(
    "GetClientAppRolesByClientApp",
    "/ClientAppRole/clientapp/{clientAppId}",
    &CLIENT_APP_ROLE,
)];
