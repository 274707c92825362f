//! Who made a person, a client app or a token of a directory, or gave it a credential, an identity, a role or a membership that
//! carries one: by the audit trail, and for client apps by what is noted of their controllers.

use std::collections::HashMap;

use chancery_record::{Timestamp, Value};
use chancery_resource::{LIST, Problem, Sql, StoreError, Tx};
use uuid::Uuid;

use crate::store_user::{StoreUser, users_of};

/// The most entries of the trail of one item that are looked at, the newest first.
const MOST_ENTRIES: usize = 1_000;
/// The most groups above a user.
const MOST_GROUPS: usize = 1_000;
/// The groups that a user of a store is in, at any depth.
const ABOVE: &str = "WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM user_account s \
    JOIN group_member m ON m.user_rid = s.rid WHERE s.store = ?1 AND s.id = ?2 \
    UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid)";

/// Somebody who made something, and when, where that is known.
pub type Maker = (Uuid, Option<Timestamp>);

/// Who made these, directly. What one did to oneself is left out.
///
/// # Errors
/// The store's.
pub fn makers_of(tx: &mut Tx<'_>, made: &[Uuid]) -> Result<Vec<Maker>, Problem> {
    let mut makers = Vec::new();
    for chunk in made.chunks(LIST) {
        of_apps(tx, chunk, &mut makers)?;
        of_tokens(tx, chunk, &mut makers)?;
        of_assignments(tx, chunk, &mut makers)?;
        of_replacements(tx, chunk, &mut makers)?;
        let users = users_of(tx, chunk)?;
        for user in &users {
            of_user(tx, user, &mut makers)?;
        }
        makers.retain(|(maker, _)| !users.iter().any(|user| user.id == *maker));
    }
    makers.retain(|(maker, _)| !made.contains(maker));
    Ok(makers)
}

fn listing(begin: &str, ids: &[Uuid]) -> Sql {
    let mut sql = Sql::new(begin);
    sql.add_list(ids.iter().copied().map(Value::Id));
    sql
}

fn of_apps(tx: &mut Tx<'_>, apps: &[Uuid], makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    let sql = listing("SELECT actor_id, noted_on FROM client_app_controller WHERE client_app_id IN ", apps);
    tx.query(&sql.text, &sql.parameters, |row| {
        let noted = if row.is_null(1)? { None } else { Some(Timestamp(row.int(1)?)) };
        makers.push((row.id(0)?, noted));
        Ok(())
    })
}

fn of_tokens(tx: &mut Tx<'_>, tokens: &[Uuid], makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    let sql = listing("SELECT store, id FROM scim_token WHERE id IN ", tokens);
    let mut found = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        found.push((row.int(0)?, row.id(1)?));
        Ok(())
    })?;
    for (store, token) in found {
        entries(tx, (store, "ScimToken"), &[token], true, makers)?;
    }
    Ok(())
}

/// Who made a token of a directory of this store, or changed it, also one that is deleted; nobody where it is none.
///
/// # Errors
/// The store's.
pub fn makers_of_token(tx: &mut Tx<'_>, store: i64, token: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let mut makers = Vec::new();
    entries(tx, (store, "ScimToken"), &[token], true, &mut makers)?;
    // that it was stopped the token itself caused
    Ok(makers.into_iter().map(|(maker, _)| maker).filter(|maker| *maker != token).collect())
}

/// The roles that people were assigned themselves.
fn of_assignments(tx: &mut Tx<'_>, people: &[Uuid], makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    let sql = listing("SELECT id FROM role_assignment WHERE principal_id IN ", people);
    let assignments = ids(tx, &sql)?;
    entries(tx, (0, "RoleAssignment"), &assignments, true, makers)
}

/// The identities that took the place of others.
fn of_replacements(tx: &mut Tx<'_>, people: &[Uuid], makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    let sql = listing(
        "SELECT r.requested_by_actor_id, a.actor_id, r.executed_on FROM identity_replacement r \
         LEFT JOIN identity_replacement_approval a ON a.replacement_rid = r.rid \
         WHERE r.executed_on IS NOT NULL AND r.platform_user_id IN ",
        people,
    );
    tx.query(&sql.text, &sql.parameters, |row| {
        let executed = Some(Timestamp(row.int(2)?));
        let actors = [row.optional_id(0)?, row.optional_id(1)?];
        makers.extend(actors.into_iter().flatten().map(|actor| (actor, executed)));
        Ok(())
    })
}

