//! Relations: a set of other resources, replaced, added to or reduced by their ids.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, Json, Value, pointer};
use chancery_store::Tx;
use uuid::Uuid;

use crate::{
    Answer, Call, Problem, ProblemKind, Relating, Relation, Scope, Shape, Sql,
    answer::answer_with,
    change,
    emit::Stored,
    family::visible,
    load::{key_of, load},
    pattern::check_if_match,
    sql::LIST,
};

/// The most ids of one call.
pub const MAX_RELATED: usize = 100_000;

/// A link: the other's id and row number.
type Link = (Uuid, i64);

/// Replaces, adds to or reduces a set by the ids of the body.
///
/// # Errors
/// Unknown and foreign ids, each with its place; not found.
pub fn relate(call: &mut Call, tx: &mut Tx<'_>, name: &str, how: Relating) -> Result<Answer, Problem> {
    let shape = call.op.shape;
    let relation = shape.relation(name).ok_or_else(|| Problem::not_found(name))?;
    let listed = related_ids(call.body()?)?;
    let key = key_of(call, shape)?;
    let owner = load(call, tx, shape, None, key)?;
    check_if_match(call, tx, shape, &owner)?;
    let wanted = Wanted { owner: &owner, is_all: how == Relating::Set, listed };
    for mut change in changes(call, tx, relation, vec![wanted])? {
        if how != Relating::Set {
            let linked = linked_of(tx, relation, owner.rid, &change.added)?;
            change.added.retain(|(_, rid)| linked.contains(rid) == (how == Relating::Remove));
        }
        if how == Relating::Remove {
            std::mem::swap(&mut change.added, &mut change.removed);
        }
        change.take_out(tx)?;
        change.put_in(call, tx)?;
    }
    answer_with(call, tx, shape, &owner)
}

/// A row, and what its body says of its sets.
pub struct Speaking<'a> {
    /// The row.
    pub owner: &'a Stored,
    /// Whether it was just created.
    pub is_new: bool,
    /// Its body.
    pub body: &'a Json,
    /// Where the body stands.
    pub base: String,
}

/// Makes the sets of rows what their bodies list by ids, where a body may list them. All that is taken
/// out goes first: what moves from one set to another is in neither in between.
///
/// # Errors
/// Unknown and foreign ids, each with its place.
pub fn relate_body(
    call: &Call,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[Speaking<'_>],
) -> Result<(), Problem> {
    let mut all = Vec::new();
    for relation in shape.relations {
        let listing =
            |row: &&Speaking<'_>| if row.is_new { relation.at_creation } else { relation.at_change };
        let mut wanted = Vec::new();
        for Speaking { owner, is_new, body, base } in rows.iter().filter(listing) {
            if let Some(listed) = Listed::read(relation, body, base)? {
                wanted.push(Wanted { owner, is_all: !is_new, listed });
            }
        }
        all.extend(changes(call, tx, relation, wanted)?);
    }
    for change in &all {
        change.take_out(tx)?;
    }
    for change in &all {
        change.put_in(call, tx)?;
    }
    Ok(())
}

/// What the set of a row is to hold: nothing else, or this besides what is there.
struct Wanted<'a> {
    owner: &'a Stored,
    is_all: bool,
    listed: Listed,
}

/// What becomes of the set of a row.
struct Change<'a> {
    relation: &'a Relation,
    owner: &'a Stored,
    added: Vec<Link>,
    removed: Vec<Link>,
}

/// What has to be done for what is wanted of one relation.
fn changes<'a>(
    call: &Call,
    tx: &mut Tx<'_>,
    relation: &'a Relation,
    wanted: Vec<Wanted<'a>>,
) -> Result<Vec<Change<'a>>, Problem> {
    let whole: Vec<i64> = wanted.iter().filter(|set| set.is_all).map(|set| set.owner.rid).collect();
    let mut linked = all_linked(tx, &call.scope, relation, &whole)?;
    let is_linked = |set: &Wanted<'_>, id: &Uuid| {
        linked.get(&set.owner.rid).is_some_and(|links: &HashMap<_, _>| links.contains_key(id))
    };
    let missing: HashSet<Uuid> = wanted
        .iter()
        .flat_map(|set| set.listed.ids.iter().filter(|id| !is_linked(set, id)).copied())
        .collect();
    let known = visible(call, tx, relation.target, &missing.into_iter().collect::<Vec<_>>())?;
    let (mut changes, mut errors) = (Vec::with_capacity(wanted.len()), Vec::new());
    for Wanted { owner, listed, .. } in wanted {
        let mut old = linked.remove(&owner.rid).unwrap_or_default();
        let mut added = Vec::new();
        for (place, id) in listed.ids.iter().enumerate() {
            match (old.remove(id), known.get(id)) {
                (Some(_), _) => {}
                (None, Some(rid)) => added.push((*id, *rid)),
                (None, None) => {
                    let detail = format!("names no {}", relation.target.name);
                    errors.push(FieldError::new(listed.at(place), detail));
                }
            }
        }
        let mut removed: Vec<Link> = old.into_iter().collect();
        removed.sort_unstable();
        changes.push(Change { relation, owner, added, removed });
    }
    if errors.is_empty() { Ok(changes) } else { Err(Problem::wrong(errors)) }
}

