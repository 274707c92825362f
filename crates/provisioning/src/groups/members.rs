//! The members of a group: told apart by their ids, changed without reading the others, written in pieces.

use std::collections::BTreeSet;

use chancery_record::Value;
use chancery_resource::{Call, Problem, Relation, Sql, StoreError, StoredRow, Tx, relink};
use chancery_scim::{Home, Members, Refusal, ScimType, Selection};
use chancery_userstore::group::Group;
use serde_json::{Value as Serde, json};
use uuid::Uuid;

use crate::{
    form::{Form, Operations},
    reach::{add_reach, visible},
    shown::base_of,
};

/// Of more members than these a removal of all needs `If-Match`.
const MANY: usize = 1000;
/// Members read at a time.
const PIECE: usize = 4096;

/// The types of members.
const TYPES: [&str; 2] = ["User", "Group"];

/// A set of members: its name, the type of what is in it, and what that is.
struct Set {
    relation: &'static Relation,
    of_type: &'static str,
    members: Form,
}

fn sets(form: Form) -> Vec<Set> {
    let [users, groups] = Operations::at(form.home);
    let set = |relation: Relation, of_type, members| {
        form.shape.relation(relation.name).map(|relation| Set { relation, of_type, members })
    };
    let [user, group] = TYPES;
    [set(Group::MEMBER_USERS, user, users.form), set(Group::MEMBER_GROUPS, group, groups.form)]
        .into_iter()
        .flatten()
        .collect()
}

/// How many members a group has, counted up to a bound.
pub fn count(tx: &mut Tx<'_>, form: Form, row: &StoredRow, most: usize) -> Result<usize, StoreError> {
    let mut all = 0;
    for set in sets(form) {
        let Relation { table, own, .. } = set.relation;
        let text =
            format!("SELECT count(*) FROM (SELECT 1 FROM {table} m WHERE m.{own} = ?1 LIMIT {most}) n");
        let count = tx.one(&text, &[Value::Int(row.rid)], |row| row.int(0))?.unwrap_or(0);
        all += usize::try_from(count).unwrap_or(0);
    }
    Ok(all)
}

/// A removal of all members, without saying of whom, may be a value array that got lost: of many it needs `If-Match`.
pub fn guard_emptying(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    members: &Members,
) -> Result<(), Problem> {
    if !members.emptied || call.request.preconditions.if_match.is_some() {
        return Ok(());
    }
    let there = count(tx, form, row, 1_000_000)?;
    if there <= MANY {
        return Ok(());
    }
    let detail = format!(
        "This would remove all {there} members. Name those to remove; if you mean all, send If-Match with the group's version."
    );
    Err(Refusal::wrong(ScimType::InvalidValue, detail).into())
}

/// Changes the members; whether there was anything to change.
///
/// # Errors
/// A member that the directory does not see, or is of another type than was said; a circle.
pub fn change(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    members: &Members,
) -> Result<bool, Problem> {
    let sets = sets(form);
    let mut unknown: BTreeSet<&str> = members.added.keys().map(String::as_str).collect();
    let mut changed = false;
    let mut plans = Vec::with_capacity(sets.len());
    for set in &sets {
        let asked: BTreeSet<Uuid> = unknown.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect();
        // who is a member is known: only who is new is looked for, and only who is not said any more goes
        let there: BTreeSet<Uuid> =
            if members.replaced { all(call, tx, set, row)?.into_iter().collect() } else { BTreeSet::new() };
        let new: Vec<Uuid> = asked.difference(&there).copied().collect();
        let added = visible(&call.context, tx, set.members, &new)?;
        for id in added.iter().chain(asked.intersection(&there)) {
            let id = id.to_string();
            let said = members.added.get(&id).and_then(Option::as_deref);
            let is_said = |of_type: &str| said.is_some_and(|said| said.eq_ignore_ascii_case(of_type));
            // what is the name of no type says nothing; all types have names at each home
            if TYPES.iter().any(|of_type| *of_type != set.of_type && is_said(of_type)) {
                let detail = format!("{id} is a {}, not what type says", set.of_type);
                return Err(Refusal::wrong(ScimType::InvalidValue, detail).into());
            }
            unknown.remove(id.as_str());
        }
        let removed = if members.replaced {
            there.difference(&asked).copied().collect()
        } else {
            let named: Vec<Uuid> = members.removed.keys().filter_map(|id| Uuid::try_parse(id).ok()).collect();
            visible(&call.context, tx, set.members, &named)?
        };
        plans.push((added, removed));
    }
    if let Some(id) = unknown.first() {
        let id: String = id.chars().take(100).collect();
        let detail = format!("{} of the members are not here: {id:?} names nobody", unknown.len());
        return Err(Refusal::wrong(ScimType::InvalidValue, detail).into());
    }
    for (set, (added, removed)) in sets.iter().zip(plans) {
        changed |= relink(&call.context, tx, (form.shape, set.relation), row, (&added, &removed))?;
    }
    Ok(changed)
}

