//! Credentials of people with a role that were last set by an actor who does not hold that role: passwords, addresses, passkeys
//! and security contacts that were set before a promotion.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use chancery_record::{Timestamp, Value, choice_types};
use chancery_resource::{
    Authority, CarriedRole, Context, LIST, Lineage, Problem, Role, RoleType, Sql, StoreError, Tx,
    other_role_condition, role_condition, visible,
};
use uuid::Uuid;

use crate::{
    APPLICATION_GROUP, APPLICATION_USER,
    carried_roles::{of_actor, of_people},
    controllers::controllers_of_token,
    store_user::{StoreUser, users_of},
};

/// The maximum number of checked people.
const MAX_PEOPLE: usize = 1_000;

choice_types! {
    /// The kind of a credential.
    CredentialKind {
        /// The password.
        Password,
        /// The login name, the e-mail address or the telephone number, or their confirmation.
        Address,
        /// A passkey.
        Passkey,
        /// A security contact.
        Contact,
    }
}

/// A credential of a person that was last set by an actor who does not hold a role of the person.
#[derive(Clone, Debug)]
pub struct SetByOther {
    /// The platform user.
    pub person: Uuid,
    /// The user store and its name.
    pub store: (Uuid, String),
    /// The user in that store.
    pub user: Uuid,
    /// The kind.
    pub kind: CredentialKind,
    /// The id of the passkey or of the security contact.
    pub credential: Option<Uuid>,
    /// Who set it: a platform user, a client app or a SCIM token.
    pub set_by: Uuid,
    /// When it was set, if known.
    pub set_on: Option<Timestamp>,
    /// The highest of the person's roles that the setter does not hold.
    pub role: RoleType,
}

/// The people to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialQuery {
    /// All people with a role.
    All,
    /// A platform user.
    Person(Uuid),
    /// The members of a platform group, at any depth.
    Group(Uuid),
}

/// Finds the credentials set by others, of people whom the caller can read or who are in a group that the caller can read. Also
/// returns whether all people were checked, and not only the first 1,000. With `granted`, people are checked as if they held
/// this role, too: it shows the administrator which credentials a grant would make dangerous.
pub fn set_by_others(
    context: &Context,
    tx: &mut Tx<'_>,
    query: CredentialQuery,
    granted: Option<(RoleType, Lineage)>,
) -> Result<(Vec<SetByOther>, bool), Problem> {
    if let CredentialQuery::Group(group) = query
        && visible(context, tx, &APPLICATION_GROUP, &[group])?.is_empty()
    {
        return Ok((Vec::new(), true));
    }
    let (mut people, is_complete) = people(tx, query)?;
    let seen = visible(context, tx, &APPLICATION_USER, &people)?;
    people.retain(|person| seen.contains_key(person));
    let (mut setters, mut reported) = (SetterCache::default(), Vec::new());
    for chunk in people.chunks(LIST) {
        let facts = facts(tx, chunk)?;
        let owners: BTreeSet<Uuid> = facts.iter().map(|credential_set| credential_set.user.person).collect();
        let owners: Vec<Uuid> = owners.into_iter().collect();
        let mut carried = if owners.is_empty() { Vec::new() } else { of_people(tx, &owners)? };
        if let Some((role, granted_for)) = granted {
            carried.extend(owners.iter().map(|person| CarriedRole { row: *person, role, granted_for }));
        }
        for credential_set in facts {
            let own = carried.iter().filter(|carried| carried.row == credential_set.user.person);
            if let Some(role) = setters.first_above(tx, &credential_set, own)? {
                reported.push(credential_set.into_report(role));
            }
        }
    }
    Ok((reported, is_complete))
}

/// A credential that another actor set.
struct SetCredential {
    user: StoreUser,
    kind: CredentialKind,
    credential: Option<Uuid>,
    set_by: Uuid,
    set_on: Option<Timestamp>,
}

impl SetCredential {
    fn into_report(self, role: RoleType) -> SetByOther {
        let Self { user, kind, credential, set_by, set_on } = self;
        let StoreUser { person, instance, name, id, .. } = user;
        SetByOther { person, store: (instance, name), user: id, kind, credential, set_by, set_on, role }
    }
}

/// Cache of the setters that were looked up.
#[derive(Default)]
struct SetterCache {
    held: HashMap<Uuid, Authority>,
    controllers: HashMap<(i64, Uuid), Vec<Uuid>>,
}

impl SetterCache {
    /// The highest role of a person that the setter does not hold. A SCIM token holds the roles that all actors hold who created or
    /// changed it.
    fn first_above<'a>(
        &mut self,
        tx: &mut Tx<'_>,
        credential_set: &SetCredential,
        carried: impl Iterator<Item = &'a CarriedRole>,
    ) -> Result<Option<RoleType>, Problem> {
        let carried: Vec<&CarriedRole> = carried.collect();
        if credential_set.set_by == credential_set.user.person || carried.is_empty() {
            return Ok(None);
        }
        let Some(role) = self.above(tx, credential_set.set_by, &carried)? else { return Ok(None) };
        let controllers = self.controllers(tx, (credential_set.user.store, credential_set.set_by))?;
        let mut above = controllers.is_empty().then_some(role);
        for controller in controllers.iter().filter(|controller| **controller != credential_set.user.person) {
            above = above.into_iter().chain(self.above(tx, *controller, &carried)?).min();
        }
        Ok(above)
    }

    fn above(
        &mut self,
        tx: &mut Tx<'_>,
        actor: Uuid,
        carried: &[&CarriedRole],
    ) -> Result<Option<RoleType>, Problem> {
        let authority = match self.held.entry(actor) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Authority::Roles(of_actor(tx, actor)?)),
        };
        let counts = |carried: &&&CarriedRole| authority.is_below(carried);
        Ok(carried.iter().filter(counts).map(|carried| carried.role).min())
    }

    /// The actors who created or changed a SCIM token; empty if the setter is not a SCIM token.
    fn controllers(&mut self, tx: &mut Tx<'_>, (store, token): (i64, Uuid)) -> Result<Vec<Uuid>, Problem> {
        if let Some(known) = self.controllers.get(&(store, token)) {
            return Ok(known.clone());
        }
        let controllers = controllers_of_token(tx, store, token)?;
        self.controllers.insert((store, token), controllers.clone());
        Ok(controllers)
    }
}

