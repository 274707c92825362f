//! Relations: a set of other resources, replaced, added to or reduced by their ids.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, Json, Value};
use chancery_store::{Tx, raw, selectable};
use uuid::Uuid;

use crate::{
    Answer, Call, Context, LIST, Listed, MAX_RELATED, NewLinks, Problem, ProblemKind, Reach, Relation,
    RelationChange, Scope, Shape, Sql, StoredRow,
    read::answer::answer_with,
    read::load::{key_of, load},
    read::nested::too_many,
    read::precondition::check_if_match,
    read::visible::visible_to,
    write::change,
    write::integrity::{WrittenRow, confine, register_postcondition},
    write::listed_ids::{ListedIds, related_ids},
    write::protect::{Protector, check_all},
};

/// Links that are removed at a time: for more, PostgreSQL would read the whole set.
const LOOKUP_CHUNK: usize = 64;
/// The most links in the sets that one call replaces.
const MAX_REPLACED: usize = 2 * MAX_RELATED;

/// A link: the id and the row number of the linked row.
type Link = (Uuid, i64);

/// Replaces, adds to or reduces a set by the ids of the body.
///
/// # Errors
/// Unknown ids and those outside of the scope, each with its pointer; not found.
pub fn relate(
    call: &mut Call,
    tx: &mut Tx<'_>,
    relation: &Relation,
    how: RelationChange,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let listed = related_ids(call.request.body()?)?;
    let key = key_of(call, shape)?;
    let owner = load(&call.context, tx, shape, None, key)?;
    check_if_match(call, tx, shape, &owner)?;
    let protection = shape.base().writes.protection.filter(|protection| protection.refuses_unchanged_sets);
    let own = protection.zip(shape.id_in(&owner.values)).into_iter().collect();
    check_all(&call.context, tx, std::iter::once((String::new(), own)))?;
    let requested = RequestedSet { owner: &owner, is_all: how == RelationChange::Set, listed };
    let mut all = changes(&call.context, tx, shape, relation, vec![requested])?;
    for change in &mut all {
        if how == RelationChange::Remove {
            std::mem::swap(&mut change.added, &mut change.removed);
        }
        if how != RelationChange::Set {
            change.drop_redundant(tx)?;
        }
    }
    let written = WrittenRow { base: String::new(), is_new: false, values: &owner.values };
    apply(&call.context, tx, shape, &mut all, std::iter::once(written))?;
    answer_with(call, tx, shape, &owner)
}

/// Links a row to others by their ids, on behalf of the server itself; audited, with an event.
///
/// # Errors
/// An id that is unknown within the scope.
pub fn link(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    relation: &Relation,
    owner: &StoredRow,
    others: Vec<Uuid>,
) -> Result<(), Problem> {
    let listed = ListedIds::all(others);
    let mut all = changes(context, tx, shape, relation, vec![RequestedSet { owner, is_all: false, listed }])?;
    let written = WrittenRow { base: String::new(), is_new: false, values: &owner.values };
    apply(context, tx, shape, &mut all, std::iter::once(written))
}

/// Adds links to a row's set, and removes others, as one change; returns whether there was a change. Ids that
/// are unknown within the scope, links that exist already, and missing links to be removed are left out.
///
/// # Errors
/// A new link that the relation's rule refuses.
pub fn relink(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    relation: &Relation,
    owner: &StoredRow,
    added: &[Uuid],
    removed: &[Uuid],
) -> Result<bool, Problem> {
    let listed_ids: Vec<Uuid> = added.iter().chain(removed).copied().collect();
    let known = visible_to(&context.scope, context, tx, relation.target, &listed_ids)?;
    let links = |ids: &[Uuid]| -> Vec<Link> {
        ids.iter().filter_map(|id| known.get(id).map(|rid| (*id, *rid))).collect()
    };
    let (added, removed) = (links(added), links(removed));
    let mut all = [Change { relation, owner, at: String::new(), added, removed, is_unverified: false }];
    for change in &mut all {
        change.drop_redundant(tx)?;
    }
    let written = WrittenRow { base: String::new(), is_new: false, values: &owner.values };
    apply(context, tx, shape, &mut all, std::iter::once(written))?;
    Ok(all.iter().any(|change| !change.is_empty()))
}

