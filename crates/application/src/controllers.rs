//! Controllers: actors who created a person, a client app or a token of a directory, or gave it a credential, an identity, a role
//! or a membership that carries one. They are read from the audit trail, and for client apps from the recorded controllers.

use std::collections::HashMap;

use chancery_record::{Timestamp, Value};
use chancery_resource::{LIST, Problem, Sql, StoreError, Tx, selectable, settings::ProviderOption};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::store_user::{StoreUser, users_of};

/// The maximum number of audit entries that are read for one item, the newest first.
const MAX_ENTRIES: usize = 1_000;
/// The maximum number of ancestor groups of a user.
const MAX_GROUPS: usize = 1_000;
/// The groups that a user of a store is in, at any depth.
const ABOVE: &str = "WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM user_account s \
    JOIN group_member m ON m.user_rid = s.rid WHERE s.store = ?1 AND s.id = ?2 \
    UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid)";

/// A controller.
pub struct Controller {
    /// The actor.
    pub actor: Uuid,
    /// The time of its action, if known.
    pub acted_on: Option<Timestamp>,
}

/// The direct controllers of these principals. Actions of a principal on itself are left out.
pub fn controllers_of(tx: &mut Tx<'_>, principals: &[Uuid]) -> Result<Vec<Controller>, Problem> {
    let mut controllers = Vec::new();
    for chunk in principals.chunks(LIST) {
        of_apps(tx, chunk, &mut controllers)?;
        of_tokens(tx, chunk, &mut controllers)?;
        of_assignments(tx, chunk, &mut controllers)?;
        of_replacements(tx, chunk, &mut controllers)?;
        let users = users_of(tx, chunk)?;
        for user in &users {
            of_user(tx, user, &mut controllers)?;
        }
        controllers.retain(|controller| !users.iter().any(|user| user.id == controller.actor));
    }
    controllers.retain(|controller| !principals.contains(&controller.actor));
    Ok(controllers)
}

/// The statement that ends with a list of these ids.
fn select_in(begin: &str, ids: &[Uuid]) -> Sql {
    let mut sql = Sql::new(begin);
    sql.add_list(ids.iter().copied().map(Value::Id));
    sql
}

selectable! {
    /// A recorded controller of a client app.
    struct ClientAppController from "FROM client_app_controller WHERE client_app_id IN " {
        actor: Uuid = "actor_id",
        noted_on: Option<Timestamp> = "noted_on",
    }
}

fn of_apps(tx: &mut Tx<'_>, apps: &[Uuid], controllers: &mut Vec<Controller>) -> Result<(), StoreError> {
    let sql = select_in(ClientAppController::SELECT, apps);
    tx.query(&sql.text, &sql.parameters, |row| {
        let ClientAppController { actor, noted_on } = ClientAppController::read(row)?;
        controllers.push(Controller { actor, acted_on: noted_on });
        Ok(())
    })
}

selectable! {
    /// A token of a directory.
    struct DirectoryToken from "FROM scim_token WHERE id IN " {
        store: i64 = "store",
        id: Uuid = "id",
    }
}

fn of_tokens(tx: &mut Tx<'_>, tokens: &[Uuid], controllers: &mut Vec<Controller>) -> Result<(), StoreError> {
    let sql = select_in(DirectoryToken::SELECT, tokens);
    let mut found = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        found.push(DirectoryToken::read(row)?);
        Ok(())
    })?;
    for token in found {
        entries(tx, token.store, "ScimToken", &[token.id], true, controllers)?;
    }
    Ok(())
}

/// The actors who created or changed a token of a directory of this store, even a deleted one; empty if it is no such token.
pub fn controllers_of_token(tx: &mut Tx<'_>, store: i64, token: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let mut controllers = Vec::new();
    entries(tx, store, "ScimToken", &[token], true, &mut controllers)?;
    // the token itself is the actor when it is stopped
    Ok(controllers.into_iter().map(|controller| controller.actor).filter(|actor| *actor != token).collect())
}

selectable! {
    /// An audit entry with the value that an option was set to.
    struct OptionEntry<'r> from "FROM audit_entry WHERE store = 0 AND primary_key = ?1 AND area = 'Option' \
        AND actor IS NOT NULL AND current_content IS NOT NULL ORDER BY rid DESC" {
        actor: &'r str = "actor",
        content: &'r str = "current_content",
    }
}

