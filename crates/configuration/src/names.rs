//! The names of rows in documents: the values of their keys, those of the rows they belong to first, between slashes.

use std::collections::HashMap;

use chancery_record::fold;
use serde_json::{Map, Value};

use crate::{Kind, State};

/// A row and its name.
struct Named {
    segments: Vec<String>,
    key: String,
}

/// The names of the rows of all kinds.
pub struct Names<'a> {
    kinds: &'a [Kind],
    of_kinds: Vec<OfKind>,
}

/// The names of the rows of one kind, found by their keys and by their whole names.
#[derive(Default)]
struct OfKind {
    named: Vec<Named>,
    by_key: HashMap<String, usize>,
    by_name: HashMap<String, Vec<usize>>,
}

/// The reason why a name leads to no row.
pub enum Unresolved {
    /// No row has it.
    Nothing,
    /// Several rows have it.
    Many(Vec<String>),
}

impl<'a> Names<'a> {
    /// The names of the rows of a server.
    pub fn of(state: &State<'a>) -> Self {
        let mut names =
            Self { kinds: state.kinds, of_kinds: state.kinds.iter().map(|_| OfKind::default()).collect() };
        for index in 0..state.kinds.len() {
            for row in state.rows(index) {
                names.add(index, &row.key, &row.members);
            }
        }
        names
    }

    /// Adds a row, by its members with ids, and returns its name.
    pub fn add(&mut self, index: usize, key: &str, members: &Map<String, Value>) -> String {
        let segments = self.segments(index, members);
        let name = joined(&segments);
        if let Some(own) = self.of_kinds.get_mut(index) {
            own.by_key.insert(key.to_ascii_lowercase(), own.named.len());
            own.by_name.entry(fold(&name)).or_default().push(own.named.len());
            own.named.push(Named { segments, key: key.to_owned() });
        }
        name
    }

    /// The name of a row with these members.
    fn segments(&self, index: usize, members: &Map<String, Value>) -> Vec<String> {
        let Some(kind) = self.kinds.get(index) else { return Vec::new() };
        // of members that exclude each other the name contains which one it is
        let choices =
            kind.key.iter().filter(|field| field.nullable && kind.reference(field).is_some()).count();
        let mut segments = Vec::new();
        for field in &kind.key {
            let value = members.get(field.wire()).unwrap_or(&Value::Null);
            match (kind.reference(field), value) {
                (_, Value::Null) => {}
                (Some(reference), Value::String(id)) => {
                    if choices > 1 && field.nullable {
                        segments.push(reference.target.name.to_owned());
                    }
                    match self.find(reference.target.name, id) {
                        Some(named) => segments.extend(named.segments.iter().cloned()),
                        None => segments.push(id.clone()),
                    }
                }
                (None, Value::String(text)) if kind.shape.is_located() => segments.push(self.location(text)),
                (_, Value::String(text)) => segments.push(text.clone()),
                (_, other) => segments.push(other.to_string()),
            }
        }
        segments
    }

    fn index(&self, kind: &str) -> Option<usize> {
        self.kinds.iter().position(|known| known.name.eq_ignore_ascii_case(kind))
    }

    fn find(&self, kind: &str, key: &str) -> Option<&Named> {
        let own = self.of_kinds.get(self.index(kind)?)?;
        own.named.get(*own.by_key.get(&key.to_ascii_lowercase())?)
    }

    /// The name of the row of a kind with this key; none where the caller does not see it.
    pub fn name(&self, kind: &str, key: &str) -> Option<String> {
        self.find(kind, key).map(|named| joined(&named.segments))
    }

    /// The names of a kind that more than one row has.
    pub fn ambiguous(&self, index: usize) -> Vec<String> {
        let shared = self.of_kinds.get(index).into_iter().flat_map(|own| own.by_name.iter());
        let shared = shared.filter(|(_, rows)| rows.len() > 1);
        let mut twice: Vec<String> = shared.map(|(name, _)| name.clone()).collect();
        twice.sort_unstable();
        twice
    }

    /// The key of the row with this name, whole or its end.
    pub fn key(&self, kind: &str, name: &str) -> Result<&str, Unresolved> {
        let own = self.index(kind).and_then(|index| self.of_kinds.get(index)).ok_or(Unresolved::Nothing)?;
        let whole = own.by_name.get(&fold(name)).into_iter().flatten();
        let mut matches: Vec<&Named> = whole.filter_map(|at| own.named.get(*at)).collect();
        if matches.is_empty() {
            let end = format!("/{}", fold(name));
            let ending = own.by_name.iter().filter(|(name, _)| name.ends_with(&end));
            matches = ending.flat_map(|(_, rows)| rows).filter_map(|at| own.named.get(*at)).collect();
        }
        match matches.as_slice() {
            [] => Err(Unresolved::Nothing),
            [one] => Ok(&one.key),
            many => Err(Unresolved::Many(many.iter().map(|named| joined(&named.segments)).collect())),
        }
    }

    /// A location with names in place of ids: `/views/tenant/{Default/Default/Main}/SignIn`.
    pub fn location(&self, location: &str) -> String {
        let mut parts: Vec<String> = location.split('/').map(str::to_owned).collect();
        let (level, id) = (parts.get(2).cloned(), parts.get(3).cloned());
        let name = level.zip(id).and_then(|(level, id)| self.name(&level, &id));
        if let (Some(name), Some(part)) = (name, parts.get_mut(3)) {
            *part = format!("{{{name}}}");
        }
        parts.join("/")
    }
}

/// The kind and the name in a location, and the text before and after them.
pub fn named_in(location: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, rest) = location.split_once("/{")?;
    let (name, after) = rest.split_once('}')?;
    let (_, level) = before.rsplit_once('/')?;
    Some((before, level, name, after))
}

/// A name of these segments. A slash within one is written as JSON Pointers do.
fn joined(segments: &[String]) -> String {
    let parts: Vec<String> =
        segments.iter().map(|segment| segment.replace('~', "~0").replace('/', "~1")).collect();
    parts.join("/")
}
