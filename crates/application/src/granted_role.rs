//! Assigned roles as their rows state them.

use std::collections::HashMap;

use chancery_resource::{Lineage, RoleScope, RoleType, StoreError, Tx, selectable};
use uuid::Uuid;

/// The joins that find the lineage of the target of a role assignment `r`.
pub const LINEAGE: &str = "LEFT JOIN tenant t ON t.id = r.apply_to_tenant_id \
    LEFT JOIN idp_instance x ON x.id = r.apply_to_idp_instance_id \
    LEFT JOIN subscription y ON y.id = COALESCE(r.apply_to_subscription_id, t.subscription_id, x.subscription_id)";

/// A role with the lineage of its target; `None` if the role is unknown, such as one of a newer release that runs in
/// parallel. Only carriers of that role are refused.
pub type Granted = Option<(RoleType, Lineage)>;
/// Groups of a store that were granted roles.
pub type RoleGroups = HashMap<Uuid, Vec<Granted>>;

/// Declares a row of a role assignment `r`: the given columns, which say who has the role, then the role and the lineage of its target
/// by [`LINEAGE`].
macro_rules! granted_role {
    ($(#[$meta:meta])* $name:ident $(($part:ident))? { $($carrier:tt)+ }) => {
        selectable! {
            $(#[$meta])*
            pub struct $name<'r> $(($part))? {
                $($carrier)+
                /// The role's name.
                pub role: &'r str = "r.role_type",
                customer: Option<Uuid> = "COALESCE(r.apply_to_customer_id, y.customer_id)",
                subscription: Option<Uuid> = "y.id",
                tenant: Option<Uuid> = "r.apply_to_tenant_id",
                instance: Option<Uuid> = "r.apply_to_idp_instance_id",
            }
        }

        impl $name<'_> {
            /// The role with the lineage of its target; `None` if it is unknown.
            pub fn granted(&self) -> Granted {
                let Self { customer, subscription, tenant, instance, .. } = *self;
                RoleType::of(self.role).map(|role| (role, Lineage { customer, subscription, tenant, instance }))
            }
        }
    };
}

granted_role! {
    /// A role by the id of who has it.
    RoleById(carrier) {
        /// The id, as the statement names it.
        pub carrier: Uuid = "{carrier}",
    }
}

granted_role! {
    /// A role of a user or a group of a known store.
    RoleBySubject {
        /// The id of the user or the group.
        pub subject: &'r str = "i.subject",
    }
}

granted_role! {
    /// A role of a group of a store.
    StoreGroupRole {
        /// The store.
        pub store: Uuid = "i.idp_instance_id",
        /// The id of the group.
        pub subject: &'r str = "i.subject",
    }
}

selectable! {
    /// A subscription.
    struct SubscriptionLineage {
        customer: Uuid = "y.customer_id",
        subscription: Uuid = "y.id",
    }
}

/// The lineage of the target of a role.
pub fn lineage_of(tx: &mut Tx<'_>, scope: RoleScope) -> Result<Lineage, StoreError> {
    let mut lineage = Lineage::default();
    let (joined, id) = match scope {
        RoleScope::System | RoleScope::Nothing => return Ok(lineage),
        RoleScope::Customer(id) => return Ok(Lineage { customer: Some(id), ..lineage }),
        RoleScope::Subscription(id) => ("subscription t ON t.id = y.id", id),
        RoleScope::Tenant(id) => {
            lineage.tenant = Some(id);
            ("tenant t ON t.subscription_id = y.id", id)
        }
        RoleScope::IdpInstance(id) => {
            lineage.instance = Some(id);
            ("idp_instance t ON t.subscription_id = y.id", id)
        }
    };
    let columns = SubscriptionLineage::COLUMNS;
    let text = format!("SELECT {columns} FROM subscription y JOIN {joined} WHERE t.id = ?1");
    if let Some(found) = tx.one(&text, &[id.into()], SubscriptionLineage::read)? {
        lineage.customer = Some(found.customer);
        lineage.subscription = Some(found.subscription);
    }
    Ok(lineage)
}
