//! The roles of the people who sign in by a setting: at an instance, at a tenant, with a second factor, or by a
//! certificate of an instance. The search starts with the assignments of roles, which are few, not with the people.

use std::collections::HashMap;

use chancery_record::Value;
use chancery_resource::{
    CarriedRole, Context, LIST, Problem, Sql, StoreError, Tx, other_role_condition, selectable,
};
use uuid::Uuid;

use crate::{
    carried_roles::carry,
    granted_role::{Granted, LINEAGE, RoleById, StoreGroupRole},
};

/// The maximum number of members of groups with roles for which other identities are read. Beyond it, all count as signing in anywhere.
const MAX_MEMBERS: usize = 10_000;

/// Pairs of settings and the instances where the people of each sign in: `SELECT` of two ids, without its last condition.
type SettingInstances = &'static [&'static str];

const INSTANCES: SettingInstances = &["SELECT o.id, o.id FROM idp_instance o WHERE o.id"];
const TENANTS: SettingInstances =
    &["SELECT t.id, o.id FROM tenant t JOIN tenant_idp_instance m ON m.tenant_rid = t.rid \
    JOIN idp_instance o ON o.rid = m.idp_instance_rid WHERE t.id"];
const CERTIFICATES: SettingInstances =
    &["SELECT c.id, o.id FROM cert_store c JOIN idp_instance_cert_store m ON m.cert_store_rid = c.rid \
    JOIN idp_instance o ON o.rid = m.idp_instance_rid WHERE c.id"];
/// A second factor is used at the tenants that have it, and required by instances and client apps.
const FACTORS: SettingInstances = &[
    "SELECT f.id, o.id FROM mfa_instance f JOIN tenant_mfa_instance a ON a.mfa_instance_rid = f.rid \
    JOIN tenant_idp_instance m ON m.tenant_rid = a.tenant_rid \
    JOIN idp_instance o ON o.rid = m.idp_instance_rid WHERE f.id",
    "SELECT f.id, o.id FROM mfa_instance f JOIN idp_instance_mfa_instance a ON a.mfa_instance_rid = f.rid \
    JOIN idp_instance o ON o.rid = a.idp_instance_rid WHERE f.id",
    "SELECT f.id, o.id FROM mfa_instance f JOIN client_app_mfa_instance c ON c.mfa_instance_rid = f.rid \
    JOIN tenant_client_app a ON a.client_app_rid = c.client_app_rid \
    JOIN tenant_idp_instance m ON m.tenant_rid = a.tenant_rid \
    JOIN idp_instance o ON o.rid = m.idp_instance_rid WHERE f.id",
];

/// Finds the roles of the people who sign in at instances.
pub fn at_instances(context: &Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    find(context, tx, INSTANCES, ids)
}

/// Finds the roles of the people who sign in at tenants.
pub fn at_tenants(context: &Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    find(context, tx, TENANTS, ids)
}

/// Finds the roles of the people who sign in with second factors.
pub fn with_factors(context: &Context, tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    find(context, tx, FACTORS, ids)
}

/// Finds the roles of the people who sign in at instances that work with certificates.
pub fn by_certificates(
    context: &Context,
    tx: &mut Tx<'_>,
    ids: &[Uuid],
) -> Result<Vec<CarriedRole>, Problem> {
    find(context, tx, CERTIFICATES, ids)
}

/// A group of a store that was granted a role.
struct RoleGroup {
    id: Uuid,
    granted: Granted,
}

/// Begins a statement with the pairs `place (setting, instance)`.
fn with_setting_instances(setting_instances: SettingInstances, ids: &[Uuid]) -> Sql {
    let mut sql = Sql::new("WITH place (setting, instance) AS (");
    for (index, select) in setting_instances.iter().enumerate() {
        sql.add(if index == 0 { "" } else { " UNION " });
        sql.add(select);
        sql.add(" IN ");
        sql.add_list(ids.iter().copied().map(Value::Id));
    }
    sql.push(") ")
}

