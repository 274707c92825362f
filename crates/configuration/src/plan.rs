//! The differences between documents and the rows of a server.

use std::collections::{BTreeMap, HashMap, HashSet};

use chancery_record::{Field, fold};
use chancery_resource::Listed;
use serde_json::{Map, Value};

use crate::{
    Document, Kind, Memory, Problem, Row, Set, State,
    change::{Change, ChangeKind, Difference, Link, Plan},
    export::keys_in,
    index::{Index, is_meant},
    left_out::uploaded,
    names::Names,
    resolve::{is_secret, resolve, secret_of},
    state::is_same_value,
};

/// The input of a plan besides documents and rows.
pub struct PlanInput<'a> {
    /// The set's memory of the server.
    pub memory: &'a Memory,
    /// The secrets that were given, by name.
    pub secrets: &'a BTreeMap<String, String>,
    /// Whether to delete rows that the set created and has no document of any more.
    pub prune: bool,
}

/// Compares documents with the rows of a server. `new_id` generates ids for new rows.
///
/// # Errors
/// All mistakes in the documents: then there is no plan.
pub fn plan(
    state: &State<'_>,
    documents: &[Document],
    known: &PlanInput<'_>,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Plan, Vec<Problem>> {
    let mut planner =
        Planner { state, known, names: Names::of(state), new: HashSet::new(), problems: Vec::new() };
    let mut result = Plan { changes: state.kinds.iter().map(|_| Vec::new()).collect() };
    for (number, document) in documents.iter().enumerate() {
        if !state.kinds.iter().any(|kind| kind.name == document.kind) {
            let detail = format!("{:?} is no kind of the configuration", document.kind);
            planner.problems.push(Problem::at(number, "/kind", detail));
        }
    }
    for (index, (kind, changes)) in state.kinds.iter().zip(&mut result.changes).enumerate() {
        let own = documents.iter().enumerate().filter(|(_, document)| document.kind == kind.name);
        *changes = planner.kind(index, kind, own, new_id);
    }
    let problems = planner.problems;
    if problems.is_empty() { Ok(result) } else { Err(problems) }
}

struct Planner<'a> {
    state: &'a State<'a>,
    known: &'a PlanInput<'a>,
    names: Names<'a>,
    /// The keys of new rows.
    new: HashSet<String>,
    problems: Vec<Problem>,
}

