//! How much work a patch may be. It is counted as the patch is read, before anything is done for it: each step goes through
//! the elements of its attribute, and each term of a path through all of their text.

use chancery_resource::Expression;
use serde_json::Value;

use crate::{Refusal, name::Target, read::MAX_ELEMENTS};

/// The most operations of a patch. One with an object of attributes counts once for each of them.
pub const MAX_OPERATIONS: usize = 1000;
/// The most terms of a path.
pub const MAX_TERMS: usize = 8;
/// The most bytes of the elements and paths of a patch: more than twice what is kept of all attributes together.
pub const MAX_BYTES: usize = 36 << 10;

/// What the steps of a patch that were read add up to.
#[derive(Default)]
pub struct Work {
    steps: usize,
    elements: usize,
    bytes: usize,
}

impl Work {
    /// Counts a step.
    ///
    /// # Errors
    /// It is one too many, or its path has too many terms.
    pub fn add_step(&mut self, target: &Target) -> Result<(), Refusal> {
        self.steps += 1;
        if self.steps > MAX_OPERATIONS {
            let detail = format!("A patch writes at most {MAX_OPERATIONS} attributes, one after another.");
            return Err(Refusal::too_much(detail));
        }
        let found = target.filter.as_ref().map_or(0, terms);
        if found > MAX_TERMS {
            let detail =
                format!("The path of {} has {found} terms, more than {MAX_TERMS}.", target.attribute.name);
            return Err(Refusal::too_much(detail));
        }
        Ok(())
    }

    /// Counts the elements that a step on an attribute with many values brings, and at least one: whether it goes through
    /// those that are there does not depend on its value.
    ///
    /// # Errors
    /// They are too many, or too long together.
    pub fn add_elements(&mut self, target: &Target, value: Option<&Value>) -> Result<(), Refusal> {
        self.elements += value.and_then(Value::as_array).map_or(1, Vec::len).max(1);
        if self.elements > MAX_ELEMENTS {
            let detail = format!("The operations of a patch have at most {MAX_ELEMENTS} elements together.");
            return Err(Refusal::too_much(detail));
        }
        self.bytes += target.filter.as_ref().map_or(0, bytes_of) + value.map_or(0, length);
        if self.bytes > MAX_BYTES {
            let detail = format!("The elements of a patch have at most {MAX_BYTES} bytes together.");
            return Err(Refusal::too_much(detail));
        }
        Ok(())
    }
}

/// How many comparisons a filter has.
fn terms(filter: &Expression) -> usize {
    match filter {
        Expression::And(left, right) | Expression::Or(left, right) => terms(left) + terms(right),
        Expression::Not(inner) | Expression::Some { inner, .. } => terms(inner),
        Expression::Compare { .. } => 1,
    }
}

/// How long the texts are that a filter compares with.
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

/// How long the names and texts of a value are.
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
    use crate::{GROUP, Home, Patch, Refusal, USER};

    fn read(operations: &Value) -> Result<(), Refusal> {
        let body = Json::from_serde(json!({ "Operations": operations }));
        Patch::read(&USER, Home::Store, &body).map(|_| ())
    }

    fn roles(count: usize) -> Value {
        (0..count).map(|number| json!({ "value": number.to_string() })).collect()
    }

    fn or(count: usize) -> String {
        let terms: Vec<String> = (0..count).map(|number| format!("display eq \"{number}\"")).collect();
        terms.join(" or ")
    }

    #[track_caller]
    fn assert_too_much(read: Result<(), Refusal>) {
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
        // what has one value is counted by operations alone
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
        Patch::read(&GROUP, Home::Store, &Json::from_serde(add)).map(|_| ()).unwrap();
    }
}
