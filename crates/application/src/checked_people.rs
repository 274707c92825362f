//! The people whose credentials are checked: those with roles, a platform user, or the members of a platform group.

use std::collections::{BTreeSet, HashMap};

use chancery_record::Value;
use chancery_resource::{
    LIST, Role, RoleType, Sql, StoreError, Tx, other_role_condition, role_condition, selectable,
};
use uuid::Uuid;

/// The maximum number of checked people.
const MAX_PEOPLE: usize = 1_000;

/// The people to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialQuery {
    /// All people with a role.
    All,
    /// A platform user.
    Person(Uuid),
    /// The members of a platform group, at any depth.
    Group(Uuid),
}

/// The people to check, up to the limit, and whether these are all. For all people, those with no role but
/// `ApplicationDataReader` come last, since that role is often assigned to everyone.
pub fn people(tx: &mut Tx<'_>, query: CredentialQuery) -> Result<(Vec<Uuid>, bool), StoreError> {
    let is_reader = |line: &Role| line.role == RoleType::ApplicationDataReader;
    let is_user_admin = |line: &Role| line.role == RoleType::UserAdmin;
    let mut list = PeopleList::default();
    match query {
        CredentialQuery::Person(person) => list.add(person),
        CredentialQuery::Group(group) => {
            let mut sql = StoreGroup::begin().push(" AND g.id = ").bind(group);
            members(tx, &mut sql, &mut list)?;
            let mut sql = Sql::new(PROVISIONED_MEMBERS).push("g.id = ").bind(group);
            provisioned_members(tx, &mut sql, &mut list)?;
        }
        CredentialQuery::All => {
            holders(
                tx,
                &other_role_condition("r.role_type", |line| is_user_admin(line) || is_reader(line)),
                &mut list,
            )?;
            holders(tx, &role_condition("r.role_type", is_reader), &mut list)?;
        }
    }
    let is_complete = !list.is_cut && !list.is_full();
    list.order.truncate(MAX_PEOPLE);
    Ok((list.order, is_complete))
}

/// People without duplicates, in insertion order.
#[derive(Default)]
struct PeopleList {
    known: BTreeSet<Uuid>,
    order: Vec<Uuid>,
    /// Whether groups have more users than the limit, so that some were not looked up.
    is_cut: bool,
}

impl PeopleList {
    fn add(&mut self, person: Uuid) {
        if !self.is_full() && self.known.insert(person) {
            self.order.push(person);
        }
    }

    fn is_full(&self) -> bool {
        self.order.len() > MAX_PEOPLE
    }
}

selectable! {
    /// A group of a user store that corresponds to a platform group.
    struct StoreGroup<'r> {
        store: Uuid = "i.idp_instance_id",
        /// The id of the group.
        subject: &'r str = "i.subject",
    }
}

impl StoreGroup<'_> {
    /// The begin of a statement for the groups that meet a condition on the platform group `g`.
    fn begin() -> Sql {
        Sql::new(format!(
            "SELECT DISTINCT {} FROM application_group g \
             JOIN application_group_identity i ON i.application_group_rid = g.rid AND i.is_user_store_identity WHERE TRUE",
            Self::COLUMNS
        ))
    }
}

/// Adds the people with a role assignment that meets a condition, and then the members of groups with one.
fn holders(tx: &mut Tx<'_>, condition: &str, list: &mut PeopleList) -> Result<(), StoreError> {
    let direct = format!(
        "SELECT DISTINCT r.principal_id FROM role_assignment r WHERE r.principal_type = 'PlatformUser' AND {condition} \
         LIMIT {}",
        MAX_PEOPLE + 1
    );
    tx.query(&direct, &[], |row| {
        list.add(row.id(0)?);
        Ok(())
    })?;
    let with_role = format!(
        "g.id IN (SELECT r.principal_id FROM role_assignment r WHERE r.principal_type = 'PlatformGroup' AND {condition})"
    );
    members(tx, &mut StoreGroup::begin().push(" AND ").push(&with_role), list)?;
    provisioned_members(tx, &mut Sql::new(PROVISIONED_MEMBERS).push(&with_role), list)
}

/// The members of platform groups that a directory provisions. Such groups are not nested.
const PROVISIONED_MEMBERS: &str = "SELECT DISTINCT u.id FROM application_group g \
    JOIN application_group_member m ON m.application_group_rid = g.rid \
    JOIN application_user u ON u.rid = m.application_user_rid WHERE ";

/// Adds the members that a statement selects.
fn provisioned_members(tx: &mut Tx<'_>, sql: &mut Sql, list: &mut PeopleList) -> Result<(), StoreError> {
    sql.add(&format!(" LIMIT {}", MAX_PEOPLE + 1));
    tx.query(&sql.text, &sql.parameters, |row| {
        list.add(row.id(0)?);
        Ok(())
    })?;
    Ok(())
}

/// Adds the members of the groups of user stores that a statement selects, at any depth.
fn members(tx: &mut Tx<'_>, groups: &mut Sql, list: &mut PeopleList) -> Result<(), StoreError> {
    let mut by_store: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    tx.query(&groups.text, &groups.parameters, |row| {
        let StoreGroup { store, subject } = StoreGroup::read(row)?;
        if let Ok(group) = Uuid::try_parse(subject) {
            by_store.entry(store).or_default().push(group);
        }
        Ok(())
    })?;
    for (instance, groups) in by_store {
        for chunk in groups.chunks(LIST) {
            if list.is_full() {
                return Ok(());
            }
            let users = users_below(tx, instance, chunk)?;
            list.is_cut |= users.len() > MAX_PEOPLE;
            for users in users.chunks(LIST) {
                let mut sql = Sql::new(
                    "SELECT DISTINCT u.id FROM application_identity i JOIN application_user u \
                     ON u.rid = i.application_user_rid WHERE i.idp_instance_id = ",
                )
                .bind(instance)
                .push(" AND i.subject IN ");
                sql.add_list(users.iter().map(|user| Value::Text(user.to_string())));
                tx.query(&sql.text, &sql.parameters, |row| {
                    list.add(row.id(0)?);
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// The users in groups of a store, at any depth: one above the limit if there are too many.
fn users_below(tx: &mut Tx<'_>, instance: Uuid, groups: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    let mut sql = Sql::new(
        "WITH RECURSIVE below (rid) AS (SELECT g.rid FROM idp_instance o JOIN user_group g ON g.store = o.rid WHERE o.id = ",
    )
    .bind(instance)
    .push(" AND g.id IN ");
    sql.add_list(groups.iter().copied().map(Value::Id));
    sql.add(&format!(
        " UNION SELECT e.child_rid FROM below b JOIN group_edge e ON e.parent_rid = b.rid) \
         SELECT DISTINCT s.id FROM below b JOIN group_member m ON m.group_rid = b.rid \
         JOIN user_account s ON s.rid = m.user_rid LIMIT {}",
        MAX_PEOPLE + 1
    ));
    let mut users = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        users.push(row.id(0)?);
        Ok(())
    })?;
    Ok(users)
}
