//! Relations: a set of other resources, replaced, added to or reduced by their ids.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, Json, Value, pointer};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    Answer, Call, Problem, ProblemKind, Relating, Relation, Scope, Shape, Sql, change,
    emit::Stored,
    family::visible,
    load::{key_of, load},
    pattern::{answer_with, check_if_match},
    sql::LIST,
};

/// The most ids of one call.
pub const MAX_RELATED: usize = 100_000;

pub fn relate(call: &mut Call, tx: &mut Tx<'_>, name: &str, how: Relating) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let relation = shape.relation(name).ok_or_else(|| Problem::not_found(name))?;
    let ids = related_ids(call.body()?)?;
    let key = key_of(call, shape)?;
    let owner = load(call, tx, shape, None, key)?;
    check_if_match(call, tx, shape, &owner)?;
    let at = |place: usize| format!("/relatedIds/{place}");
    match how {
        Relating::Set => {
            let linked = all_linked(tx, &call.scope, relation, owner.rid)?;
            let wanted: HashSet<Uuid> = ids.iter().copied().collect();
            let (places, missing): (Vec<usize>, Vec<Uuid>) =
                ids.iter().copied().enumerate().filter(|(_, id)| !linked.contains_key(id)).unzip();
            let place = |missed: usize| places.get(missed).copied().unwrap_or(missed);
            let added = resolve(call, tx, relation, &missing, &|missed| at(place(missed)))?;
            let mut removed: Vec<(Uuid, i64)> =
                linked.into_iter().filter(|(id, _)| !wanted.contains(id)).collect();
            removed.sort_unstable();
            apply(call, tx, relation, &owner, &added, &removed)?;
        }
        Relating::Add => {
            let known = resolve(call, tx, relation, &ids, &at)?;
            let linked = linked_of(tx, relation, owner.rid, &known)?;
            let added: Vec<_> = known.into_iter().filter(|(_, rid)| !linked.contains(rid)).collect();
            apply(call, tx, relation, &owner, &added, &[])?;
        }
        Relating::Remove => {
            let known = resolve(call, tx, relation, &ids, &at)?;
            let linked = linked_of(tx, relation, owner.rid, &known)?;
            let removed: Vec<_> = known.into_iter().filter(|(_, rid)| linked.contains(rid)).collect();
            apply(call, tx, relation, &owner, &[], &removed)?;
        }
    }
    answer_with(call, tx, shape, &owner)
}

/// Links what a create body lists by ids, `[{"id": ..}]`.
///
/// # Errors
/// Unknown and foreign ids, each with its place.
pub fn relate_new(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    owner: &Stored,
    body: &Json,
    base: &str,
) -> Result<(), Problem> {
    for relation in shape.relations.iter().filter(|relation| relation.at_creation) {
        if let Some(listed) = Listed::read(relation, body, base)? {
            let known = resolve(call, tx, relation, &listed.ids, &|place| listed.at(place))?;
            apply(call, tx, relation, owner, &known, &[])?;
        }
    }
    Ok(())
}

/// A row, what its body says, and where that stands.
pub type Said<'a> = (String, &'a Stored, &'a Json);

/// Makes the sets of rows what their bodies list by ids, where a change may list them. All that is taken
/// out goes first: what moves from one set to another is in neither in between.
///
/// # Errors
/// Unknown and foreign ids, each with its place.
pub fn relate_body(call: &Call, tx: &mut Tx<'_>, shape: &Shape, rows: &[Said<'_>]) -> Result<(), Problem> {
    let mut added = Vec::new();
    for relation in shape.relations.iter().filter(|relation| relation.at_change) {
        for (base, owner, body) in rows {
            let Some(listed) = Listed::read(relation, body, base)? else { continue };
            let linked = all_linked(tx, &call.scope, relation, owner.rid)?;
            let (places, missing): (Vec<usize>, Vec<Uuid>) =
                listed.ids.iter().copied().enumerate().filter(|(_, id)| !linked.contains_key(id)).unzip();
            let place = |missed: usize| listed.at(places.get(missed).copied().unwrap_or(missed));
            let new = resolve(call, tx, relation, &missing, &place)?;
            let wanted: HashSet<Uuid> = listed.ids.iter().copied().collect();
            let mut old: Vec<(Uuid, i64)> =
                linked.into_iter().filter(|(id, _)| !wanted.contains(id)).collect();
            old.sort_unstable();
            unlink(tx, relation, owner, &old)?;
            added.push((relation, *owner, new, old));
        }
    }
    for (relation, owner, new, old) in added {
        link(tx, relation, owner, &new)?;
        tell(call, tx, relation, owner, &new, &old)?;
    }
    Ok(())
}

