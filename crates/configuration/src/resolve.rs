//! Documents with ids in place of names.

use std::collections::BTreeSet;

use chancery_record::{Column, Field, Kind as Form, Sealing, parse_id, value_after_put};
use chancery_resource::settings::CATALOGUE;
use serde_json::{Map, Value};

use crate::{
    Document, Kind, Problem,
    names::{Names, Unresolved, named_in},
};

/// The name of the secret in a value.
pub fn secret_of(value: &Value) -> Option<&str> {
    let Value::Object(members) = value else { return None };
    let only = members.len() == 1;
    members.get("secret").and_then(Value::as_str).filter(|_| only)
}

/// Whether a member of a row with these members is a secret, which no document holds and no answer shows.
pub fn is_secret(field: &Field, members: &Map<String, Value>) -> bool {
    let text = matches!(field.kind, Form::Text(_));
    if field.access.column == Column::Unstored {
        return text && field.access.shown;
    }
    let name = members.get("name").and_then(Value::as_str);
    let names_secret = |name: &str| CATALOGUE.iter().any(|entry| entry.secret && entry.name == name);
    field.access.sealing == Sealing::Secret && name.is_some_and(names_secret)
}

/// Whether an answer shows the written value.
fn is_stored(field: &Field) -> bool {
    field.access.shown && field.access.column != Column::Unstored
}

/// The members of a document, with ids in place of names; adds mistakes to `problems`.
pub fn resolve(
    kind: &Kind,
    number: usize,
    document: &Document,
    names: &Names<'_>,
    problems: &mut Vec<Problem>,
) -> Map<String, Value> {
    let mut resolved = Map::new();
    for (member, value) in &document.members {
        let mut wrong = |detail: String| problems.push(Problem::member(number, member, detail));
        if let Some(set) = kind.set(member) {
            let Value::Array(items) = value else {
                wrong("must be an array of names".to_owned());
                continue;
            };
            let keys = items.iter().map(|item| {
                let name = item.as_str().ok_or("must be an array of names")?;
                key_of(names, set.relation.target.name, name.trim())
            });
            match keys.collect::<Result<Vec<_>, String>>() {
                Ok(keys) => drop(resolved.insert(member.clone(), Value::from(keys))),
                Err(detail) => wrong(detail),
            }
            continue;
        }
        let Some(field) = kind.members().find(|field| field.is_named(member)) else {
            wrong(format!("is no member that a {} is configured by", kind.name));
            continue;
        };
        if kind.key.iter().any(|key| key.is(field)) && value.is_object() {
            wrong("tells which row it is, so it must be a value".to_owned());
            continue;
        }
        if is_secret(field, &document.members) && secret_of(value).is_none() && !value.is_null() {
            wrong(r#"is a secret: write {"secret": "NAME"}, and give NAME in the environment"#.to_owned());
            continue;
        }
        match (kind.reference(field), value) {
            (Some(reference), Value::String(name)) => match key_of(names, reference.target.name, name.trim())
            {
                Ok(key) => drop(resolved.insert(member.clone(), Value::String(key))),
                Err(detail) => wrong(detail),
            },
            (None, Value::String(location)) if field.access.key && kind.shape.is_located() => {
                match located(names, location) {
                    Ok(location) => {
                        let location = Value::String(location);
                        let stored = value_after_put(field, &location).unwrap_or(location);
                        resolved.insert(member.clone(), stored);
                    }
                    Err(detail) => wrong(detail),
                }
            }
            // in the server's normalized form, for the comparison
            _ if is_stored(field) && secret_of(value).is_none() => {
                if let Some(value) = value_after_put(field, value) {
                    resolved.insert(member.clone(), value);
                }
            }
            _ => drop(resolved.insert(member.clone(), value.clone())),
        }
    }
    resolved
}

/// The key of the row of a kind with this name. An id stands for itself.
fn key_of(names: &Names<'_>, kind: &str, name: &str) -> Result<String, String> {
    match names.key(kind, name) {
        Ok(key) => Ok(key.to_owned()),
        Err(Unresolved::Nothing) if parse_id(name).is_some() => Ok(name.to_owned()),
        Err(Unresolved::Nothing) => Err(format!("names no {kind}: there is no {name:?}")),
        Err(Unresolved::Many(many)) => {
            let many: Vec<String> = many.iter().map(|name| format!("{name:?}")).collect();
            Err(format!("{name:?} names more than one {kind}: {}", many.join(", ")))
        }
    }
}

fn located(names: &Names<'_>, location: &str) -> Result<String, String> {
    let Some((before, level, name, after)) = named_in(location) else { return Ok(location.to_owned()) };
    Ok(format!("{before}/{}{after}", key_of(names, level, name.trim())?))
}

/// The names of all secrets in documents.
pub fn secret_names(documents: &[Document]) -> BTreeSet<String> {
    fn find(value: &Value, names: &mut BTreeSet<String>) {
        match (secret_of(value), value) {
            (Some(name), _) => drop(names.insert(name.to_owned())),
            (None, Value::Object(members)) => members.values().for_each(|value| find(value, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    documents.iter().flat_map(|document| document.members.values()).for_each(|value| find(value, &mut names));
    names
}