/// A row, and the body that may list its sets.
pub struct RelationBody<'a> {
    /// The row.
    pub owner: &'a StoredRow,
    /// Whether it was just created.
    pub is_new: bool,
    /// Its body.
    pub body: &'a Json,
    /// The JSON Pointer of the body.
    pub base: String,
}

/// Replaces the sets of rows by those that their bodies list by ids, where a body may list them. All removals
/// come first, so that a link moving from one set to another is in neither in between. Rows that existed before
/// must be in the caller's scope afterwards.
///
/// # Errors
/// Unknown ids and those outside of the scope, each with its pointer; a conflict, where a row is out of scope
/// now.
pub fn relate_rows(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[RelationBody<'_>],
) -> Result<(), Problem> {
    check_listed_count(shape, rows.iter().map(|row| row.body))?;
    let mut all = Vec::new();
    for relation in shape.relations {
        let listing = |row: &&RelationBody<'_>| {
            if row.is_new { relation.listed.at_creation() } else { relation.listed.at_change() }
        };
        let mut requested = Vec::new();
        for RelationBody { owner, is_new, body, base } in rows.iter().filter(listing) {
            if let Some(listed) = ListedIds::read(relation, body, base)? {
                requested.push(RequestedSet { owner, is_all: !is_new, listed });
            }
        }
        all.extend(changes(context, tx, shape, relation, requested)?);
    }
    let existing = rows.iter().filter(|row| !row.is_new);
    let written =
        existing.map(|row| WrittenRow { base: row.base.clone(), is_new: false, values: &row.owner.values });
    apply(context, tx, shape, &mut all, written)
}

/// Refuses bodies whose sets list more ids together than the limit of one call.
///
/// # Errors
/// Too many, with the bound.
pub fn check_listed_count<'a>(shape: &Shape, bodies: impl Iterator<Item = &'a Json>) -> Result<(), Problem> {
    let listed = |body: &Json, relation: &Relation| match body.get(relation.name) {
        // a longer one is refused by itself
        Some(Json::Array(items)) if relation.listed != Listed::Nowhere && items.len() <= MAX_RELATED => {
            items.len()
        }
        _ => 0,
    };
    let count: usize =
        bodies.map(|body| shape.relations.iter().map(|relation| listed(body, relation)).sum::<usize>()).sum();
    if count <= MAX_RELATED {
        return Ok(());
    }
    let detail =
        format!("The sets of one call list at most {MAX_RELATED} ids, not {count}. Send several calls.");
    Err(Problem::new(ProblemKind::PayloadTooLarge, detail))
}

/// Reads the sets that the body of a new row may list, for a row that is not saved.
///
/// # Errors
/// The first list that is not a list of ids, with its pointers.
pub fn check_listed(shape: &Shape, body: &Json, base: &str) -> Result<(), Problem> {
    let listed = shape.relations.iter().filter(|relation| relation.listed.at_creation());
    for relation in listed {
        ListedIds::read(relation, body, base)?;
    }
    Ok(())
}

/// Removes and adds links, and confines the rows of the sets.
fn apply<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    all: &mut [Change<'_>],
    written: impl Iterator<Item = WrittenRow<'a>>,
) -> Result<(), Problem> {
    check_links(context, tx, shape, all)?;
    for change in &mut *all {
        change.remove_links(tx)?;
    }
    for change in &mut *all {
        change.add_links(context, tx, shape)?;
    }
    if !all.is_empty() {
        register_postcondition(context, shape);
    }
    confine(context, tx, shape, written)
}

