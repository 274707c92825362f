//! The roles that users and groups of a store carry: those of their platform users and groups, directly or through
//! groups at any depth, also through groups that a directory provisions. `chancery_auth` reads the same for a sign-in.

use std::collections::{HashMap, HashSet};

use chancery_record::Value;
use chancery_resource::{
    Authority, CarriedRole, Context, HeldRole, Lineage, Problem, RoleType, ScopeKind, Sql, StoreError, Tx,
    selectable,
};
use uuid::Uuid;

use crate::{
    granted_role::{Granted, LINEAGE, RoleById, RoleBySubject, RoleGroups},
    role_carriers::RoleCarriers,
};

/// Finds the roles that users of the store carry.
pub fn of_users(context: &Context, tx: &mut Tx<'_>, users: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    find(context, tx, users, |_| true)
}

/// Finds the roles that users of the store carry, at least the roles that the caller's roles do not cover; all of them if the caller has
/// no roles.
pub fn counting_of_users(
    context: &Context,
    tx: &mut Tx<'_>,
    users: &[Uuid],
) -> Result<Vec<CarriedRole>, Problem> {
    let has_none = matches!(&context.authority, Authority::Roles(held) if held.is_empty());
    find(context, tx, users, |granted| {
        granted.is_none_or(|(role, granted_for)| {
            let carried = CarriedRole { row: Uuid::nil(), role, granted_for };
            has_none || context.authority.is_below(&carried)
        })
    })
}

/// Finds the roles that users of the store carry, at least the roles that match `counts`.
fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    users: &[Uuid],
    counts: impl Fn(&Granted) -> bool,
) -> Result<Vec<CarriedRole>, Problem> {
    let store = context.scope.of_store()?.id;
    let carriers = RoleCarriers::find(context, tx)?;
    let mut found = Vec::new();
    let (other_identities, groups) = match &carriers {
        Some(carriers) => {
            let is_needed = carriers.has_people(&counts) || carriers.has_groups(&counts);
            let other_identities = if is_needed {
                roles_of_identities(tx, store, users, carriers, &mut found)?
            } else {
                OtherIdentities::new()
            };
            (other_identities, carriers.groups_of(store, &counts))
        }
        None => direct_roles(tx, store, users, &mut found)?,
    };
    let rows: HashMap<Uuid, Vec<Uuid>> = users.iter().map(|id| (*id, vec![*id])).collect();
    through_groups(tx, store, &rows, &groups, &mut found)?;
    if let Some(carriers) = &carriers {
        through_provisioned_groups(tx, store, users, &carriers.provisioned_groups(&counts), &mut found)?;
    }
    for (instance, rows) in other_identities {
        let groups = match &carriers {
            Some(carriers) => carriers.groups_of(instance, &counts),
            None => role_groups(tx, instance)?,
        };
        through_groups(tx, instance, &rows, &groups, &mut found)?;
    }
    Ok(found)
}

selectable! {
    /// An identity of a platform user at a user store.
    struct StoreIdentity<'r> from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.is_user_store_identity WHERE " {
        person: Uuid = "u.id",
        store: Uuid = "i.idp_instance_id",
        /// The id of the user there.
        subject: &'r str = "i.subject",
    }
}

/// Finds the roles that platform users carry: by assignment, through groups of the user stores in which they have
/// identities, and through groups that a directory provisions.
pub fn of_people(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    let named = |sql: &mut Sql, column: &str| {
        sql.add(column);
        sql.add(" IN ");
        sql.add_list(people.iter().copied().map(Value::Id));
    };
    let columns = RoleById::columns("r.principal_id");
    let mut assigned = Sql::new(format!("SELECT {columns} FROM role_assignment r {LINEAGE} WHERE "));
    named(&mut assigned, "r.principal_id");
    assigned.add(" AND r.principal_type = 'PlatformUser'");
    let mut identities = Sql::new(StoreIdentity::SELECT);
    named(&mut identities, "u.id");
    let mut provisioned = Sql::new(format!(
        "SELECT {} FROM application_user u JOIN application_group_member m ON m.application_user_rid = u.rid \
         JOIN application_group p ON p.rid = m.application_group_rid \
         JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' {LINEAGE} WHERE ",
        RoleById::columns("u.id")
    ));
    named(&mut provisioned, "u.id");
    let statements =
        [&assigned, &identities, &provisioned].map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
    let (mut found, mut stores) = (Vec::new(), OtherIdentities::new());
    tx.query_all(&statements, &mut |index, row| {
        if index != 1 {
            let row = RoleById::read(row)?;
            return carry(row.carrier, &[row.granted()], &mut found);
        }
        let StoreIdentity { person, store, subject } = StoreIdentity::read(row)?;
        if let Ok(other_id) = Uuid::try_parse(subject) {
            stores.entry(store).or_default().entry(other_id).or_default().push(person);
        }
        Ok(())
    })?;
    for (instance, rows) in stores {
        let groups = role_groups(tx, instance)?;
        through_groups(tx, instance, &rows, &groups, &mut found)?;
    }
    Ok(found)
}