/// The actors who created this token of the directory of an external instance, even a replaced one, by the audit trail of the option
/// that has its id; empty if they are unknown. Of an option with more entries than are read, an unknown actor counts, too.
pub fn controllers_of_instance_token(
    tx: &mut Tx<'_>,
    instance: Uuid,
    token: Uuid,
) -> Result<Vec<Uuid>, StoreError> {
    let name = ProviderOption::SCIM_TOKEN_ID.name();
    let option = Sql::new("SELECT id FROM option_value WHERE apply_to_idp_instance_id = ").bind(instance);
    let (mut controllers, mut count) = (Vec::new(), 0);
    for option in ids(tx, &option.push(" AND name = ").bind(name))? {
        let text = format!("{} LIMIT {MAX_ENTRIES}", OptionEntry::SELECT);
        tx.query(&text, &[option.to_string().into()], |row| {
            count += 1;
            let entry = OptionEntry::read(row)?;
            let content = serde_json::from_str::<Json>(entry.content).unwrap_or_default();
            if content.get("value").and_then(Json::as_str).and_then(|value| Uuid::try_parse(value).ok())
                == Some(token)
            {
                controllers.extend(actors(entry.actor));
            }
            Ok(())
        })?;
    }
    if count >= MAX_ENTRIES {
        controllers.push(Uuid::nil());
    }
    controllers.sort_unstable();
    controllers.dedup();
    Ok(controllers)
}

/// The direct role assignments of people.
fn of_assignments(
    tx: &mut Tx<'_>,
    people: &[Uuid],
    controllers: &mut Vec<Controller>,
) -> Result<(), StoreError> {
    let sql = select_in("SELECT id FROM role_assignment WHERE principal_id IN ", people);
    let assignments = ids(tx, &sql)?;
    entries(tx, 0, "RoleAssignment", &assignments, true, controllers)
}

selectable! {
    /// An executed replacement of an identity, with one of those who approved it.
    struct ExecutedReplacement from "FROM identity_replacement r \
        LEFT JOIN identity_replacement_approval a ON a.replacement_rid = r.rid \
        WHERE r.executed_on IS NOT NULL AND r.platform_user_id IN " {
        requested_by: Option<Uuid> = "r.requested_by_actor_id",
        approved_by: Option<Uuid> = "a.actor_id",
        executed_on: Timestamp = "r.executed_on",
    }
}

/// The replacements of identities.
fn of_replacements(
    tx: &mut Tx<'_>,
    people: &[Uuid],
    controllers: &mut Vec<Controller>,
) -> Result<(), StoreError> {
    let sql = select_in(ExecutedReplacement::SELECT, people);
    tx.query(&sql.text, &sql.parameters, |row| {
        let ExecutedReplacement { requested_by, approved_by, executed_on } = ExecutedReplacement::read(row)?;
        let actors = [requested_by, approved_by].into_iter().flatten();
        controllers.extend(actors.map(|actor| Controller { actor, acted_on: Some(executed_on) }));
        Ok(())
    })
}

selectable! {
    /// A temporary access pass, and who created it.
    struct AccessPass from "FROM temporary_access_pass WHERE store = ?1 AND user_id = ?2 \
        AND created_by_actor_id IS NOT NULL ORDER BY rid DESC LIMIT 1000" {
        created_by: Uuid = "created_by_actor_id",
        created_on: Timestamp = "created_on",
    }
}

fn of_user(tx: &mut Tx<'_>, user: &StoreUser, controllers: &mut Vec<Controller>) -> Result<(), StoreError> {
    // only the person's key decrypts whether a change was of a name or of a password: each counts
    entries(tx, user.store, "User", &[user.id], true, controllers)?;
    tx.query(AccessPass::SELECT, &[user.store.into(), user.id.into()], |row| {
        let AccessPass { created_by, created_on } = AccessPass::read(row)?;
        controllers.push(Controller { actor: created_by, acted_on: Some(created_on) });
        Ok(())
    })?;
    let passkeys = Sql::new(
        "SELECT p.id FROM user_account u JOIN passkey_credential p ON p.user_rid = u.rid WHERE u.store = ",
    );
    let passkeys = ids(tx, &passkeys.bind(user.store).push(" AND u.id = ").bind(user.id))?;
    entries(tx, user.store, "PasskeyCredential", &passkeys, false, controllers)?;
    of_memberships(tx, user, controllers)
}

selectable! {
    /// An assignment of a role to a group of a user store.
    struct GroupAssignment<'r> from "FROM application_group_identity i \
        JOIN application_group p ON p.rid = i.application_group_rid \
        JOIN role_assignment r ON r.principal_id = p.id WHERE i.idp_instance_id = " {
        assignment: Uuid = "r.id",
        /// The id of the group.
        subject: &'r str = "i.subject",
    }
}

selectable! {
    /// An audit entry of a change of a group.
    struct GroupEntry<'r> from "FROM audit_entry WHERE store = ?1 AND primary_key = ?2 \
        AND area = 'Group' AND action = 'Modified' AND actor IS NOT NULL AND current_content IS NOT NULL \
        ORDER BY rid DESC" {
        actor: &'r str = "actor",
        timestamp: Timestamp = "timestamp",
        content: &'r str = "current_content",
    }
}

