//! What the rows are called that other rows name: read together, once for each resource.

use std::collections::{BTreeSet, HashMap};

use chancery_record::{Field, Kind};
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use super::list::{key_of, title_of};
use crate::{
    arranged,
    directory::{Resource, encoded},
    visit::Visit,
};

/// Names and addresses, by ids.
pub type Names = HashMap<String, (String, Option<String>)>;

/// The most ids that are asked for at once.
const AT_ONCE: usize = 50;

/// The resource that an id of a row names: by the field, or by what else the row says.
pub fn named_by(resource: &Resource, field: &Field, row: &Value) -> Option<&'static Resource> {
    if !matches!(field.kind, Kind::Id) {
        return None;
    }
    resource.referenced(field).or_else(|| arranged::named_by(resource.name, field.wire(), row))
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
        let Some(op) = visit.may(other.list) else { continue };
        let Some(key) = other.key() else { continue };
        for ids in ids.into_iter().collect::<Vec<_>>().chunks(AT_ONCE) {
            let one = ids.iter().map(|id| format!("{} eq {}", key.wire(), json!(id)));
            let mut input = Input::of(op, Vec::new());
            input.query.push(("filter".to_owned(), one.collect::<Vec<_>>().join(" or ")));
            input.query.push(("count".to_owned(), AT_ONCE.to_string()));
            let found = visit.perform(input).await?.json();
            for row in found.as_array().map(Vec::as_slice).unwrap_or_default() {
                let key = key_of(other, row);
                let href = other.read.map(|_| format!("{}/{}", visit.address(other), encoded(&key)));
                names.insert(key, (title_of(other, row), href));
            }
        }
    }
    Ok(names)
}