/// The people to check, up to the limit, and whether these are all. For all people, those with no role but
/// `ApplicationDataReader` come last, since that role is often assigned to everyone.
fn people(tx: &mut Tx<'_>, query: CredentialQuery) -> Result<(Vec<Uuid>, bool), StoreError> {
    let is_reader = |line: &Role| line.role == RoleType::ApplicationDataReader;
    let is_user_admin = |line: &Role| line.role == RoleType::UserAdmin;
    let mut list = PeopleList::default();
    match query {
        CredentialQuery::Person(person) => list.add(person),
        CredentialQuery::Group(group) => {
            let mut sql = Sql::new(GROUPS).push(" AND g.id = ").bind(group);
            members(tx, &mut sql, &mut list)?;
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

/// The groups of user stores that correspond to platform groups.
const GROUPS: &str = "SELECT DISTINCT i.idp_instance_id, i.subject FROM application_group g \
    JOIN application_group_identity i ON i.application_group_rid = g.rid AND i.is_user_store_identity WHERE TRUE";

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
    let mut groups = Sql::new(GROUPS).push(&format!(
        " AND g.id IN (SELECT r.principal_id FROM role_assignment r WHERE r.principal_type = 'PlatformGroup' AND {condition})"
    ));
    members(tx, &mut groups, list)
}

/// Adds the members of the groups of user stores that a statement selects, at any depth.
fn members(tx: &mut Tx<'_>, groups: &mut Sql, list: &mut PeopleList) -> Result<(), StoreError> {
    let mut by_store: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    tx.query(&groups.text, &groups.parameters, |row| {
        if let Ok(group) = Uuid::try_parse(row.text(1)?) {
            by_store.entry(row.id(0)?).or_default().push(group);
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

/// The credentials of these people set by others, in all user stores.
fn facts(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<SetCredential>, StoreError> {
    let mut by_store: HashMap<i64, HashMap<Uuid, StoreUser>> = HashMap::new();
    for user in users_of(tx, people)? {
        by_store.entry(user.store).or_default().insert(user.id, user);
    }
    let mut facts = Vec::new();
    for (store, users) in by_store {
        let ids: Vec<Uuid> = users.keys().copied().collect();
        for chunk in ids.chunks(LIST) {
            of_store(tx, store, (chunk, &users), &mut facts)?;
        }
    }
    let position = |credential_set: &SetCredential| {
        people.iter().position(|person| *person == credential_set.user.person)
    };
    facts.sort_by_key(|credential_set| {
        (position(credential_set), credential_set.kind, credential_set.credential)
    });
    Ok(facts)
}

/// The kinds of credentials with their queries: the id of the credential, the setter, and the time.
const KINDS: [(CredentialKind, &str); 4] = [
    (
        CredentialKind::Password,
        "SELECT u.id, NULL, p.set_by, p.changed_on FROM user_account u JOIN user_password p ON p.user_rid = u.rid \
         WHERE p.set_by IS NOT NULL",
    ),
    (
        CredentialKind::Address,
        "SELECT u.id, NULL, u.address_set_by, NULL FROM user_account u WHERE u.address_set_by IS NOT NULL",
    ),
    (
        CredentialKind::Passkey,
        "SELECT u.id, c.id, c.set_by, c.created_on FROM user_account u JOIN passkey_credential c ON c.user_rid = u.rid \
         WHERE c.set_by IS NOT NULL",
    ),
    (
        CredentialKind::Contact,
        "SELECT u.id, c.id, c.set_by, c.created_on FROM user_account u JOIN security_contact c ON c.user_rid = u.rid \
         WHERE c.set_by IS NOT NULL",
    ),
];

/// The credentials of users of a store set by others. Sends all queries together.
fn of_store(
    tx: &mut Tx<'_>,
    store: i64,
    (ids, users): (&[Uuid], &HashMap<Uuid, StoreUser>),
    facts: &mut Vec<SetCredential>,
) -> Result<(), StoreError> {
    let statements = KINDS.map(|(_, text)| {
        let mut sql = Sql::new(text).push(" AND u.quarantined_on IS NULL AND u.store = ").bind(store);
        sql.add(" AND u.id IN ");
        sql.add_list(ids.iter().copied().map(Value::Id));
        sql
    });
    let statements = statements.each_ref().map(|sql| (sql.text.as_str(), sql.parameters.as_slice()));
    tx.query_all(&statements, &mut |index, row| {
        let (Some((kind, _)), Some(user)) = (KINDS.get(index), users.get(&row.id(0)?)) else { return Ok(()) };
        let (credential, set_by) = (row.optional_id(1)?, row.id(2)?);
        let set_on = if row.is_null(3)? { None } else { Some(Timestamp(row.int(3)?)) };
        facts.push(SetCredential { user: user.clone(), kind: *kind, credential, set_by, set_on });
        Ok(())
    })
}