/// The ids that a body lists for a relation, each once, and where each stands.
struct Listed {
    at: String,
    places: Vec<usize>,
    ids: Vec<Uuid>,
}

impl Listed {
    /// `None` where the body says nothing of the relation.
    fn read(relation: &Relation, body: &Json, base: &str) -> Result<Option<Self>, Problem> {
        let at = pointer(base, relation.name);
        let items = match body.get(relation.name) {
            None | Some(Json::Null) => return Ok(None),
            Some(Json::Array(items)) if items.len() <= MAX_RELATED => items,
            Some(_) => {
                return Err(Problem::wrong_at(&at, "must be an array of at most 100000 objects with an id"));
            }
        };
        let mut ids = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let id = match item.get("id") {
                Some(Json::Text(text)) => Uuid::try_parse(text).ok(),
                _ => None,
            };
            ids.push(id.ok_or_else(|| Problem::wrong_at(format!("{at}/{index}/id"), "must be a UUID"))?);
        }
        let mut seen = HashSet::new();
        let (places, ids) = ids.into_iter().enumerate().filter(|(_, id)| seen.insert(*id)).unzip();
        Ok(Some(Self { at, places, ids }))
    }

    fn at(&self, place: usize) -> String {
        format!("{}/{}/id", self.at, self.places.get(place).copied().unwrap_or(place))
    }
}

/// The ids of a body, in order, each once.
fn related_ids(body: &Json) -> Result<Vec<Uuid>, Problem> {
    let Json::Object(members) = body else {
        return Err(Problem::wrong_at("", format!("must be an object, not {}", body.word())));
    };
    if let Some((name, _)) = members.iter().find(|(name, _)| name != "relatedIds") {
        return Err(Problem::wrong_at(pointer("", name), "is not a member of this body"));
    }
    let array = match body.get("relatedIds") {
        Some(Json::Array(array)) => array,
        Some(other) => {
            let detail = format!("must be an array of UUIDs, not {}", other.word());
            return Err(Problem::wrong_at("/relatedIds", detail));
        }
        None => return Err(Problem::wrong_at("/relatedIds", "is missing")),
    };
    if array.len() > MAX_RELATED {
        let detail = format!("relatedIds takes at most {MAX_RELATED} ids, not {}.", array.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let mut seen = HashSet::with_capacity(array.len());
    let mut ids = Vec::with_capacity(array.len());
    let mut errors = Vec::new();
    for (index, item) in array.iter().enumerate() {
        let id = match item {
            Json::Text(text) => Uuid::try_parse(text).ok(),
            _ => None,
        };
        match id {
            Some(id) if seen.insert(id) => ids.push(id),
            Some(_) => {}
            None => errors.push(FieldError::new(format!("/relatedIds/{index}"), "must be a UUID")),
        }
    }
    if errors.is_empty() { Ok(ids) } else { Err(Problem::wrong(errors)) }
}

/// All visible links of a row: the others' ids and row numbers.
fn all_linked(
    tx: &mut Tx<'_>,
    scope: &Scope,
    relation: &Relation,
    own: i64,
) -> Result<HashMap<Uuid, i64>, Problem> {
    let mut sql = Sql::new(format!(
        "SELECT o.id, o.rid FROM {} m JOIN {} o ON o.rid = m.{} WHERE m.{} = ",
        relation.table, relation.target.table, relation.other, relation.own
    ))
    .bind(own);
    // what the caller does not see stays as it is
    relation.target.add_nested_reach(&mut sql, scope);
    let mut linked = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        linked.insert(row.id(0)?, row.int(1)?);
        Ok(())
    })?;
    Ok(linked)
}

