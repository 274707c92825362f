//! The members of a group: identified by their ids, changed without reading the others, written in chunks.

use std::collections::BTreeSet;

use chancery_record::Value;
use chancery_resource::{Call, Problem, Relation, Sql, StoreError, StoredRow, Tx, relink, selectable};
use chancery_scim::{Members, ScimError, ScimType, Selection, Target};
use chancery_userstore::group::Group;
use serde_json::{Value as Serde, json};
use uuid::Uuid;

use crate::{
    form::Form,
    reach::{add_reach, visible},
    render::base_of,
};

/// A removal of all of more members than these needs `If-Match`.
const MANY: usize = 1000;
/// Members read per query.
const CHUNK: usize = 4096;

/// The types of members.
const TYPES: [&str; 2] = ["User", "Group"];

/// A relation of members: its name, their type and their form.
struct MemberRelation {
    relation: &'static Relation,
    of_type: &'static str,
    members: Form,
}

fn sets(form: Form) -> Vec<MemberRelation> {
    let [users, groups] = Form::at(form.target);
    let relation = |relation: Relation, of_type, members| {
        form.shape.relation(relation.name).map(|relation| MemberRelation { relation, of_type, members })
    };
    let [user, group] = TYPES;
    [relation(Group::MEMBER_USERS, user, users), relation(Group::MEMBER_GROUPS, group, groups)]
        .into_iter()
        .flatten()
        .collect()
}

/// The number of members of a group, counted up to `most`.
pub fn count(tx: &mut Tx<'_>, form: Form, row: &StoredRow, most: usize) -> Result<usize, StoreError> {
    let mut all = 0;
    for relation in sets(form) {
        let Relation { table, own, .. } = relation.relation;
        let text =
            format!("SELECT count(*) FROM (SELECT 1 FROM {table} m WHERE m.{own} = ?1 LIMIT {most}) n");
        let count = tx.one(&text, &[Value::Int(row.rid)], |row| row.int(0))?.unwrap_or(0);
        all += usize::try_from(count).unwrap_or(0);
    }
    Ok(all)
}

/// Rejects the removal of many members without `If-Match`: the value array may have been lost.
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
    let count = count(tx, form, row, 1_000_000)?;
    if count <= MANY {
        return Ok(());
    }
    let detail = format!(
        "This would remove all {count} members. Name those to remove; if you mean all, send If-Match with the group's version."
    );
    Err(ScimError::new(ScimType::InvalidValue, detail).into())
}

/// Changes the members; whether anything changed.
///
/// # Errors
/// A member out of the directory's reach, or of another type than given; a cycle.
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
    for relation in &sets {
        let requested: BTreeSet<Uuid> = unknown.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect();
        // existing members are known: only new ones are looked up, and only members that are no longer listed
        // are removed
        let current: BTreeSet<Uuid> = if members.replaced {
            all(call, tx, relation, row)?.into_iter().collect()
        } else {
            BTreeSet::new()
        };
        let new: Vec<Uuid> = requested.difference(&current).copied().collect();
        let added = visible(&call.context, tx, relation.members, &new)?;
        for id in added.iter().chain(requested.intersection(&current)) {
            let id = id.to_string();
            let given_type = members.added.get(&id).and_then(Option::as_deref);
            let is_given_as =
                |of_type: &str| given_type.is_some_and(|given_type| given_type.eq_ignore_ascii_case(of_type));
            // an unknown type is ignored; all types have names at each target
            if TYPES.iter().any(|of_type| *of_type != relation.of_type && is_given_as(of_type)) {
                let detail = format!("{id} is a {}, not what type says", relation.of_type);
                return Err(ScimError::new(ScimType::InvalidValue, detail).into());
            }
            unknown.remove(id.as_str());
        }
        let removed = if members.replaced {
            current.difference(&requested).copied().collect()
        } else {
            let listed: Vec<Uuid> =
                members.removed.keys().filter_map(|id| Uuid::try_parse(id).ok()).collect();
            visible(&call.context, tx, relation.members, &listed)?
        };
        plans.push((added, removed));
    }
    if let Some(id) = unknown.first() {
        let id: String = id.chars().take(100).collect();
        let detail = format!("{} of the members are not here: {id:?} names nobody", unknown.len());
        return Err(ScimError::new(ScimType::InvalidValue, detail).into());
    }
    for (relation, (added, removed)) in sets.iter().zip(plans) {
        changed |= relink(&call.context, tx, form.shape, relation.relation, row, &added, &removed)?;
    }
    Ok(changed)
}