selectable! {
    /// A role of a client app.
    struct ClientAppRole<'r> from "FROM client_app a JOIN client_app_role r ON r.client_app_id = a.id \
        JOIN subscription y ON y.id = a.subscription_id WHERE a.id = ?1" {
        role: &'r str = "r.role_type",
        customer: Option<Uuid> = "y.customer_id",
        subscription: Option<Uuid> = "y.id",
        tenant: Option<Uuid> = "r.apply_to_tenant_id",
        instance: Option<Uuid> = "r.apply_to_idp_instance_id",
    }
}

/// Finds the roles of an actor who is not the current caller: a platform user, or a client app.
pub fn of_actor(tx: &mut Tx<'_>, actor: Uuid) -> Result<Vec<HeldRole>, Problem> {
    let mut carried = of_people(tx, &[actor])?;
    tx.query(ClientAppRole::SELECT, &[actor.into()], |row| {
        let ClientAppRole { role, customer, subscription, tenant, instance } = ClientAppRole::read(row)?;
        let granted_for = Lineage { customer, subscription, tenant, instance };
        carry(actor, &[RoleType::of(role).map(|role| (role, granted_for))], &mut carried)
    })?;
    let held = carried.into_iter().filter_map(|CarriedRole { role, granted_for, .. }| {
        let scope = role.scope(|kind| match kind {
            ScopeKind::Customer => granted_for.customer,
            ScopeKind::Subscription => granted_for.subscription,
            ScopeKind::Tenant => granted_for.tenant,
            ScopeKind::IdpInstance | ScopeKind::UserStore => granted_for.instance,
            ScopeKind::System | ScopeKind::Nothing => None,
        });
        Some(HeldRole { role, scope: scope? })
    });
    Ok(held.collect())
}

/// Finds the first of these roles that the actor's rights do not cover: what the actor created for a carrier is no
/// longer valid.
pub fn first_above(
    tx: &mut Tx<'_>,
    carried: &[CarriedRole],
    actor: Option<Uuid>,
) -> Result<Option<CarriedRole>, Problem> {
    if carried.is_empty() {
        return Ok(None);
    }
    let held = actor.map_or(Ok(Vec::new()), |actor| of_actor(tx, actor))?;
    let authority = Authority::Roles(held);
    Ok(carried.iter().filter(|role| authority.is_below(role)).min_by_key(|role| role.role).copied())
}

/// Finds the roles that groups of the store give to their members.
pub fn of_groups(context: &Context, tx: &mut Tx<'_>, groups: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    let store = context.scope.of_store()?;
    let granted = match RoleCarriers::find(context, tx)? {
        Some(carriers) => carriers.groups_of(store.id, |_| true),
        None => role_groups(tx, store.id)?,
    };
    if granted.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql =
        Sql::new("WITH RECURSIVE above (id, rid) AS (SELECT g.id, g.rid FROM user_group g WHERE g.store = ")
            .bind(store.number)
            .push(" AND g.id IN ");
    sql.add_list(groups.iter().copied().map(Value::Id));
    let mut found = Vec::new();
    granted_above(tx, sql, &granted, |group, granted| carry(group, granted, &mut found))?;
    Ok(found)
}

/// The other identities of users: by instance, the id there, and the rows of this store that are the same
/// person.
type OtherIdentities = HashMap<Uuid, HashMap<Uuid, Vec<Uuid>>>;

selectable! {
    /// A user of a store as a platform user, with another identity of the person at a user store, if there is one.
    struct UserAsPerson<'r> from "FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid \
        LEFT JOIN application_identity o ON o.application_user_rid = u.rid AND o.rid <> i.rid \
        AND o.is_user_store_identity WHERE i.idp_instance_id = " {
        /// The id of the user.
        subject: &'r str = "i.subject",
        person: Uuid = "u.id",
        other_store: Option<Uuid> = "o.idp_instance_id",
        other_subject: Option<&'r str> = "o.subject",
    }
}

/// Finds the roles that were assigned to the persons, and their other identities.
fn roles_of_identities(
    tx: &mut Tx<'_>,
    instance: Uuid,
    users: &[Uuid],
    carriers: &RoleCarriers,
    found: &mut Vec<CarriedRole>,
) -> Result<OtherIdentities, StoreError> {
    let mut sql = Sql::new(UserAsPerson::SELECT).bind(instance).push(" AND i.subject IN ");
    sql.add_list(users.iter().map(|id| Value::Text(id.to_string())));
    let mut other_identities = OtherIdentities::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let UserAsPerson { subject, person, other_store, other_subject } = UserAsPerson::read(row)?;
        let Ok(id) = Uuid::try_parse(subject) else { return Ok(()) };
        // a person with identities in several other stores matches several times
        carry(id, carriers.of_person(person), found)?;
        if let (Some(store), Some(Ok(other_id))) = (other_store, other_subject.map(Uuid::try_parse)) {
            other_identities.entry(store).or_default().entry(other_id).or_default().push(id);
        }
        Ok(())
    })?;
    Ok(other_identities)
}