impl Planner<'_> {
    /// The changes to the rows of a kind.
    fn kind<'d>(
        &mut self,
        index: usize,
        kind: &Kind,
        documents: impl Iterator<Item = (usize, &'d Document)>,
        new_id: &mut dyn FnMut() -> String,
    ) -> Vec<Change> {
        let rows = self.state.rows(index);
        let index_of_rows = Index::of(kind, rows);
        let (mut changes, mut meant): (Vec<Change>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
        let mut vague = Vec::new();
        for (number, document) in documents {
            if !self.state.is_known(index) {
                let detail = format!("you may not read {}, so nothing can be said of it", kind.name);
                self.problems.push(Problem::at(number, "/kind", detail));
                continue;
            }
            let before = self.problems.len();
            let given = resolve(kind, number, document, &self.names, &mut self.problems);
            if self.problems.len() > before {
                continue;
            }
            let rows = index_of_rows.rows(kind, &given);
            if kind.key.iter().any(|field| !given.contains_key(field.wire())) {
                vague.push((number, given.clone(), rows.len()));
            }
            let change = match rows.as_slice() {
                [] => self.create(index, kind, number, document, given, new_id),
                [row] => Some(self.change(kind, number, document, given, row)),
                _ => {
                    let detail =
                        format!("{} rows of {} are meant: their names are the same", rows.len(), kind.name);
                    self.problems.push(Problem::at(number, "/members", detail));
                    None
                }
            };
            let Some(change) = change else { continue };
            let identity =
                if change.kind == ChangeKind::Create { fold(&change.name) } else { change.key.clone() };
            if let Some(other) = meant.insert(identity, number) {
                let detail = format!("is about the same {} as document {other}", kind.name);
                self.problems.push(Problem::at(number, "/members", detail));
            }
            if change.kind == ChangeKind::Create || change.body.is_some() || !change.links.is_empty() {
                changes.push(change);
            }
        }
        self.check_vague(kind, &vague, &changes);
        if self.known.prune {
            let gone = |row: &&Row| {
                self.known.memory.has_created(kind.name, &row.key) && !meant.contains_key(&row.key)
            };
            changes.extend(rows.iter().filter(gone).map(|row| self.deletion(kind, row)));
        }
        changes
    }

    /// Finds documents without a member that distinguishes rows, which would be ambiguous once the new rows exist.
    fn check_vague(
        &mut self,
        kind: &Kind,
        documents: &[(usize, Map<String, Value>, usize)],
        changes: &[Change],
    ) {
        for (number, given, known) in documents {
            let is_about =
                |change: &&Change| change.kind == ChangeKind::Create && is_meant(kind, given, &change.given);
            let new = changes.iter().filter(is_about).count();
            if new > 0 && known + new > 1 {
                let left_out = kind.key.iter().filter(|field| !given.contains_key(field.wire()));
                let left_out: Vec<&str> = left_out.map(|field| field.wire()).collect();
                let detail = format!(
                    "may be about several rows of {}, of which one is new: give {}",
                    kind.name,
                    left_out.join(", ")
                );
                self.problems.push(Problem::at(*number, "/members", detail));
            }
        }
    }

    fn deletion(&self, kind: &Kind, row: &Row) -> Change {
        Change {
            document: None,
            kind: ChangeKind::Delete,
            name: self.names.name(kind.name, &row.key).unwrap_or_default(),
            key: row.key.clone(),
            differences: Vec::new(),
            links: Vec::new(),
            body: None,
            waits: false,
            given: Map::new(),
        }
    }

    fn create(
        &mut self,
        index: usize,
        kind: &Kind,
        number: usize,
        document: &Document,
        mut given: Map<String, Value>,
        new_id: &mut dyn FnMut() -> String,
    ) -> Option<Change> {
        let missing = kind.members().filter(|field| field.required() && !given.contains_key(field.wire()));
        let missing: Vec<Problem> = missing
            .map(|field| Problem::member(number, field.wire(), "is missing: there is no such row yet"))
            .collect();
        if !missing.is_empty() {
            self.problems.extend(missing);
            return None;
        }
        self.complete(kind, &mut given);
        let id = kind.id()?.wire();
        let key = if kind.has_own_id() { new_id() } else { given.get(id)?.as_str()?.to_owned() };
        let mut body = Map::from_iter([(id.to_owned(), Value::String(key.clone()))]);
        let mut links = Vec::new();
        for (member, value) in &given {
            self.check_secrets(number, member, value);
            match kind.set(member) {
                Some(set) if set.relation.listed == Listed::Nowhere => {
                    links.extend(link(set, &[], value));
                }
                Some(_) => {
                    let items = value.as_array().into_iter().flatten();
                    let items: Vec<Value> = items.map(|id| serde_json::json!({ "id": id })).collect();
                    body.insert(member.clone(), Value::from(items));
                }
                None => drop(body.insert(member.clone(), value.clone())),
            }
        }
        let differences = document.members.iter().map(|(member, after)| Difference {
            member: member.clone(),
            before: Value::Null,
            after: after.clone(),
            is_secret: false,
        });
        let differences = differences.collect();
        let waits = self.needs_new(&given);
        let name = self.names.add(index, &key, &given);
        self.new.insert(key.to_ascii_lowercase());
        let document = Some(number);
        Some(Change {
            document,
            kind: ChangeKind::Create,
            name,
            key,
            differences,
            links,
            body: Some(body),
            waits,
            given,
        })
    }

    /// Adds the only possible owner of a new row, where its document leaves that to the server.
    fn complete(&self, kind: &Kind, given: &mut Map<String, Value>) {
        for field in kind.key.iter().filter(|field| field.nullable && field.is_create_only()) {
            let Some(reference) = kind.reference(field) else { continue };
            let target = self.state.kinds.iter().position(|other| other.name == reference.target.name);
            if let Some([only]) = target.map(|target| self.state.rows(target))
                && !given.contains_key(field.wire())
            {
                given.insert(field.wire().to_owned(), Value::String(only.key.clone()));
            }
        }
    }

    /// Whether a member holds the key of a new row.
    fn needs_new(&self, given: &Map<String, Value>) -> bool {
        let is_new = |key: &str| self.new.contains(&key.to_ascii_lowercase());
        given.values().any(|value| match value {
            Value::String(text) => is_new(text) || text.split('/').any(is_new),
            Value::Array(items) => items.iter().filter_map(Value::as_str).any(is_new),
            _ => false,
        })
    }

    /// Finds secrets that were not given, in a value to send.
    fn check_secrets(&mut self, number: usize, member: &str, value: &Value) {
        if let Some(name) = secret_of(value) {
            if !self.known.secrets.contains_key(name) {
                let detail = format!("the secret {name} is not given");
                self.problems.push(Problem::member(number, member, detail));
            }
        } else if let Value::Object(members) = value {
            members.values().for_each(|value| self.check_secrets(number, member, value));
        }
    }

    fn change(
        &mut self,
        kind: &Kind,
        number: usize,
        document: &Document,
        given: Map<String, Value>,
        row: &Row,
    ) -> Change {
        let (mut differences, mut links) = (Vec::new(), Vec::new());
        for (member, value) in &given {
            let own = row.members.get(member).unwrap_or(&Value::Null);
            let documented = document.members.get(member).unwrap_or(&Value::Null);
            if let Some(set) = kind.set(member) {
                let before = keys_in(Some(own));
                if let Some(link) = link(set, &before, value) {
                    let name = |key: &String| {
                        self.names.name(set.relation.target.name, key).unwrap_or_else(|| key.clone())
                    };
                    let before: Vec<String> = before.iter().map(name).collect();
                    let after = documented.clone();
                    differences.push(Difference {
                        member: member.clone(),
                        before: before.into(),
                        after,
                        is_secret: false,
                    });
                    links.push(link);
                }
                continue;
            }
            let Some(field) = kind.stored_fields().find(|field| field.is_named(member)) else { continue };
            if uploaded(kind.name, member).is_some() || !self.differs(kind, field, value, row) {
                continue;
            }
            if field.access.put {
                self.check_secrets(number, member, value);
            } else {
                let detail = "does not change: take the old row away, or give the new one a name of its own";
                self.problems.push(Problem::member(number, member, detail));
            }
            let before = match (kind.reference(field), own) {
                (Some(of), Value::String(key)) => {
                    self.names.name(of.target.name, key).map_or(own.clone(), Value::String)
                }
                _ => own.clone(),
            };
            let is_secret = is_secret(field, &row.members);
            differences.push(Difference {
                member: member.clone(),
                before,
                after: documented.clone(),
                is_secret,
            });
        }
        let is_written = differences.iter().any(|difference| kind.set(&difference.member).is_none());
        let body = is_written.then(|| replacement(kind, &given, row));
        for field in kind.stored_fields().filter(|field| is_written && is_secret(field, &row.members)) {
            let is_hidden = row.members.get(field.wire()).is_none_or(Value::is_null);
            if is_hidden && !given.contains_key(field.wire()) {
                let detail = "is a secret that you are not shown: a change must give it";
                self.problems.push(Problem::member(number, field.wire(), detail));
            }
        }
        Change {
            document: Some(number),
            kind: ChangeKind::Change,
            name: self.names.name(kind.name, &row.key).unwrap_or_default(),
            key: row.key.clone(),
            differences,
            links,
            body,
            waits: self.needs_new(&given),
            given,
        }
    }

    /// Whether a member is to be written. A secret is, where it differs from the one that the server shows; where it shows none, where
    /// it was not sent before under this name.
    fn differs(&self, kind: &Kind, field: &Field, value: &Value, row: &Row) -> bool {
        let own = row.members.get(field.wire()).unwrap_or(&Value::Null);
        let Some(name) = secret_of(value) else { return !is_same_value(field, value, own) };
        if let (Some(secret), Value::String(own)) = (self.known.secrets.get(name), own) {
            return secret != own;
        }
        let path = Memory::secret_path(kind.name, &row.key, field.wire());
        self.known.memory.secrets.get(&path).is_none_or(|sent| sent != name)
    }
}

