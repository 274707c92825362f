//! Names of referenced rows, read with one request for each resource.

use std::collections::BTreeSet;

use chancery_record::{Field, Kind};
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use super::batch_lookup::{ReadOptions, rows_by};
use crate::shell::{
    directory::{self, Resource, encoded, key_of, title_of},
    presentation::Names,
    visit::Visit,
};

/// The resource that an id of a row refers to: by the field, or by other members of the row.
pub fn referenced_resource(resource: &Resource, field: &Field, row: &Value) -> Option<&'static Resource> {
    if !matches!(field.kind, Kind::Id) {
        return None;
    }
    let by_row = || directory::of_shape((resource.presentation.referenced_shape)(field.wire(), row)?);
    resource.referenced(field).or_else(by_row)
}

/// The names of all rows that these fields of these rows refer to, as far as the user may list them.
pub async fn names(
    visit: &Visit<'_>,
    resource: &'static Resource,
    fields: &[&Field],
    rows: &[Value],
) -> Result<Names, Problem> {
    let mut lookups: Vec<(&'static Resource, BTreeSet<String>)> = Vec::new();
    for row in rows {
        for field in fields {
            let (Some(other), Some(id)) =
                (referenced_resource(resource, field, row), row[field.wire()].as_str())
            else {
                continue;
            };
            match lookups.iter_mut().find(|(known, _)| std::ptr::eq(*known, other)) {
                Some((_, ids)) => drop(ids.insert(id.to_owned())),
                None => lookups.push((other, BTreeSet::from([id.to_owned()]))),
            }
        }
    }
    let mut names = Names::new();
    for (other, ids) in lookups {
        find(visit, other, &ids, &mut names).await?;
    }
    Ok(names)
}

/// Adds the names of the rows with these ids, as far as the user may list them.
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

/// The rows with these keys, as far as the user may list them.
pub async fn rows_of(
    visit: &Visit<'_>,
    other: &'static Resource,
    ids: &[String],
) -> Result<Vec<Value>, Problem> {
    let (Some(op), Some(key)) = (visit.may(other.list), other.key()) else { return Ok(Vec::new()) };
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    rows_by(visit, op, key.wire(), &ids, ReadOptions::default()).await
}

/// The platform user of a user of a store, or the platform group of a group: the id of the row with this subject among its identities, if
/// the user may list such rows.
pub async fn with_identity(
    visit: &Visit<'_>,
    resource: &'static Resource,
    subject: &str,
) -> Result<Option<String>, Problem> {
    let Some(list) = visit.may(resource.list) else { return Ok(None) };
    let mut input = Input::of(list, Vec::new());
    input.query.push(("filter".to_owned(), format!("identities.subject eq {}", json!(subject))));
    // boxed, because the futures of pages with many components need much stack already
    let rows = Box::pin(visit.perform(input)).await?.json();
    Ok(rows.pointer("/0/id").and_then(Value::as_str).map(str::to_owned))
}
