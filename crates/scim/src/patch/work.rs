//! Limits on the work of a patch, counted while it is read and before it is applied: each change scans the elements of
//! its attribute, and each comparison of a path's filter scans all of their text.

use chancery_resource::Expression;
use serde_json::Value;

use crate::{ScimError, name::AttributePath, read::MAX_ELEMENTS};

/// The most changes of a patch. An operation with an object of attributes counts once for each of them.
pub const MAX_OPERATIONS: usize = 1000;
/// The most comparisons of a path's filter.
pub const MAX_TERMS: usize = 8;
/// The most bytes of the elements and paths of a patch: more than twice what is stored of all attributes
/// together.
pub const MAX_BYTES: usize = 36 << 10;

/// The total work of the changes read so far.
#[derive(Default)]
pub struct Work {
    changes: usize,
    elements: usize,
    bytes: usize,
}

impl Work {
    /// Counts a change.
    ///
    /// # Errors
    /// It is one too many, or the filter of its path has too many comparisons.
    pub fn add_change(&mut self, path: &AttributePath) -> Result<(), ScimError> {
        self.changes += 1;
        if self.changes > MAX_OPERATIONS {
            let detail = format!("A patch writes at most {MAX_OPERATIONS} attributes, one after another.");
            return Err(ScimError::too_large(detail));
        }
        let count = path.filter.as_ref().map_or(0, terms);
        if count > MAX_TERMS {
            let detail =
                format!("The path of {} has {count} terms, more than {MAX_TERMS}.", path.attribute.name);
            return Err(ScimError::too_large(detail));
        }
        Ok(())
    }

    /// Counts the elements of a change of a multi-valued attribute, at least one: the change scans the stored elements
    /// whatever its value is.
    ///
    /// # Errors
    /// They are too many, or too long together.
    pub fn add_elements(&mut self, path: &AttributePath, value: Option<&Value>) -> Result<(), ScimError> {
        self.elements += value.and_then(Value::as_array).map_or(1, Vec::len).max(1);
        if self.elements > MAX_ELEMENTS {
            let detail = format!("The operations of a patch have at most {MAX_ELEMENTS} elements together.");
            return Err(ScimError::too_large(detail));
        }
        self.bytes += path.filter.as_ref().map_or(0, bytes_of) + value.map_or(0, length);
        if self.bytes > MAX_BYTES {
            let detail = format!("The elements of a patch have at most {MAX_BYTES} bytes together.");
            return Err(ScimError::too_large(detail));
        }
        Ok(())
    }
}

/// The number of comparisons of a filter.
fn terms(filter: &Expression) -> usize {
    match filter {
        Expression::And(left, right) | Expression::Or(left, right) => terms(left) + terms(right),
        Expression::Not(inner) | Expression::Some { inner, .. } => terms(inner),
        Expression::Compare { .. } => 1,
    }
}

/// The length of the texts that a filter compares with.
fn bytes_of(filter: &Expression) -> usize {
    match filter {
        Expression::And(left, right) | Expression::Or(left, right) => bytes_of(left) + bytes_of(right),
        Expression::Not(inner) | Expression::Some { inner, .. } => bytes_of(inner),
        Expression::Compare { value, .. } => match value {
            chancery_resource::Literal::Text(text) => text.len(),
            _ => 0,
        },
    }
}

/// The length of the names and texts of a value.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(length).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + length(value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::Json;
    use serde_json::{Value, json};

    use super::{MAX_BYTES, MAX_TERMS};
    use crate::{GROUP, Patch, ScimError, Target, USER};

    fn read(operations: &Value) -> Result<(), ScimError> {
        let body = Json::from_serde(json!({ "Operations": operations }));
        Patch::read(&USER, Target::Store, &body).map(|_| ())
    }

    fn roles(count: usize) -> Value {
        (0..count).map(|number| json!({ "value": number.to_string() })).collect()
    }

    fn or(count: usize) -> String {
        let terms: Vec<String> = (0..count).map(|number| format!("display eq \"{number}\"")).collect();
        terms.join(" or ")
    }

    #[track_caller]
    fn assert_too_much(read: Result<(), ScimError>) {
        assert_eq!(read.unwrap_err().status, 413);
    }

    #[test]
    fn elements_of_all_operations_are_counted_together() {
        let add = |count: usize| json!({ "op": "add", "path": "roles", "value": roles(count) });
        read(&json!([add(60), add(40)])).unwrap();
        assert_too_much(read(&json!([add(60), add(41)])));
        let one =
            json!({ "op": "replace", "path": "emails[type eq \"work\"].value", "value": "a@example.com" });
        read(&vec![one.clone(); 100].into()).unwrap();
        assert_too_much(read(&vec![one; 101].into()));
        // single-valued attributes are limited by the number of operations alone
        let title = json!({ "op": "replace", "path": "title", "value": "x" });
        read(&vec![title; 1000].into()).unwrap();
    }

    #[test]
    fn terms_of_a_path_are_counted() {
        let remove = |count: usize| json!([{ "op": "remove", "path": format!("roles[{}]", or(count)) }]);
        read(&remove(MAX_TERMS)).unwrap();
        assert_too_much(read(&remove(MAX_TERMS + 1)));
        let long =
            json!([{ "op": "remove", "path": format!("roles[not (display pr) and ({})]", or(MAX_TERMS)) }]);
        assert_too_much(read(&long));
    }

    #[test]
    fn long_elements_are_refused() {
        let add = |length: usize| json!([{ "op": "add", "path": "roles", "value": [{ "value": "r".repeat(length) }] }]);
        read(&add(MAX_BYTES - 5)).unwrap();
        assert_too_much(read(&add(MAX_BYTES - 4)));
    }

    #[test]
    fn members_of_a_group_are_bounded_by_the_body_alone() {
        let add = json!({ "Operations": [{ "op": "add", "path": "members", "value": roles(2000) }] });
        Patch::read(&GROUP, Target::Store, &Json::from_serde(add)).map(|_| ()).unwrap();
    }
}
