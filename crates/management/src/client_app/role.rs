//! Roles of a client app: what it may do here.

use chancery_record::{
    FIXED, FieldType as _, HIDDEN, KEY, Name, OPEN, Preset, Record as _, SHOWN, Token, Value, choice_types,
    id_types, record,
};
use chancery_resource::{
    Call, Findings, Op, Parent, Problem, Proposed, ProvidedFields, Reach, Rules, Shape, Unique, Violation,
    list_of, standard,
};
use chancery_store::Tx;

use super::{CLIENT_APP, ClientAppId, administrator, controller::note, scope_and_resource::of_client_app};
use crate::{
    grant::{Place, check_grants, check_stores},
    idp_instance::{IDP_INSTANCE, IdpInstanceId},
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a role of a client app.
    ClientAppRoleId
}

choice_types! {
    /// What may be done.
    RoleType {
        /// Everything.
        SystemAdmin,
        /// Everything of a customer.
        CustomerAdmin,
        /// Everything of a subscription.
        SubscriptionAdmin,
        /// What a tenant owns.
        TenantAdmin,
        /// Everything in a user store.
        UserStoreAdmin,
        /// The users of a user store.
        UserAdmin,
        /// To read platform users and groups.
        ApplicationDataReader,
        /// To read audit trails.
        AuditTrailReader,
    }
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
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        let target = self.apply_to_tenant_id.map(|id| id.0).or(self.apply_to_idp_instance_id.map(|id| id.0));
        let key = target.map_or_else(String::new, |id| id.to_string());
        if let Ok(key) = Name::from_value(Value::Text(key)) {
            self.target_key = key;
        }
    }

    fn check(&self, wrong: &mut Findings) {
        let (tenant, instance) = (self.apply_to_tenant_id.is_some(), self.apply_to_idp_instance_id.is_some());
        let role = self.role_type.name();
        match self.role_type {
            RoleType::TenantAdmin if !tenant => {
                wrong.add(Self::APPLY_TO_TENANT_ID, format!("is missing: a {role} is one of a tenant"));
            }
            RoleType::UserStoreAdmin if !instance => {
                wrong.add(
                    Self::APPLY_TO_IDP_INSTANCE_ID,
                    format!("is missing: a {role} is one of a user store"),
                );
            }
            RoleType::ApplicationDataReader if tenant && instance => {
                wrong.add(Self::APPLY_TO_IDP_INSTANCE_ID, "must be empty beside applyToTenantId");
            }
            _ => {}
        }
        let takes_tenant = matches!(self.role_type, RoleType::TenantAdmin | RoleType::ApplicationDataReader);
        let takes_instance =
            matches!(self.role_type, RoleType::UserStoreAdmin | RoleType::ApplicationDataReader);
        if tenant && !takes_tenant {
            wrong.add(Self::APPLY_TO_TENANT_ID, format!("must be empty: a {role} is of no tenant"));
        }
        if instance && !takes_instance {
            wrong.add(Self::APPLY_TO_IDP_INSTANCE_ID, format!("must be empty: a {role} is of no instance"));
        }
    }
}

/// The resource.
pub static CLIENT_APP_ROLE: Shape = Shape::of::<ClientAppRole>(
    "ClientAppRole",
    "client_app_role",
    Reach::Of(ClientAppRole::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.belonging(&[
    Parent::new(ClientAppRole::CLIENT_APP_ID, &CLIENT_APP),
    Parent::new(ClientAppRole::APPLY_TO_TENANT_ID, &TENANT),
    Parent::new(ClientAppRole::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE),
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
    .told_of(ClientAppRole::ROLE_TYPE),
])
.ruled::<ClientAppRole>()
.validate_rows(check)
.after_write(|context, tx, values| note(context, tx, ClientAppRole::CLIENT_APP_ID.get(values)?))
.postcondition(administrator::keep_one)
.bumps_epoch();

fn check(call: &Call, tx: &mut Tx<'_>, rows: &mut [Proposed<'_>]) -> Result<Vec<Violation>, Problem> {
    let roles = rows
        .iter()
        .map(|row| ClientAppRole::from_values(row.values.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let grants: Vec<_> = roles
        .iter()
        .map(|role| {
            let place = match (role.apply_to_tenant_id, role.apply_to_idp_instance_id) {
                (Some(tenant), _) => Place::Tenant(tenant.0),
                (_, Some(instance)) => Place::IdpInstance(instance.0),
                _ => Place::ClientApp(role.client_app_id.0),
            };
            (role.role_type, place)
        })
        .collect();
    let mut violations = check_grants(&call.context, tx, &grants, ClientAppRole::ROLE_TYPE.field())?;
    violations.extend(check_stores(tx, &grants, ClientAppRole::APPLY_TO_IDP_INSTANCE_ID.field())?);
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
    |call, tx| list_of(call, tx, &CLIENT_APP, 0, ClientAppRole::CLIENT_APP_ID),
)];
