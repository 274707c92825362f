//! What the rows are called that other rows name: read together, once for each resource.

use std::collections::BTreeSet;

use chancery_record::{Field, Kind};
use chancery_resource::Problem;
use serde_json::Value;

use super::look_up::{Reading, rows_by};
use crate::shell::{
    directory::{self, Resource, encoded, key_of, title_of},
    presentation::Names,
    visit::Visit,
};

/// The resource that an id of a row names: by the field, or by what else the row says.
pub fn named_by(resource: &Resource, field: &Field, row: &Value) -> Option<&'static Resource> {
    if !matches!(field.kind, Kind::Id) {
        return None;
    }
    let told = || directory::of_shape((resource.presentation.named_by)(field.wire(), row)?);
    resource.referenced(field).or_else(told)
}

/// The names of all rows that these fields of these rows name, as far as the person may list them.
///
/// # Errors
/// The operations' own.
pub async fn names(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (fields, rows): (&[&Field], &[Value]),
) -> Result<Names, Problem> {
    let mut asked: Vec<(&'static Resource, BTreeSet<String>)> = Vec::new();
    for row in rows {
        for field in fields {
            let (Some(other), Some(id)) = (named_by(resource, field, row), row[field.wire()].as_str()) else {
                continue;
            };
            match asked.iter_mut().find(|(known, _)| std::ptr::eq(*known, other)) {
                Some((_, ids)) => drop(ids.insert(id.to_owned())),
                None => asked.push((other, BTreeSet::from([id.to_owned()]))),
            }
        }
    }
    let mut names = Names::new();
    for (other, ids) in asked {
        find(visit, other, &ids, &mut names).await?;
    }
    Ok(names)
}

/// Adds the names of the rows of a resource that have these ids, as far as the person may list them.
///
/// # Errors
/// The operation's own.
pub async fn find(
    visit: &Visit<'_>,
    other: &'static Resource,
    ids: &BTreeSet<String>,
    names: &mut Names,
) -> Result<(), Problem> {
    let ids: Vec<String> = ids.iter().cloned().collect();
    for row in rows_of(visit, other, &ids).await? {
        let key = key_of(other, &row);
        let href = other.read.map(|_| format!("{}/{}", visit.address(other), encoded(&key)));
        names.insert(key, (title_of(other, &row), href));
    }
    Ok(())
}

/// The rows of these keys, as far as the person may list them.
///
/// # Errors
/// The operation's own.
pub async fn rows_of(
    visit: &Visit<'_>,
    other: &'static Resource,
    ids: &[String],
) -> Result<Vec<Value>, Problem> {
    let (Some(op), Some(key)) = (visit.may(other.list), other.key()) else { return Ok(Vec::new()) };
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    rows_by(visit, (op, key.wire()), &ids, Reading::default()).await
}