/// The missing and superfluous links of a set; none where they are as desired.
fn link(set: &Set, before: &[String], desired: &Value) -> Option<Link> {
    let desired: Vec<&str> = desired.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has = |key: &str| before.iter().any(|own| own.eq_ignore_ascii_case(key));
    let added: Vec<String> = desired.iter().filter(|key| !has(key)).map(|key| (*key).to_owned()).collect();
    let is_desired = |own: &&String| desired.iter().any(|key| key.eq_ignore_ascii_case(own));
    let removed: Vec<String> = before.iter().filter(|own| !is_desired(own)).cloned().collect();
    (!added.is_empty() || !removed.is_empty()).then_some(Link { path: set.path, added, removed })
}

/// The body that replaces a row: its values, overridden by those of the document.
pub fn replacement(kind: &Kind, given: &Map<String, Value>, row: &Row) -> Map<String, Value> {
    let mut body = Map::new();
    for field in kind.members().filter(|field| field.access.put) {
        let own = kind
            .stored_fields()
            .any(|stored| stored.is(field))
            .then(|| row.members.get(field.wire()))
            .flatten();
        let said = given.get(field.wire()).filter(|_| uploaded(kind.name, field.wire()).is_none());
        if let Some(value) = said.or(own) {
            body.insert(field.wire().to_owned(), value.clone());
        }
    }
    if let Some(id) = kind.id() {
        body.insert(id.wire().to_owned(), Value::String(row.key.clone()));
    }
    body.insert("concurrencyToken".to_owned(), Value::String(row.token.clone()));
    body
}
