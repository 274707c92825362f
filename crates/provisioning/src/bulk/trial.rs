//! A request that is tried: each operation by itself, against what is there. What one of them would create is not there for
//! the others, so references to it are left out.

use chancery_record::Json;
use chancery_resource::{Method, Op, Problem};
use serde_json::Value;

use super::{REFERENCE, run::Written};
use crate::form::Form;

/// Judges the body of an operation on something that the request would create.
///
/// # Errors
/// The body cannot be read.
pub fn judge(op: &Op, body: Option<&Json>) -> Result<Written, Problem> {
    if let Some(body) = body {
        Form::of_shape(op.shape).check_body(op, body)?;
    }
    Ok((if op.method == Method::Delete { 204 } else { 200 }, None, None))
}

/// Leaves out all that refers to what another operation would create.
pub fn leave_out(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !refers(item));
            items.iter_mut().for_each(leave_out);
        }
        Value::Object(members) => {
            members.retain(|_, member| !refers(member));
            members.values_mut().for_each(leave_out);
        }
        _ => {}
    }
}

/// Whether a value is a reference, or an object that is one by its `value`.
fn refers(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(REFERENCE),
        Value::Object(members) => members.get("value").is_some_and(refers),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::leave_out;

    #[test]
    fn references_are_left_out_of_bodies_and_patches() {
        let reference = json!({ "value": "bulkId:a" });
        for (mut sent, left) in [
            (json!({ "members": [reference, { "value": "7" }] }), json!({ "members": [{ "value": "7" }] })),
            (json!({ "x": { "manager": "bulkId:a", "title": "t" } }), json!({ "x": { "title": "t" } })),
            (
                json!({ "Operations": [{ "op": "add", "path": "manager", "value": reference }, { "op": "add", "path": "members", "value": [reference] }] }),
                json!({ "Operations": [{ "op": "add", "path": "members", "value": [] }] }),
            ),
        ] {
            leave_out(&mut sent);
            assert_eq!(sent, left);
        }
    }
}