selectable! {
    /// Another identity of a user of a store.
    struct OtherIdentity<'r> from "FROM application_identity i \
        JOIN application_identity o ON o.application_user_rid = i.application_user_rid AND o.rid <> i.rid \
        AND o.is_user_store_identity WHERE i.idp_instance_id = " {
        /// The id of the user.
        subject: &'r str = "i.subject",
        other_store: Uuid = "o.idp_instance_id",
        other_subject: &'r str = "o.subject",
    }
}

/// Finds the roles that were assigned to the persons, their other identities, and the groups of the store that were
/// granted roles: one round trip to the database.
fn direct_roles(
    tx: &mut Tx<'_>,
    instance: Uuid,
    users: &[Uuid],
    found: &mut Vec<CarriedRole>,
) -> Result<(OtherIdentities, RoleGroups), StoreError> {
    let subjects = |sql: Sql| {
        let mut sql = sql.bind(instance).push(" AND i.subject IN ");
        sql.add_list(users.iter().map(|id| Value::Text(id.to_string())));
        sql
    };
    let assigned = subjects(Sql::new(format!(
        "SELECT {} FROM application_identity i JOIN application_user u ON u.rid = i.application_user_rid \
         JOIN role_assignment r ON r.principal_id = u.id AND r.principal_type = 'PlatformUser' {LINEAGE} \
         WHERE i.idp_instance_id = ",
        RoleBySubject::COLUMNS
    )));
    let others = subjects(Sql::new(OtherIdentity::SELECT));
    let provisioned = subjects(Sql::new(format!(
        "SELECT {} FROM application_identity i \
         JOIN application_group_member m ON m.application_user_rid = i.application_user_rid \
         JOIN application_group p ON p.rid = m.application_group_rid \
         JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' {LINEAGE} \
         WHERE i.idp_instance_id = ",
        RoleBySubject::COLUMNS
    )));
    let granted = granted_to_groups(instance);
    let statements = [&assigned, &provisioned, &others, &granted]
        .map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
    let (mut other_identities, mut groups) = (OtherIdentities::new(), RoleGroups::new());
    tx.query_all(&statements, &mut |index, row| {
        if index == 2 {
            let OtherIdentity { subject, other_store, other_subject } = OtherIdentity::read(row)?;
            if let (Ok(id), Ok(other_id)) = (Uuid::try_parse(subject), Uuid::try_parse(other_subject)) {
                other_identities.entry(other_store).or_default().entry(other_id).or_default().push(id);
            }
            return Ok(());
        }
        let row = RoleBySubject::read(row)?;
        let Ok(id) = Uuid::try_parse(row.subject) else { return Ok(()) };
        if index == 3 {
            groups.entry(id).or_default().push(row.granted());
            Ok(())
        } else {
            carry(id, &[row.granted()], found)
        }
    })?;
    Ok((other_identities, groups))
}

fn granted_to_groups(instance: Uuid) -> Sql {
    Sql::new(format!(
        "SELECT {} FROM application_group_identity i \
         JOIN application_group p ON p.rid = i.application_group_rid \
         JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' {LINEAGE} \
         WHERE i.idp_instance_id = ",
        RoleBySubject::COLUMNS
    ))
    .bind(instance)
}

/// The groups of a store that were granted roles.
fn role_groups(tx: &mut Tx<'_>, instance: Uuid) -> Result<RoleGroups, StoreError> {
    let sql = granted_to_groups(instance);
    let mut groups = RoleGroups::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let row = RoleBySubject::read(row)?;
        if let Ok(group) = Uuid::try_parse(row.subject) {
            groups.entry(group).or_default().push(row.granted());
        }
        Ok(())
    })?;
    Ok(groups)
}

/// Finds the roles that users of a store carry through its groups. `rows`: the rows of each user.
fn through_groups(
    tx: &mut Tx<'_>,
    instance: Uuid,
    rows: &HashMap<Uuid, Vec<Uuid>>,
    groups: &RoleGroups,
    found: &mut Vec<CarriedRole>,
) -> Result<(), StoreError> {
    if groups.is_empty() {
        return Ok(());
    }
    // the search through all groups costs several times as much, and few people need it
    let users = near_groups(tx, instance, rows.keys().copied(), groups)?;
    if users.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new(
        "WITH RECURSIVE above (id, rid) AS (SELECT s.id, m.group_rid FROM idp_instance o \
         JOIN user_account s ON s.store = o.rid JOIN group_member m ON m.user_rid = s.rid WHERE o.id = ",
    )
    .bind(instance)
    .push(" AND s.id IN ");
    sql.add_list(users.into_iter().map(Value::Id));
    granted_above(tx, sql, groups, |user, granted| {
        rows.get(&user).into_iter().flatten().try_for_each(|id| carry(*id, granted, found))
    })
}