/// Refuses changes to sets whose links are protected, of a row or of those that it is linked to: the members
/// and parents of a group that carries a counting role. A refused caller may still request the present state.
fn check_links(context: &Context, tx: &mut Tx<'_>, shape: &Shape, all: &[Change<'_>]) -> Result<(), Problem> {
    let written = all.iter().filter(|change| !change.is_empty());
    let guarded = |change: &Change<'_>| (change.at.clone(), change.protectors(shape));
    let checked = check_all(context, tx, written.clone().map(guarded));
    if !matches!(&checked, Err(problem) if problem.kind == ProblemKind::Forbidden) {
        return checked;
    }
    let mut changing = Vec::new();
    for change in written {
        if !change.is_redundant(tx)? {
            changing.push(guarded(change));
        }
    }
    check_all(context, tx, changing.into_iter())
}

/// The requested content of a row's set: exactly these links, or these in addition to the present ones.
struct RequestedSet<'a> {
    owner: &'a StoredRow,
    is_all: bool,
    listed: ListedIds,
}

/// The change to the set of a row.
struct Change<'a> {
    relation: &'a Relation,
    owner: &'a StoredRow,
    /// The JSON Pointer of the list in the body.
    at: String,
    added: Vec<Link>,
    removed: Vec<Link>,
    /// Whether some added links may exist already, and some removed ones may be missing: the statements report
    /// it.
    is_unverified: bool,
}

/// The changes that the requested sets of one relation need. A caller may list a present link that it can read
/// but not create; a link that it may not create is not removed either.
fn changes<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    relation: &'a Relation,
    requested: Vec<RequestedSet<'a>>,
) -> Result<Vec<Change<'a>>, Problem> {
    let scope = context.scope.clone();
    let above_tenants = relation.listed == Listed::AboveTenants;
    let scope = if above_tenants { scope.above_tenants() } else { scope };
    let replaced: Vec<i64> = requested.iter().filter(|set| set.is_all).map(|set| set.owner.rid).collect();
    let mut linked = all_linked(tx, &scope.clone().to_be_changed(false), relation, &replaced)?;
    let (mut sets, mut ids) = (Vec::with_capacity(requested.len()), HashSet::new());
    let is_guarded = matches!(relation.target.reach, Reach::Unless(..));
    for RequestedSet { owner, listed, .. } in requested {
        let mut old = linked.remove(&owner.rid).unwrap_or_default();
        let is_new = |(_, id): &(usize, Uuid)| old.remove(id).is_none();
        let new: Vec<(usize, Uuid)> = listed.ids.iter().copied().enumerate().filter(is_new).collect();
        ids.extend(new.iter().map(|(_, id)| *id));
        ids.extend(old.keys().filter(|_| is_guarded));
        sets.push((owner, listed, new, old));
    }
    let known = visible_to(&scope, context, tx, relation.target, &ids.into_iter().collect::<Vec<_>>())?;
    let (mut changes, mut errors) = (Vec::with_capacity(sets.len()), Vec::new());
    for (owner, listed, new, old) in sets {
        let mut added = Vec::with_capacity(new.len());
        for (number, id) in new {
            if let Some(rid) = known.get(&id) {
                added.push((id, *rid));
            } else {
                let detail = format!("names no {}", relation.target.name);
                errors.push(FieldError::new(listed.at(number), detail));
            }
        }
        let is_removable = |(id, _): &Link| !is_guarded || known.contains_key(id);
        let mut removed: Vec<Link> = old.into_iter().filter(is_removable).collect();
        removed.sort_unstable();
        changes.push(Change { relation, owner, at: listed.at, added, removed, is_unverified: false });
    }
    if !errors.is_empty() {
        return Err(Problem::wrong(errors));
    }
    if above_tenants {
        check_owners(context, tx, shape, &scope, &changes)?;
    }
    Ok(changes)
}

