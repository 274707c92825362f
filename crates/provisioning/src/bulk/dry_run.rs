//! Dry runs of bulk requests: each operation by itself, against the current state. A resource that one operation would
//! create does not exist for the others, so references to it are left out.

use chancery_record::Json;
use chancery_resource::{Method, Op, Problem};
use serde_json::Value;

use super::{REFERENCE_PREFIX, run::Written};
use crate::form::Form;

/// Validates the body of an operation on a resource that the request would create.
///
/// # Errors
/// The body is invalid.
pub fn validate(op: &Op, body: Option<&Json>) -> Result<Written, Problem> {
    if let Some(body) = body {
        Form::of_shape(op.shape).check_body(op, body)?;
    }
    Ok((if op.method == Method::Delete { 204 } else { 200 }, None, None))
}

/// Removes all references to resources that other operations would create.
pub fn remove_references(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !is_reference(item));
            items.iter_mut().for_each(remove_references);
        }
        Value::Object(members) => {
            members.retain(|_, member| !is_reference(member));
            members.values_mut().for_each(remove_references);
        }
        _ => {}
    }
}

/// Whether a value is a reference, or an object whose `value` is one.
fn is_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(REFERENCE_PREFIX),
        Value::Object(members) => members.get("value").is_some_and(is_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::remove_references;

    #[test]
    fn references_are_removed_from_bodies_and_patches() {
        let reference = json!({ "value": "bulkId:a" });
        for (mut sent, left) in [
            (json!({ "members": [reference, { "value": "7" }] }), json!({ "members": [{ "value": "7" }] })),
            (json!({ "x": { "manager": "bulkId:a", "title": "t" } }), json!({ "x": { "title": "t" } })),
            (
                json!({ "Operations": [
                    { "op": "add", "path": "manager", "value": reference },
                    { "op": "add", "path": "members", "value": [reference] },
                ] }),
                json!({ "Operations": [{ "op": "add", "path": "members", "value": [] }] }),
            ),
        ] {
            remove_references(&mut sent);
            assert_eq!(sent, left);
        }
    }
}
