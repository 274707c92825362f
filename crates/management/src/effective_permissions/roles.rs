//! The roles of a principal: its own, and those of the groups that it is in.

use chancery_record::Value;
use chancery_resource::{
    LIST, Problem, RoleScope, RoleType, Row,
    ScopeKind::{self, self as K},
    Sql, StoreError, Tx, selectable,
};
use uuid::Uuid;

use crate::grant::target_of;

/// The maximum number of groups that are searched for roles.
const MAX_GROUPS: usize = 10_000;
/// The maximum number of roles that one query reads.
const MAX_ROLES: usize = 100_000;

/// A role of a principal, with the assignment's source and its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedRole {
    /// The role.
    pub role: RoleType,
    /// `Direct`, `Group` or `ClientApp`.
    pub source: &'static str,
    /// The id of the user, group or client app that the role was assigned to.
    pub source_id: Uuid,
    /// The role's scope.
    pub scope: RoleScope,
}

/// Reads a role with its scope; `columns` hold its targets.
fn read_role(
    row: &Row<'_>,
    column: usize,
    columns: [(ScopeKind, usize); 4],
) -> Result<(RoleType, RoleScope), StoreError> {
    let unknown = || StoreError::Internal("a role is of no known type, or given at nothing".into());
    let role = RoleType::of(row.text(column)?).ok_or_else(unknown)?;
    let mut targets = Vec::with_capacity(columns.len());
    for (kind, column) in columns {
        targets.push((kind, row.optional_id(column)?));
    }
    let scope = role.scope(|kind| target_of(kind, targets.iter().copied())).ok_or_else(unknown)?;
    Ok((role, scope))
}

/// Called with each role when it is read.
pub type RoleVisitor<'a> = &'a mut dyn FnMut(&AssignedRole);

/// Reads the roles of a client app. CustomerAdmin and SubscriptionAdmin are roles at its own customer and
/// subscription.
pub fn of_client_app(tx: &mut Tx<'_>, id: Uuid, visit: RoleVisitor<'_>) -> Result<(), Problem> {
    let text = format!(
        "SELECT r.role_type, r.apply_to_tenant_id, r.apply_to_idp_instance_id, s.customer_id, s.id \
         FROM client_app a JOIN subscription s ON s.id = a.subscription_id \
         JOIN client_app_role r ON r.client_app_id = a.id WHERE a.id = ?1 ORDER BY r.id LIMIT {MAX_ROLES}"
    );
    tx.query(&text, &[Value::Id(id)], |row| {
        let columns = [(K::Tenant, 1), (K::IdpInstance, 2), (K::Customer, 3), (K::Subscription, 4)];
        let (role, scope) = read_role(row, 0, columns)?;
        visit(&AssignedRole { role, source: "ClientApp", source_id: id, scope });
        Ok(())
    })?;
    Ok(())
}

/// Reads the roles of a platform user: its own, and those of the groups that it is in, also as a directory provisions them.
pub fn of_user(tx: &mut Tx<'_>, id: Uuid, visit: RoleVisitor<'_>) -> Result<(), Problem> {
    let identities = "FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid \
        WHERE u.id = ?1 AND i.is_user_store_identity AND i.lifecycle_status = 'Active'";
    let members = "SELECT m.group_rid FROM group_member m JOIN user_account u ON u.rid = m.user_rid \
        JOIN idp_instance i ON i.rid = u.store WHERE i.id = ?1 AND u.id = ?2 AND u.quarantined_on IS NULL";
    let provisioned = format!(
        "SELECT p.id FROM application_user u JOIN application_group_member m ON m.application_user_rid = u.rid \
         JOIN application_group p ON p.rid = m.application_group_rid WHERE u.id = ?1 AND u.is_active \
         ORDER BY p.id LIMIT {MAX_GROUPS}"
    );
    direct(tx, &[id], "Direct", visit)?;
    let mut groups = groups_above(tx, identities, members, id)?;
    tx.query(&provisioned, &[Value::Id(id)], |row| {
        groups.push(row.id(0)?);
        Ok(())
    })?;
    direct(tx, &groups, "Group", visit)
}