impl Change<'_> {
    fn take_out(&self, tx: &mut Tx<'_>) -> Result<(), Problem> {
        for chunk in self.removed.chunks(LIST) {
            let sql = of_these("DELETE", self.relation, self.owner.rid, chunk);
            tx.queue(&sql.text, sql.parameters)?;
        }
        Ok(())
    }

    /// Puts in what is new, and tells the change: one audit entry and one event.
    fn put_in(&self, call: &Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let Self { relation, owner, added, removed } = self;
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
        let ids = |links: &[Link]| links.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        change::related(call, tx, call.op.shape, relation, owner, &ids(added), &ids(removed))
    }
}

/// The ids that a body lists, each once, and where each stands.
struct Listed {
    /// Where the list stands.
    at: String,
    /// Where the id stands in an item.
    end: &'static str,
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
                let detail = format!("must be an array of at most {MAX_RELATED} objects with an id");
                return Err(Problem::wrong_at(&at, detail));
            }
        };
        Self::of(at, "/id", items.iter().map(|item| item.get("id"))).map(Some)
    }

    fn of<'a>(
        at: String,
        end: &'static str,
        ids: impl Iterator<Item = Option<&'a Json>>,
    ) -> Result<Self, Problem> {
        let mut seen = HashSet::new();
        let mut listed = Self { at, end, places: Vec::new(), ids: Vec::new() };
        let mut errors = Vec::new();
        for (place, id) in ids.enumerate() {
            let id = match id {
                Some(Json::Text(text)) => Uuid::try_parse(text).ok(),
                _ => None,
            };
            match id {
                Some(id) if seen.insert(id) => {
                    listed.places.push(place);
                    listed.ids.push(id);
                }
                Some(_) => {}
                None => errors.push(FieldError::new(listed.pointer(place), "must be a UUID")),
            }
        }
        if errors.is_empty() { Ok(listed) } else { Err(Problem::wrong(errors)) }
    }

    fn pointer(&self, place: usize) -> String {
        format!("{}/{place}{}", self.at, self.end)
    }

    /// Where an id stands, by its number.
    fn at(&self, number: usize) -> String {
        self.pointer(self.places.get(number).copied().unwrap_or(number))
    }
}

/// The ids of the body of a relation operation.
fn related_ids(body: &Json) -> Result<Listed, Problem> {
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
    Listed::of("/relatedIds".to_owned(), "", array.iter().map(Some))
}

/// All visible links of rows, by the rows' numbers.
fn all_linked(
    tx: &mut Tx<'_>,
    scope: &Scope,
    relation: &Relation,
    rows: &[i64],
) -> Result<HashMap<i64, HashMap<Uuid, i64>>, Problem> {
    let mut linked: HashMap<i64, HashMap<Uuid, i64>> = HashMap::new();
    for chunk in rows.chunks(LIST) {
        let Relation { table, own, other, target, .. } = relation;
        let mut sql = Sql::new(format!(
            "SELECT m.{own}, o.id, o.rid FROM {table} m JOIN {} o ON o.rid = m.{other} WHERE m.{own} IN ",
            target.table
        ));
        sql.add_list(chunk.iter().copied().map(Value::Int));
        // what the caller does not see stays as it is
        target.add_nested_reach(&mut sql, scope);
        tx.query(&sql.text, &sql.parameters, |row| {
            linked.entry(row.int(0)?).or_default().insert(row.id(1)?, row.int(2)?);
            Ok(())
        })?;
    }
    Ok(linked)
}

/// Which of these are linked already.
fn linked_of(
    tx: &mut Tx<'_>,
    relation: &Relation,
    own: i64,
    others: &[Link],
) -> Result<HashSet<i64>, Problem> {
    let mut linked = HashSet::new();
    for chunk in others.chunks(LIST) {
        let sql = of_these(&format!("SELECT {}", relation.other), relation, own, chunk);
        tx.query(&sql.text, &sql.parameters, |row| {
            linked.insert(row.int(0)?);
            Ok(())
        })?;
    }
    Ok(linked)
}

/// A statement on the links between a row and these others.
fn of_these(verb: &str, relation: &Relation, own: i64, others: &[Link]) -> Sql {
    let mut sql = Sql::new(format!("{verb} FROM {} WHERE {} = ", relation.table, relation.own))
        .bind(own)
        .push(&format!(" AND {} IN ", relation.other));
    sql.add_list(others.iter().map(|(_, rid)| Value::Int(*rid)));
    sql
}