selectable! {
    /// A member of a set.
    struct Member<'r>(name) {
        rid: i64 = "o.rid",
        id: Uuid = "o.id",
        name: Option<&'r str> = "o.{name}",
    }
}

/// The statement for members within the directory's reach, after a row number.
fn select(call: &Call, relation: &MemberRelation, row: &StoredRow, after: i64) -> Sql {
    let Relation { table, own, other, target, .. } = relation.relation;
    let mut sql = Sql::new(format!(
        "SELECT {} FROM {table} m JOIN {} o ON o.rid = m.{other} WHERE m.{own} = ",
        Member::columns(name_of(relation)),
        target.table
    ));
    sql.add_bound(row.rid);
    sql.add(&format!(" AND m.{other} > "));
    sql.add_bound(after);
    if relation.members.is_of_users() {
        let hidden = if relation.members.target == Target::Store { "quarantined_on" } else { "hidden_on" };
        sql.add(&format!(" AND o.{hidden} IS NULL"));
    }
    add_reach(&mut sql, relation.members, &call.context, "o");
    sql.add(&format!(" ORDER BY m.{other} LIMIT {CHUNK}"));
    sql
}

/// All members of a set.
fn all(
    call: &Call,
    tx: &mut Tx<'_>,
    relation: &MemberRelation,
    row: &StoredRow,
) -> Result<Vec<Uuid>, StoreError> {
    let (mut members, mut after) = (Vec::new(), 0);
    loop {
        let before = members.len();
        let sql = select(call, relation, row, after);
        tx.query(&sql.text, &sql.parameters, |row| {
            let member = Member::read(row)?;
            after = member.rid;
            members.push(member.id);
            Ok(())
        })?;
        if members.len() - before < CHUNK {
            return Ok(members);
        }
    }
}

/// Appends the member `members`, if there are any, to an object that has others.
pub fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    row: &StoredRow,
    selection: &Selection,
) -> Result<(), Problem> {
    let (base, mut is_first) = (base_of(call), true);
    for relation in sets(form) {
        let mut after = 0;
        loop {
            let mut chunk = Vec::new();
            let sql = select(call, &relation, row, after);
            tx.query(&sql.text, &sql.parameters, |row| {
                let Member { rid, id, name } = Member::read(row)?;
                after = rid;
                chunk.push((id, name.unwrap_or_default().to_owned()));
                Ok(())
            })?;
            for (id, name) in &chunk {
                let endpoint = relation.members.of.endpoint;
                let member = json!({ "value": id.to_string(), "$ref": format!("{base}{endpoint}/{id}"),
                    "type": relation.of_type, "display": name });
                let mut whole = chancery_scim::Resource::from_iter([("members".to_owned(), json!([member]))]);
                selection.apply(&mut whole);
                let rendered = whole.get("members").and_then(|members| members.get(0));
                let text = rendered.unwrap_or(&Serde::Null).to_string();
                let before: &[u8] = if is_first { b",\"members\":[" } else { b"," };
                is_first = false;
                call.answer.bytes.extend_from_slice(before);
                call.answer.bytes.extend_from_slice(text.as_bytes());
            }
            call.answer.flush_if_large()?;
            if chunk.len() < CHUNK {
                break;
            }
        }
    }
    if !is_first {
        call.answer.bytes.push(b']');
    }
    Ok(())
}

/// The column of a member's display name.
fn name_of(relation: &MemberRelation) -> &'static str {
    match (relation.members.target, relation.members.is_of_users()) {
        (Target::Store, true) => "login_name",
        (Target::Provider, true) => "user_name",
        (_, false) => "name",
    }
}