/// Reads the roles of a platform group: its own, and those of the groups that it is in.
pub fn of_group(tx: &mut Tx<'_>, id: Uuid, visit: RoleVisitor<'_>) -> Result<(), Problem> {
    let identities = "FROM application_group_identity i \
        JOIN application_group g ON g.rid = i.application_group_rid \
        WHERE g.id = ?1 AND i.is_user_store_identity AND i.lifecycle_status = 'Active'";
    let parents = "SELECT e.parent_rid FROM group_edge e JOIN user_group g ON g.rid = e.child_rid \
        JOIN idp_instance i ON i.rid = g.store WHERE i.id = ?1 AND g.id = ?2";
    direct(tx, &[id], "Direct", visit)?;
    let groups: Vec<Uuid> =
        groups_above(tx, identities, parents, id)?.into_iter().filter(|group| *group != id).collect();
    direct(tx, &groups, "Group", visit)
}

selectable! {
    /// The identity of a user or group in a user store.
    struct StoreIdentity {
        instance: Uuid = "i.idp_instance_id",
        subject: String = "i.subject",
    }
}

/// The platform groups that a user or group is in, at any depth: its `identities` in user stores, the groups
/// there that `first` finds with all above them, and the platform groups of these.
fn groups_above(tx: &mut Tx<'_>, identities: &str, first: &str, id: Uuid) -> Result<Vec<Uuid>, Problem> {
    let mut known = Vec::new();
    let text = format!("SELECT {} {identities}", StoreIdentity::COLUMNS);
    tx.query(&text, &[Value::Id(id)], |row| {
        known.push(StoreIdentity::read(row)?);
        Ok(())
    })?;
    let mut groups = Vec::new();
    for StoreIdentity { instance, subject } in known {
        let Ok(subject) = Uuid::try_parse(&subject) else { continue };
        let text = format!(
            "WITH RECURSIVE above (rid) AS ({first} UNION SELECT e.parent_rid FROM group_edge e \
             JOIN above a ON a.rid = e.child_rid) SELECT g.id FROM above a JOIN user_group g ON g.rid = a.rid \
             LIMIT {MAX_GROUPS}"
        );
        let mut subjects = Vec::new();
        tx.query(&text, &[Value::Id(instance), Value::Id(subject)], |row| {
            subjects.push(row.id(0)?);
            Ok(())
        })?;
        for chunk in subjects.chunks(LIST) {
            let mut sql = Sql::new(
                "SELECT g.id FROM application_group_identity i JOIN application_group g \
                 ON g.rid = i.application_group_rid WHERE i.lifecycle_status = 'Active' AND i.idp_instance_id = ",
            )
            .bind(instance)
            .push(" AND i.subject IN ");
            sql.add_list(chunk.iter().map(|subject| Value::Text(subject.to_string())));
            tx.query(&sql.text, &sql.parameters, |row| {
                groups.push(row.id(0)?);
                Ok(())
            })?;
        }
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

/// Reads the roles that were assigned to the principals themselves.
fn direct(
    tx: &mut Tx<'_>,
    principals: &[Uuid],
    source: &'static str,
    visit: RoleVisitor<'_>,
) -> Result<(), Problem> {
    for chunk in principals.chunks(LIST) {
        let mut sql = Sql::new(
            "SELECT principal_id, role_type, apply_to_customer_id, apply_to_subscription_id, apply_to_tenant_id, \
             apply_to_idp_instance_id FROM role_assignment WHERE principal_id IN ",
        );
        sql.add_list(chunk.iter().copied().map(Value::Id));
        sql.add(&format!(" ORDER BY principal_id, id LIMIT {MAX_ROLES}"));
        tx.query(&sql.text, &sql.parameters, |row| {
            let columns = [(K::Customer, 2), (K::Subscription, 3), (K::Tenant, 4), (K::IdpInstance, 5)];
            let (role, scope) = read_role(row, 1, columns)?;
            visit(&AssignedRole { role, source, source_id: row.id(0)?, scope });
            Ok(())
        })?;
    }
    Ok(())
}
