//! Who may grant which role: nobody one that they do not hold, in a scope that covers the target.

use std::collections::{HashMap, HashSet};

use chancery_record::{Field, Value};
use chancery_resource::{Context, LIST, Problem, ProblemKind, Scope, Sql, Violation};
use chancery_store::Tx;
use uuid::Uuid;

use crate::client_app::role::RoleType;

/// What a granted role covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everything.
    Everything,
    /// A customer.
    Customer(Uuid),
    /// A subscription.
    Subscription(Uuid),
    /// A tenant.
    Tenant(Uuid),
    /// An instance.
    IdpInstance(Uuid),
    /// What follows from the client app that has the role: its own customer or subscription.
    ClientApp(Uuid),
}

/// Finds roles for a user store that are given at an instance of another type: told of `field`.
pub fn check_stores(
    tx: &mut Tx<'_>,
    grants: &[(RoleType, Place)],
    field: &'static Field,
) -> Result<Vec<Violation>, Problem> {
    let instance = |grant: &(RoleType, Place)| match grant {
        (RoleType::UserStoreAdmin, Place::IdpInstance(id)) => Some(*id),
        _ => None,
    };
    let ids: HashSet<Uuid> = grants.iter().filter_map(instance).collect();
    let mut others = HashSet::new();
    for chunk in ids.into_iter().collect::<Vec<_>>().chunks(LIST) {
        let mut sql = Sql::new("SELECT id FROM idp_instance WHERE idp_type <> 'UserStore' AND id IN ");
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            others.insert(row.id(0)?);
            Ok(())
        })?;
    }
    let wrong = |(row, grant): (usize, &(RoleType, Place))| {
        let detail = "names an instance that is no user store: the role is one for a user store";
        instance(grant)
            .filter(|id| others.contains(id))
            .map(|_| crate::subscription::resolve::wrong(row, field, detail))
    };
    Ok(grants.iter().enumerate().filter_map(wrong).collect())
}

/// Finds grants of what the caller does not hold: told of `field`. That targets are the caller's is the resources'
/// own rule.
pub fn check_grants(
    context: &Context,
    tx: &mut Tx<'_>,
    grants: &[(RoleType, Place)],
    field: &'static Field,
) -> Result<Vec<Violation>, Problem> {
    let Scope::Parts { customers, subscriptions, tenants, .. } = &context.scope else {
        return Ok(Vec::new());
    };
    let apps: HashSet<Uuid> = grants
        .iter()
        .filter_map(|(_, place)| if let Place::ClientApp(id) = place { Some(*id) } else { None })
        .collect();
    let homes = homes_of(tx, &apps.into_iter().collect::<Vec<_>>())?;
    let holds = |role: RoleType, place: Place| match (role, place) {
        (RoleType::CustomerAdmin, Place::Customer(id)) => customers.contains(&id),
        (RoleType::CustomerAdmin, Place::ClientApp(app)) => {
            homes.get(&app).is_some_and(|(customer, _)| customers.contains(customer))
        }
        (RoleType::SystemAdmin | RoleType::AuditTrailReader | RoleType::CustomerAdmin, _)
        | (RoleType::ApplicationDataReader, Place::ClientApp(_) | Place::Everything) => false,
        (RoleType::SubscriptionAdmin, Place::ClientApp(app)) => homes
            .get(&app)
            .is_some_and(|(customer, own)| customers.contains(customer) || subscriptions.contains(own)),
        // the rest is of what the caller's scope covers, which is looked at where it is named
        (RoleType::TenantAdmin, Place::Tenant(id)) => {
            tenants.contains(&id) || !customers.is_empty() || !subscriptions.is_empty()
        }
        _ => !customers.is_empty() || !subscriptions.is_empty(),
    };
    let refused = grants.iter().enumerate().filter(|(_, (role, place))| !holds(*role, *place));
    Ok(refused
        .map(|(row, (role, _))| Violation {
            row,
            kind: ProblemKind::Forbidden,
            field,
            detail: format!("{} is not yours to grant: nobody grants what they do not hold", role.name()),
        })
        .collect())
}

/// The customer and the subscription of each client app.
fn homes_of(tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<HashMap<Uuid, (Uuid, Uuid)>, Problem> {
    let mut homes = HashMap::with_capacity(apps.len());
    for chunk in apps.chunks(LIST) {
        let mut sql = Sql::new(
            "SELECT a.id, s.customer_id, s.id FROM client_app a JOIN subscription s ON s.id = a.subscription_id WHERE a.id IN ",
        );
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            homes.insert(row.id(0)?, (row.id(1)?, row.id(2)?));
            Ok(())
        })?;
    }
    Ok(homes)
}