/// The statement for members that the directory sees, behind a row number.
fn select(call: &Call, set: &Set, row: &StoredRow, columns: &str, after: i64) -> Sql {
    let Relation { table, own, other, target, .. } = set.relation;
    let mut sql = Sql::new(format!(
        "SELECT m.{other}, o.id{columns} FROM {table} m JOIN {} o ON o.rid = m.{other} WHERE m.{own} = ",
        target.table
    ));
    sql.add_bound(row.rid);
    sql.add(&format!(" AND m.{other} > "));
    sql.add_bound(after);
    if set.members.is_of_users() {
        let hidden = if set.members.home == Home::Store { "quarantined_on" } else { "hidden_on" };
        sql.add(&format!(" AND o.{hidden} IS NULL"));
    }
    add_reach(&mut sql, set.members, &call.context, "o");
    sql.add(&format!(" ORDER BY m.{other} LIMIT {PIECE}"));
    sql
}

/// All members of a set.
fn all(call: &Call, tx: &mut Tx<'_>, set: &Set, row: &StoredRow) -> Result<Vec<Uuid>, StoreError> {
    let (mut members, mut after) = (Vec::new(), 0);
    loop {
        let before = members.len();
        let sql = select(call, set, row, "", after);
        tx.query(&sql.text, &sql.parameters, |row| {
            after = row.int(0)?;
            members.push(row.id(1)?);
            Ok(())
        })?;
        if members.len() - before < PIECE {
            return Ok(members);
        }
    }
}

/// Writes the members, if there are any, as a member of an object that has others.
pub fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    selection: &Selection,
) -> Result<(), Problem> {
    let (base, mut is_first) = (base_of(call), true);
    for set in sets(form) {
        let mut after = 0;
        loop {
            let mut found = Vec::new();
            let sql = select(call, &set, row, name_of(&set), after);
            tx.query(&sql.text, &sql.parameters, |row| {
                after = row.int(0)?;
                let name = if row.is_null(2)? { String::new() } else { row.text(2)?.to_owned() };
                found.push((row.id(1)?, name));
                Ok(())
            })?;
            for (id, name) in &found {
                let endpoint = set.members.of.endpoint;
                let member = json!({ "value": id.to_string(), "$ref": format!("{base}{endpoint}/{id}"),
                    "type": set.of_type, "display": name });
                let mut whole = chancery_scim::Resource::from_iter([("members".to_owned(), json!([member]))]);
                selection.apply(&mut whole);
                let shown = whole.get("members").and_then(|members| members.get(0));
                let text = shown.unwrap_or(&Serde::Null).to_string();
                let before: &[u8] = if is_first { b",\"members\":[" } else { b"," };
                is_first = false;
                call.answer.bytes.extend_from_slice(before);
                call.answer.bytes.extend_from_slice(text.as_bytes());
            }
            call.answer.flush_if_large()?;
            if found.len() < PIECE {
                break;
            }
        }
    }
    if !is_first {
        call.answer.bytes.push(b']');
    }
    Ok(())
}

/// The column by which people know a member.
fn name_of(set: &Set) -> &'static str {
    match (set.members.home, set.members.is_of_users()) {
        (Home::Store, true) => ", o.login_name",
        (Home::Provider, true) => ", o.user_name",
        (_, false) => ", o.name",
    }
}