/// Finds the roles that were assigned to people who sign in, to groups at their instances, and to groups that a directory provisions
/// and they are in: one round trip to the database. Only if none counts, groups of other instances are read: people who sign in have the roles of all their identities.
fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    setting_instances: SettingInstances,
    ids: &[Uuid],
) -> Result<Vec<CarriedRole>, Problem> {
    let roles = other_role_condition("r.role_type", |line| !context.authority.can_be_below(line.role));
    // CROSS JOIN: SQLite begins with the assignments
    let people = with_setting_instances(setting_instances, ids).push(&format!(
        "SELECT DISTINCT {} FROM role_assignment r CROSS JOIN application_user u CROSS JOIN place p {LINEAGE} \
         WHERE r.principal_type = 'PlatformUser' AND {roles} AND u.id = r.principal_id AND (u.idp_instance_id = p.instance \
         OR EXISTS (SELECT 1 FROM application_identity i WHERE i.application_user_rid = u.rid \
         AND i.idp_instance_id = p.instance))",
        RoleById::columns("p.setting")
    ));
    let groups = with_setting_instances(setting_instances, ids).push(&format!(
        "SELECT DISTINCT {} FROM role_assignment r CROSS JOIN application_group g CROSS JOIN place p {LINEAGE} \
         WHERE r.principal_type = 'PlatformGroup' AND {roles} AND g.id = r.principal_id AND (g.idp_instance_id = p.instance \
         OR EXISTS (SELECT 1 FROM application_group_identity i WHERE i.application_group_rid = g.rid \
         AND i.idp_instance_id = p.instance) \
         OR EXISTS (SELECT 1 FROM application_group_member m JOIN application_user u ON u.rid = m.application_user_rid \
         WHERE m.application_group_rid = g.rid AND (u.idp_instance_id = p.instance \
         OR EXISTS (SELECT 1 FROM application_identity i WHERE i.application_user_rid = u.rid \
         AND i.idp_instance_id = p.instance))))",
        RoleById::columns("p.setting")
    ));
    let all_groups = format!(
        "SELECT {} FROM role_assignment r CROSS JOIN application_group g \
         CROSS JOIN application_group_identity i {LINEAGE} WHERE r.principal_type = 'PlatformGroup' AND {roles} \
         AND g.id = r.principal_id AND i.application_group_rid = g.rid AND i.is_user_store_identity",
        StoreGroupRole::COLUMNS
    );
    let statements = [
        (people.text.as_str(), people.parameters.as_slice()),
        (groups.text.as_str(), groups.parameters.as_slice()),
        (all_groups.as_str(), &[]),
    ];
    let (mut found, mut other_groups) = (Vec::new(), HashMap::<Uuid, Vec<RoleGroup>>::new());
    tx.query_all(&statements, &mut |index, row| {
        if index < 2 {
            let row = RoleById::read(row)?;
            return carry(row.carrier, &[row.granted()], &mut found);
        }
        let row = StoreGroupRole::read(row)?;
        let granted = row.granted();
        let Ok(id) = Uuid::try_parse(row.subject) else { return Ok(()) };
        let counts =
            |(role, granted_for)| context.authority.is_below(&CarriedRole { row: id, role, granted_for });
        if granted.is_none_or(counts) {
            other_groups.entry(row.store).or_default().push(RoleGroup { id, granted });
        }
        Ok(())
    })?;
    if found.iter().any(|carried| context.authority.is_below(carried)) {
        return Ok(found);
    }
    for (store, groups) in other_groups {
        through_groups(tx, setting_instances, ids, store, &groups, &mut found)?;
    }
    Ok(found)
}

selectable! {
    /// A user of a store, who signs in by a setting.
    struct UserAtSetting<'r> {
        /// The id of the user.
        subject: &'r str = "i.subject",
        setting: Uuid = "p.setting",
    }
}

/// Finds the roles that people who sign in have through groups of another store.
fn through_groups(
    tx: &mut Tx<'_>,
    setting_instances: SettingInstances,
    ids: &[Uuid],
    store: Uuid,
    groups: &[RoleGroup],
    found: &mut Vec<CarriedRole>,
) -> Result<(), StoreError> {
    let mut carry_of = |setting: Uuid, group: Uuid| {
        let mut granted = groups.iter().filter(|granted| granted.id == group);
        granted.try_for_each(|one| carry(setting, &[one.granted], found))
    };
    for chunk in groups.chunks(LIST) {
        let members = members_of(tx, store, chunk)?;
        if members.len() > MAX_MEMBERS {
            for (id, group) in ids.iter().flat_map(|id| chunk.iter().map(move |group| (id, group))) {
                carry_of(*id, group.id)?;
            }
            continue;
        }
        for members in members.chunks(LIST) {
            let mut sql = with_setting_instances(setting_instances, ids)
                .push("SELECT DISTINCT ")
                .push(UserAtSetting::COLUMNS)
                .push(
                    " FROM application_identity i CROSS JOIN application_identity o \
                     CROSS JOIN place p WHERE o.application_user_rid = i.application_user_rid \
                     AND p.instance = o.idp_instance_id AND i.idp_instance_id = ",
                )
                .bind(store)
                .push(" AND i.subject IN ");
            sql.add_list(members.iter().map(|member| Value::Text(member.user.to_string())));
            tx.query(&sql.text, &sql.parameters, |row| {
                let UserAtSetting { subject, setting } = UserAtSetting::read(row)?;
                let subject = Uuid::try_parse(subject).ok();
                let mut same = members.iter().filter(|member| Some(member.user) == subject);
                same.try_for_each(|member| carry_of(setting, member.group))
            })?;
        }
    }
    Ok(())
}

selectable! {
    /// A member of a group, directly or through nested groups.
    struct GroupMember {
        user: Uuid = "s.id",
        group: Uuid = "b.id",
    }
}

/// The members of groups of a store, at any depth; one above the maximum if there are too many.
fn members_of(tx: &mut Tx<'_>, store: Uuid, groups: &[RoleGroup]) -> Result<Vec<GroupMember>, StoreError> {
    let mut sql = Sql::new(
        "WITH RECURSIVE below (id, rid) AS (SELECT g.id, g.rid FROM idp_instance o JOIN user_group g ON g.store = o.rid \
         WHERE o.id = ",
    )
    .bind(store)
    .push(" AND g.id IN ");
    sql.add_list(groups.iter().map(|group| Value::Id(group.id)));
    sql.add(&format!(
        " UNION SELECT b.id, e.child_rid FROM below b JOIN group_edge e ON e.parent_rid = b.rid) \
         SELECT DISTINCT {} FROM below b JOIN group_member m ON m.group_rid = b.rid \
         JOIN user_account s ON s.rid = m.user_rid LIMIT {}",
        GroupMember::COLUMNS,
        MAX_MEMBERS + 1
    ));
    let mut members = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        members.push(GroupMember::read(row)?);
        Ok(())
    })?;
    Ok(members)
}