/// The memberships that carry a role, and the roles that they carry.
fn of_memberships(
    tx: &mut Tx<'_>,
    user: &StoreUser,
    controllers: &mut Vec<Controller>,
) -> Result<(), StoreError> {
    let above =
        format!("{ABOVE} SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid LIMIT {MAX_GROUPS}");
    let groups = ids(tx, &Sql { text: above, parameters: vec![user.store.into(), user.id.into()] })?;
    let (mut assignments, mut granted) = (Vec::new(), Vec::new());
    for chunk in groups.chunks(LIST) {
        let mut sql = Sql::new(GroupAssignment::SELECT).bind(user.instance).push(" AND i.subject IN ");
        sql.add_list(chunk.iter().map(|group| group.to_string().into()));
        tx.query(&sql.text, &sql.parameters, |row| {
            let GroupAssignment { assignment, subject } = GroupAssignment::read(row)?;
            assignments.push(assignment);
            granted.extend(Uuid::try_parse(subject));
            Ok(())
        })?;
    }
    if assignments.is_empty() {
        return Ok(());
    }
    entries(tx, 0, "RoleAssignment", &assignments, true, controllers)?;
    let groups = carrying(tx, user, &granted)?;
    let linked: Vec<String> = groups.iter().chain([&user.id]).map(ToString::to_string).collect();
    for group in &groups {
        let text = format!("{} LIMIT {MAX_ENTRIES}", GroupEntry::SELECT);
        let own = group.to_string();
        tx.query(&text, &[user.store.into(), own.as_str().into()], |row| {
            let GroupEntry { actor, timestamp, content } = GroupEntry::read(row)?;
            if linked.iter().any(|id| *id != own && content.contains(id.as_str())) {
                let acted_on = Some(timestamp);
                controllers.extend(actors(actor).map(|actor| Controller { actor, acted_on }));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The groups through which a user is a member of these groups with roles.
fn carrying(tx: &mut Tx<'_>, user: &StoreUser, granted: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    let mut sql = Sql::new(format!(
        "{ABOVE}, carrying (rid) AS (SELECT g.rid FROM user_group g WHERE g.store = ?1 AND g.id IN "
    ));
    sql.parameters = vec![user.store.into(), user.id.into()];
    sql.add_list(granted.iter().copied().map(Value::Id));
    sql.add(
        " UNION SELECT e.child_rid FROM carrying c JOIN group_edge e ON e.parent_rid = c.rid \
         WHERE e.child_rid IN (SELECT a.rid FROM above a)) \
         SELECT g.id FROM carrying c JOIN user_group g ON g.rid = c.rid",
    );
    ids(tx, &sql)
}

selectable! {
    /// An audit entry.
    struct Entry<'r> from "FROM audit_entry WHERE store = ?1 AND primary_key = ?2 AND area = ?3 \
        AND actor IS NOT NULL ORDER BY rid DESC" {
        actor: &'r str = "actor",
        timestamp: Timestamp = "timestamp",
        action: &'r str = "action",
    }
}

/// The actors who created these items, by the audit trail, and with `with_changes` also those who changed them.
fn entries(
    tx: &mut Tx<'_>,
    store: i64,
    area: &str,
    items: &[Uuid],
    with_changes: bool,
    controllers: &mut Vec<Controller>,
) -> Result<(), StoreError> {
    let mut newest: HashMap<Uuid, Timestamp> = HashMap::new();
    for item in items {
        let text = format!("{} LIMIT {MAX_ENTRIES}", Entry::SELECT);
        tx.query(&text, &[store.into(), item.to_string().into(), area.into()], |row| {
            let Entry { actor, timestamp, action } = Entry::read(row)?;
            if action == "Added" || (with_changes && action == "Modified") {
                for actor in actors(actor) {
                    let newest = newest.entry(actor).or_insert(timestamp);
                    *newest = (*newest).max(timestamp);
                }
            }
            Ok(())
        })?;
    }
    controllers.extend(newest.into_iter().map(|(actor, when)| Controller { actor, acted_on: Some(when) }));
    Ok(())
}

/// The actors of an audit entry: the actor, and the actor of the exchanged token.
pub fn actors(text: &str) -> impl Iterator<Item = Uuid> {
    text.split('|').filter_map(|actor| Uuid::try_parse(actor).ok())
}

fn ids(tx: &mut Tx<'_>, sql: &Sql) -> Result<Vec<Uuid>, StoreError> {
    let mut found = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        found.push(row.id(0)?);
        Ok(())
    })?;
    Ok(found)
}
