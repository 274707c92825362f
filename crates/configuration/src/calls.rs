//! The calls of the interface for a plan: for each kind in its order batches of new rows and of changed ones, then
//! links, and at the end deletions in the opposite order. A batch has at most as many elements as the interface accepts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    Change, ChangeKind, Kind, Memory, Plan, Row, index::Index, plan::replacement, resolve::secret_of,
    state::read_rows,
};

/// A call of the interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its method.
    pub method: &'static str,
    /// Its path, below the service's base.
    pub path: String,
    /// Its body.
    pub body: Value,
    /// The changes that it makes, by their positions in the kind's: an element of a batch each.
    pub of: Vec<usize>,
}

/// The batches of the changes of a kind: new rows, then replaced ones. Secrets are filled in.
pub fn batches(kind: &Kind, changes: &[Change], secrets: &BTreeMap<String, String>) -> Vec<Call> {
    let mut calls = Vec::new();
    for (method, change_kind) in [("POST", ChangeKind::Create), ("PUT", ChangeKind::Change)] {
        let written = changes.iter().enumerate().filter(|(_, change)| change.kind == change_kind);
        let written: Vec<_> = written.filter_map(|(at, change)| Some((at, change.body.as_ref()?))).collect();
        for written in written.chunks(kind.shape.max_batch()) {
            let body = written.iter().map(|(_, body)| filled(&Value::Object((*body).clone()), secrets));
            calls.push(Call {
                method,
                path: format!("{}/batch", kind.path),
                body: body.collect(),
                of: written.iter().map(|(at, _)| *at).collect(),
            });
        }
    }
    calls
}

/// The batches by which a plan can be tried in advance: without rows that depend on new ones.
pub fn trials(kind: &Kind, changes: &[Change], secrets: &BTreeMap<String, String>) -> Vec<Call> {
    let bodiless =
        |change: &Change| Change { body: change.body.clone().filter(|_| !change.waits), ..change.clone() };
    batches(kind, &changes.iter().map(bodiless).collect::<Vec<_>>(), secrets)
}

/// The changes without effect by the trial of a batch: the server normalizes the document's value to its own. `answer`
/// is the answer of the interface, `rows` are the rows before.
pub fn without_effect(call: &Call, changes: &[Change], rows: &[Row], answer: &Value) -> Vec<usize> {
    let after = answer.as_array().into_iter().flatten().filter_map(Value::as_object);
    let is_same = |change: &Change, after: &Map<String, Value>| {
        let before = rows.iter().find(|row| row.key.eq_ignore_ascii_case(&change.key));
        let mut members = after.iter().filter(|(name, _)| *name != "concurrencyToken");
        before.is_some_and(|before| members.all(|(name, value)| before.members.get(name) == Some(value)))
    };
    let tried = call.of.iter().zip(after).filter(|(at, after)| {
        changes.get(**at).is_some_and(|change| {
            // a changed secret is not visible
            let is_seen = !change.differences.iter().any(|difference| difference.is_secret);
            change.kind == ChangeKind::Change && change.links.is_empty() && is_seen && is_same(change, after)
        })
    });
    tried.map(|(at, _)| *at).collect()
}

/// The links of the changes of a kind.
pub fn links(changes: &[Change]) -> Vec<Call> {
    let mut calls = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        for link in &change.links {
            let path = link.path.replace("{id}", &change.key);
            for (method, keys) in [("POST", &link.added), ("DELETE", &link.removed)] {
                if !keys.is_empty() {
                    let body = json!({ "relatedIds": keys });
                    calls.push(Call { method, path: path.clone(), body, of: vec![at] });
                }
            }
        }
    }
    calls
}

/// The batches that delete rows of a kind.
pub fn deletions(kind: &Kind, changes: &[Change]) -> Vec<Call> {
    let gone = changes.iter().enumerate().filter(|(_, change)| change.kind == ChangeKind::Delete);
    let gone: Vec<_> = gone.collect();
    let batch = |gone: &[(usize, &Change)]| Call {
        method: "DELETE",
        path: format!("{}/batch", kind.path),
        body: gone.iter().map(|(_, change)| Value::String(change.key.clone())).collect(),
        of: gone.iter().map(|(at, _)| *at).collect(),
    };
    gone.chunks(kind.shape.max_batch()).map(batch).collect()
}

/// Adopts the rows that the server created by itself with those of a plan, such as the options of a new tenant: where the
/// plan would create the same it changes them instead. `list` is the current answer of the interface, `created` the keys of the
/// rows that the plan has created.
///
/// # Errors
/// The list is malformed.
pub fn adopt(
    kind: &Kind,
    changes: &mut [Change],
    list: Value,
    created: &BTreeSet<String>,
) -> Result<(), String> {
    let is_of_new = |members: &Map<String, Value>| {
        let keys =
            kind.references.iter().filter_map(|reference| members.get(reference.field.wire())?.as_str());
        keys.into_iter().any(|key| created.contains(key))
    };
    let mut rows = read_rows(kind, list)?;
    rows.retain(|row| is_of_new(&row.members));
    let index = Index::of(kind, &rows);
    for change in
        changes.iter_mut().filter(|change| change.kind == ChangeKind::Create && is_of_new(&change.given))
    {
        if let [row] = index.rows(kind, &change.given).as_slice() {
            change.kind = ChangeKind::Change;
            change.key.clone_from(&row.key);
            change.body = Some(replacement(kind, &change.given, row));
        }
    }
    Ok(())
}

impl Plan {
    /// Whether a kind has new rows that depend on other new rows, so that the server can have created them by itself.
    pub fn can_adopt(&self, index: usize) -> bool {
        self.changes.get(index).is_some_and(|changes| {
            changes.iter().any(|change| change.kind == ChangeKind::Create && change.waits)
        })
    }
}

impl Memory {
    /// Remembers the rows that a call is about to create, before it is sent: an interruption leaves no created row that is not
    /// known here. Returns those that were not known.
    pub fn expect(&mut self, kind: &Kind, changes: &[Change], call: &Call) -> Vec<String> {
        let new = call
            .of
            .iter()
            .filter_map(|at| changes.get(*at))
            .filter(|change| change.kind == ChangeKind::Create);
        let unknown: Vec<String> = new
            .filter(|change| !self.has_created(kind.name, &change.key))
            .map(|change| change.key.clone())
            .collect();
        for key in &unknown {
            self.add(kind.name, key);
        }
        unknown
    }

    /// Remembers the effect of a batch.
    pub fn note(&mut self, kind: &Kind, changes: &[Change], call: &Call) {
        for change in call.of.iter().filter_map(|at| changes.get(*at)) {
            match change.kind {
                ChangeKind::Create => self.add(kind.name, &change.key),
                ChangeKind::Change => {}
                ChangeKind::Delete => {
                    self.remove(kind.name, &change.key);
                    continue;
                }
            }
            for (member, value) in &change.given {
                if let Some(name) = secret_of(value) {
                    self.secrets.insert(Self::secret_path(kind.name, &change.key, member), name.to_owned());
                }
            }
        }
    }
}

/// A value with its secrets in place of their names.
fn filled(value: &Value, secrets: &BTreeMap<String, String>) -> Value {
    if let Some(secret) = secret_of(value).and_then(|name| secrets.get(name)) {
        return Value::String(secret.clone());
    }
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), filled(value, secrets))).collect()
        }
        other => other.clone(),
    }
}