selectable! {
    /// A user of a store in a platform group that a directory provisions.
    struct ProvisionedMember<'r> from "FROM application_identity i \
        JOIN application_group_member m ON m.application_user_rid = i.application_user_rid \
        JOIN application_group p ON p.rid = m.application_group_rid WHERE i.idp_instance_id = " {
        /// The id of the user.
        subject: &'r str = "i.subject",
        group: Uuid = "p.id",
    }
}

/// Finds the roles that users of a store carry through groups that a directory provisions. Such groups are not nested.
fn through_provisioned_groups(
    tx: &mut Tx<'_>,
    instance: Uuid,
    users: &[Uuid],
    groups: &RoleGroups,
    found: &mut Vec<CarriedRole>,
) -> Result<(), StoreError> {
    if groups.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new(ProvisionedMember::SELECT).bind(instance).push(" AND i.subject IN ");
    sql.add_list(users.iter().map(|id| Value::Text(id.to_string())));
    sql.add(" AND p.id IN ");
    sql.add_list(groups.keys().copied().map(Value::Id));
    tx.query(&sql.text, &sql.parameters, |row| {
        let ProvisionedMember { subject, group } = ProvisionedMember::read(row)?;
        let Ok(user) = Uuid::try_parse(subject) else { return Ok(()) };
        groups.get(&group).map_or(Ok(()), |granted| carry(user, granted, found))
    })
}

/// Finds the users of a store who are in one of these groups, or in a nested group: no other user has the roles
/// of these groups.
fn near_groups(
    tx: &mut Tx<'_>,
    instance: Uuid,
    users: impl Iterator<Item = Uuid>,
    groups: &RoleGroups,
) -> Result<HashSet<Uuid>, StoreError> {
    let mut sql = Sql::new(
        "SELECT s.id FROM idp_instance o JOIN user_account s ON s.store = o.rid \
         JOIN group_member m ON m.user_rid = s.rid JOIN user_group g ON g.rid = m.group_rid WHERE o.id = ",
    )
    .bind(instance)
    .push(" AND s.id IN ");
    sql.add_list(users.map(Value::Id));
    sql.add(" AND (EXISTS (SELECT 1 FROM group_edge e WHERE e.child_rid = g.rid) OR g.id IN ");
    sql.add_list(groups.keys().copied().map(Value::Id));
    sql.add(")");
    let mut found = HashSet::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        found.insert(row.id(0)?);
        Ok(())
    })?;
    Ok(found)
}

selectable! {
    /// A row in a group, directly or through nested groups.
    struct RowInGroup from "FROM above a JOIN user_group g ON g.rid = a.rid WHERE g.id IN " {
        row: Uuid = "a.id",
        group: Uuid = "g.id",
    }
}

/// Finds the roles of the groups that rows are in, and of their ancestors. `begin` selects the pairs of a row's id and a
/// group's row number that start `above (id, rid)`.
fn granted_above(
    tx: &mut Tx<'_>,
    begin: Sql,
    groups: &RoleGroups,
    mut each: impl FnMut(Uuid, &[Granted]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut sql = begin
        .push(" UNION SELECT a.id, e.parent_rid FROM above a JOIN group_edge e ON e.child_rid = a.rid) ")
        .push(RowInGroup::SELECT);
    sql.add_list(groups.keys().copied().map(Value::Id));
    tx.query(&sql.text, &sql.parameters, |row| {
        let RowInGroup { row, group } = RowInGroup::read(row)?;
        groups.get(&group).map_or(Ok(()), |granted| each(row, granted))
    })
}

/// Adds roles to those that a row carries.
///
/// # Errors
/// One of them is unknown.
pub(super) fn carry(row: Uuid, granted: &[Granted], found: &mut Vec<CarriedRole>) -> Result<(), StoreError> {
    for granted in granted {
        let (role, granted_for) = known(*granted)?;
        found.push(CarriedRole { row, role, granted_for });
    }
    Ok(())
}

/// The role of an assignment.
///
/// # Errors
/// It is unknown, such as one of a newer release: what it permits is unknown too.
fn known(granted: Granted) -> Result<(RoleType, Lineage), StoreError> {
    granted.ok_or_else(|| StoreError::Internal("a role of no known type was assigned".into()))
}