/// Which of these are linked already.
fn linked_of(
    tx: &mut Tx<'_>,
    relation: &Relation,
    own: i64,
    others: &[(Uuid, i64)],
) -> Result<HashSet<i64>, Problem> {
    let mut linked = HashSet::new();
    for chunk in others.chunks(LIST) {
        let text = format!("SELECT {} FROM {} WHERE {} = ", relation.other, relation.table, relation.own);
        let mut sql = Sql::new(text).bind(own).push(" AND ").push(relation.other).push(" IN ");
        sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
        tx.query(&sql.text, &sql.parameters, |row| {
            linked.insert(row.int(0)?);
            Ok(())
        })?;
    }
    Ok(linked)
}

/// The row numbers of these ids, all of which must be in the caller's scope. `at` tells where one
/// stands in the body.
fn resolve(
    call: &Call,
    tx: &mut Tx<'_>,
    relation: &Relation,
    ids: &[Uuid],
    at: &dyn Fn(usize) -> String,
) -> Result<Vec<(Uuid, i64)>, Problem> {
    let known = visible(call, tx, relation.target, ids)?;
    if known.len() == ids.len() {
        return Ok(ids.iter().filter_map(|id| Some((*id, *known.get(id)?))).collect());
    }
    let unknown = ids.iter().enumerate().filter(|(_, id)| !known.contains_key(id));
    let errors =
        unknown.map(|(place, _)| FieldError::new(at(place), format!("names no {}", relation.target.name)));
    Err(Problem::wrong(errors.collect()))
}

/// Writes the links that differ, one audit entry and one event.
fn apply(
    call: &Call,
    tx: &mut Tx<'_>,
    relation: &Relation,
    owner: &Stored,
    added: &[(Uuid, i64)],
    removed: &[(Uuid, i64)],
) -> Result<(), Problem> {
    unlink(tx, relation, owner, removed)?;
    link(tx, relation, owner, added)?;
    tell(call, tx, relation, owner, added, removed)
}

fn unlink(
    tx: &mut Tx<'_>,
    relation: &Relation,
    owner: &Stored,
    removed: &[(Uuid, i64)],
) -> Result<(), Problem> {
    for chunk in removed.chunks(LIST) {
        let text = format!("DELETE FROM {} WHERE {} = ", relation.table, relation.own);
        let mut sql = Sql::new(text).bind(owner.rid).push(" AND ").push(relation.other).push(" IN ");
        sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
        tx.queue(&sql.text, sql.parameters)?;
    }
    Ok(())
}

fn link(tx: &mut Tx<'_>, relation: &Relation, owner: &Stored, added: &[(Uuid, i64)]) -> Result<(), Problem> {
    if let (Some(guard), false) = (relation.guard, added.is_empty()) {
        let others: Vec<i64> = added.iter().map(|(_, rid)| *rid).collect();
        guard(tx, owner.rid, &others)?;
    }
    for chunk in added.chunks(LIST) {
        let (pairs, target) = (relation.table, relation.target.table);
        let mut sql =
            Sql::new(format!("INSERT INTO {pairs} ({}, {}) SELECT CAST(", relation.own, relation.other))
                .bind(owner.rid)
                .push(&format!(" AS BIGINT), t.rid FROM {target} t WHERE t.rid IN "));
        sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
        sql.add(" ON CONFLICT DO NOTHING");
        tx.queue(&sql.text, sql.parameters)?;
    }
    Ok(())
}

fn tell(
    call: &Call,
    tx: &mut Tx<'_>,
    relation: &Relation,
    owner: &Stored,
    added: &[(Uuid, i64)],
    removed: &[(Uuid, i64)],
) -> Result<(), Problem> {
    let ids = |links: &[(Uuid, i64)]| links.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    change::related(call, tx, call.op.shape, relation, owner, &ids(added), &ids(removed))
}