/// Refuses changes to sets of rows that the caller reaches only through a tenant.
fn check_owners(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    scope: &Scope,
    changes: &[Change<'_>],
) -> Result<(), Problem> {
    let written = changes.iter().filter(|change| !change.is_empty());
    let ids: Vec<Uuid> = written.filter_map(|change| shape.id_in(&change.owner.values)).collect();
    if visible_to(scope, context, tx, shape, &ids)?.len() < ids.len() {
        let detail = "Only who administers the subscription changes what it is assigned to.";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    Ok(())
}

impl Change<'_> {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The protectors of the links: the row's protection, and that of the linked rows.
    fn protectors(&self, shape: &Shape) -> Vec<Protector> {
        let guarding = |shape: &Shape| {
            shape.base().writes.protection.filter(|protection| protection.links.protect(self.relation))
        };
        let own = guarding(shape).zip(shape.id_in(&self.owner.values));
        let links = self.added.iter().chain(&self.removed);
        let others = guarding(self.relation.target).into_iter();
        let others = others.flat_map(|protection| links.clone().map(move |(id, _)| (protection, *id)));
        own.into_iter().chain(others).collect()
    }

    /// Whether all added links exist already, and all removed ones are missing.
    fn is_redundant(&self, tx: &mut Tx<'_>) -> Result<bool, Problem> {
        if !self.is_unverified {
            return Ok(false);
        }
        let added = linked_of(tx, self.relation, self.owner.rid, &self.added)?;
        let removed = linked_of(tx, self.relation, self.owner.rid, &self.removed)?;
        Ok(removed.is_empty() && self.added.iter().all(|(_, rid)| added.contains(rid)))
    }

    /// Drops the requested links that exist already, or that are missing and to be removed. Where no rule
    /// checks them before, the statements that write them do so: on PostgreSQL a query for links conflicts with
    /// all concurrent writers.
    fn drop_redundant(&mut self, tx: &mut Tx<'_>) -> Result<(), Problem> {
        if self.relation.guard.is_none() {
            self.is_unverified = true;
            return Ok(());
        }
        let linked = linked_of(tx, self.relation, self.owner.rid, &self.added)?;
        self.added.retain(|(_, rid)| !linked.contains(rid));
        let linked = linked_of(tx, self.relation, self.owner.rid, &self.removed)?;
        self.removed.retain(|(_, rid)| linked.contains(rid));
        Ok(())
    }

    /// Sends a statement that writes links. Where it must report which of them it wrote, their other ends are
    /// added to `written`.
    fn send(&self, tx: &mut Tx<'_>, sql: Sql, written: &mut HashSet<i64>) -> Result<(), Problem> {
        if !self.is_unverified {
            return Ok(raw::queue(tx, &sql.text, sql.parameters)?);
        }
        let sql = sql.push(&format!(" RETURNING {}", self.relation.other));
        Ok(raw::query(tx, &sql.text, &sql.parameters, |row| {
            written.insert(row.int(0)?);
            Ok(())
        })?)
    }

    fn remove_links(&mut self, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let mut written = HashSet::new();
        let Relation { table, own, other, target, .. } = self.relation;
        for chunk in self.removed.chunks(LOOKUP_CHUNK) {
            let mut sql = Sql::new(format!("DELETE FROM {table} WHERE ({own}, {other}) IN (SELECT CAST("))
                .bind(self.owner.rid)
                .push(&format!(" AS BIGINT), t.rid FROM {} t WHERE t.rid IN ", target.table));
            sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
            sql.add(")");
            self.send(tx, sql, &mut written)?;
        }
        let is_unverified = self.is_unverified;
        self.removed.retain(|(_, rid)| !is_unverified || written.contains(rid));
        Ok(())
    }

    /// Adds the new links, and audits the change of the set: one entry and one event.
    fn add_links(&mut self, context: &Context, tx: &mut Tx<'_>, shape: &Shape) -> Result<(), Problem> {
        let Self { relation, owner, at, added, .. } = &*self;
        let mut written = HashSet::new();
        if let (Some(guard), false) = (relation.guard, added.is_empty()) {
            let others: Vec<i64> = added.iter().map(|(_, rid)| *rid).collect();
            let links = NewLinks { shape, relation, row: owner.rid, others: &others };
            guard(tx, &links).map_err(|problem| at_set(problem, at))?;
        }
        for chunk in added.chunks(LIST) {
            let (pairs, target) = (relation.table, relation.target.table);
            let mut sql =
                Sql::new(format!("INSERT INTO {pairs} ({}, {}) SELECT CAST(", relation.own, relation.other))
                    .bind(owner.rid)
                    .push(&format!(" AS BIGINT), t.rid FROM {target} t WHERE t.rid IN "));
            sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
            sql.add(" ON CONFLICT DO NOTHING");
            self.send(tx, sql, &mut written)?;
        }
        let is_unverified = self.is_unverified;
        self.added.retain(|(_, rid)| !is_unverified || written.contains(rid));
        let ids = |links: &[Link]| links.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let (added, removed) = (ids(&self.added), ids(&self.removed));
        change::audit_links(context, tx, shape, self.relation, self.owner, &added, &removed)
    }
}

/// A refusal of new links, reported at the list.
fn at_set(mut problem: Problem, at: &str) -> Problem {
    if problem.errors.is_empty() && problem.cause.is_none() {
        problem.errors.note(|| FieldError::new(at, problem.detail.clone()));
    }
    problem
}

selectable! {
    /// A link of a row.
    struct LinkedRow(own) {
        /// The number of the row.
        own: i64 = "m.{own}",
        /// The id and the number of the row that it is linked to.
        id: Uuid = "o.id",
        rid: i64 = "o.rid",
    }
}

/// All visible links of rows, by the rows' numbers.
fn all_linked(
    tx: &mut Tx<'_>,
    scope: &Scope,
    relation: &Relation,
    rows: &[i64],
) -> Result<HashMap<i64, HashMap<Uuid, i64>>, Problem> {
    let (mut linked, mut count): (HashMap<i64, HashMap<Uuid, i64>>, usize) = (HashMap::new(), 0);
    for chunk in rows.chunks(LIST) {
        let Relation { table, own, other, target, .. } = relation;
        let mut sql = Sql::new(format!(
            "SELECT {} FROM {table} m JOIN {} o ON o.rid = m.{other} WHERE m.{own} IN ",
            LinkedRow::columns(own),
            target.table
        ));
        sql.add_list(chunk.iter().copied().map(Value::Int));
        // links that the caller cannot see stay as they are
        target.add_nested_reach(&mut sql, scope);
        sql.add(&format!(" LIMIT {}", MAX_REPLACED + 1));
        tx.query(&sql.text, &sql.parameters, |row| {
            count += 1;
            let LinkedRow { own, id, rid } = LinkedRow::read(row)?;
            linked.entry(own).or_default().insert(id, rid);
            Ok(())
        })?;
        if count > MAX_REPLACED {
            return Err(too_many(relation));
        }
    }
    Ok(linked)
}

/// Those of these rows that are linked already.
fn linked_of(
    tx: &mut Tx<'_>,
    relation: &Relation,
    own: i64,
    others: &[Link],
) -> Result<HashSet<i64>, Problem> {
    let mut linked = HashSet::new();
    let Relation { table, own: column, other, target, .. } = relation;
    for chunk in others.chunks(LIST) {
        // each is looked up: PostgreSQL would rather read a whole set, of whose size it knows only the average
        let mut sql = Sql::new(format!("SELECT t.rid FROM {} t WHERE t.rid IN ", target.table));
        sql.add_list(chunk.iter().map(|(_, rid)| Value::Int(*rid)));
        sql.add(&format!(" AND (SELECT count(*) FROM {table} m WHERE m.{other} = t.rid AND m.{column} = "));
        sql.add_bound(own);
        sql.add(") > 0");
        tx.query(&sql.text, &sql.parameters, |row| {
            linked.insert(row.int(0)?);
            Ok(())
        })?;
    }
    Ok(linked)
}