fn of_user(tx: &mut Tx<'_>, user: &StoreUser, makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    // whether a change was of a name or of a password the trail says in what only the person's key opens: each counts
    entries(tx, (user.store, "User"), &[user.id], true, makers)?;
    let passes = "SELECT created_by_actor_id, created_on FROM temporary_access_pass WHERE store = ?1 AND user_id = ?2 \
        AND created_by_actor_id IS NOT NULL ORDER BY rid DESC LIMIT 1000";
    tx.query(passes, &[user.store.into(), user.id.into()], |row| {
        makers.push((row.id(0)?, Some(Timestamp(row.int(1)?))));
        Ok(())
    })?;
    let passkeys = Sql::new(
        "SELECT p.id FROM user_account u JOIN passkey_credential p ON p.user_rid = u.rid WHERE u.store = ",
    );
    let passkeys = ids(tx, &passkeys.bind(user.store).push(" AND u.id = ").bind(user.id))?;
    entries(tx, (user.store, "PasskeyCredential"), &passkeys, false, makers)?;
    of_memberships(tx, user, makers)
}

/// The memberships that carry a role, and the roles that they carry.
fn of_memberships(tx: &mut Tx<'_>, user: &StoreUser, makers: &mut Vec<Maker>) -> Result<(), StoreError> {
    let above =
        format!("{ABOVE} SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid LIMIT {MOST_GROUPS}");
    let groups = ids(tx, &Sql { text: above, parameters: vec![user.store.into(), user.id.into()] })?;
    let (mut assignments, mut granted) = (Vec::new(), Vec::new());
    for chunk in groups.chunks(LIST) {
        let mut sql = Sql::new(
            "SELECT r.id, i.subject FROM application_group_identity i JOIN application_group p ON p.rid = i.application_group_rid \
             JOIN role_assignment r ON r.principal_id = p.id WHERE i.idp_instance_id = ",
        )
        .bind(user.instance)
        .push(" AND i.subject IN ");
        sql.add_list(chunk.iter().map(|group| group.to_string().into()));
        tx.query(&sql.text, &sql.parameters, |row| {
            assignments.push(row.id(0)?);
            granted.extend(Uuid::try_parse(row.text(1)?));
            Ok(())
        })?;
    }
    if assignments.is_empty() {
        return Ok(());
    }
    entries(tx, (0, "RoleAssignment"), &assignments, true, makers)?;
    let groups = carrying(tx, user, &granted)?;
    let linked: Vec<String> = groups.iter().chain([&user.id]).map(ToString::to_string).collect();
    for group in &groups {
        let text = format!(
            "SELECT actor, timestamp, current_content FROM audit_entry WHERE store = ?1 AND primary_key = ?2 \
             AND area = 'Group' AND action = 'Modified' AND actor IS NOT NULL AND current_content IS NOT NULL \
             ORDER BY rid DESC LIMIT {MOST_ENTRIES}"
        );
        let own = group.to_string();
        tx.query(&text, &[user.store.into(), own.as_str().into()], |row| {
            let content = row.text(2)?;
            if linked.iter().any(|id| *id != own && content.contains(id.as_str())) {
                let when = Timestamp(row.int(1)?);
                makers.extend(actors(row.text(0)?).map(|actor| (actor, Some(when))));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The groups by which a user is in these, which were granted roles.
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

/// Who made these items, by the trail, and who changed them, where that counts.
fn entries(
    tx: &mut Tx<'_>,
    (store, area): (i64, &str),
    items: &[Uuid],
    with_changes: bool,
    makers: &mut Vec<Maker>,
) -> Result<(), StoreError> {
    let mut newest: HashMap<Uuid, Timestamp> = HashMap::new();
    for item in items {
        let text = format!(
            "SELECT actor, timestamp, action FROM audit_entry WHERE store = ?1 AND primary_key = ?2 AND area = ?3 \
             AND actor IS NOT NULL ORDER BY rid DESC LIMIT {MOST_ENTRIES}"
        );
        tx.query(&text, &[store.into(), item.to_string().into(), area.into()], |row| {
            if row.text(2)? == "Added" || (with_changes && row.text(2)? == "Modified") {
                let when = Timestamp(row.int(1)?);
                for actor in actors(row.text(0)?) {
                    newest.entry(actor).and_modify(|known| *known = (*known).max(when)).or_insert(when);
                }
            }
            Ok(())
        })?;
    }
    makers.extend(newest.into_iter().map(|(actor, when)| (actor, Some(when))));
    Ok(())
}

/// Those whom an entry names: who acted, and by whose token.
fn actors(text: &str) -> impl Iterator<Item = Uuid> {
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
