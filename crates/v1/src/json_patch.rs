//! JSON Patch (RFC 6902) on the forms of version 1. `op` and the names in paths are read in any case.

use std::collections::BTreeMap;

use chancery_record::{Json, MAX_DEPTH};
use chancery_resource::{Problem, ProblemKind};
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation,
    ReplaceOperation, TestOperation, jsonptr::PointerBuf, patch,
};
use serde_json::Value;

/// The most operations of a patch.
const MAX_OPERATIONS: usize = 1000;
/// The most bytes that the patches of one request may add together: copies of copies double the size with
/// each operation, and a batch adds the same value to thousands of rows.
const MAX_ADDED: usize = 16 << 20;

/// The result of a patch.
pub struct PatchOutcome {
    /// The document after the patch.
    pub whole: Value,
    /// The members that were written, each with the index of the last operation that wrote it.
    pub written: BTreeMap<String, usize>,
}

/// The members of a form, and which of them a patch may write.
pub struct Rules<'a> {
    /// The members of the form.
    pub members: &'a [&'a str],
    /// Whether a patch may write a member.
    pub may_write: &'a dyn Fn(&str) -> bool,
}

/// The members that the paths of a patch name, without unknown ones.
pub fn named_members<'a>(operations: &Json, members: &[&'a str]) -> Vec<&'a str> {
    let Json::Array(operations) = operations else { return Vec::new() };
    let paths = operations.iter().flat_map(|one| [member_of(one, "path"), member_of(one, "from")]);
    let names = paths.flatten().filter_map(first_token);
    names.filter_map(|name| find(members, &name)).collect()
}

/// Applies a patch to `whole`; returns the members that it wrote, each with the index of the last operation
/// that wrote it. `at` is the JSON Pointer of the patch in the body; `added` counts the bytes that this and
/// earlier patches add. After an error `whole` is unusable.
///
/// # Errors
/// The first operation that cannot be applied; 409 where a test fails.
pub fn apply_within(
    whole: &mut Value,
    operations: &Json,
    rules: &Rules<'_>,
    at: &str,
    added: &mut usize,
) -> Result<BTreeMap<String, usize>, Problem> {
    let Json::Array(operations) = operations else {
        return Err(Problem::wrong_at(
            at,
            format!("must be an array of operations, not {}", operations.word()),
        ));
    };
    if operations.len() > MAX_OPERATIONS {
        let detail = format!("A patch takes at most {MAX_OPERATIONS} operations, not {}.", operations.len());
        return Err(Problem::new(ProblemKind::PayloadTooLarge, detail));
    }
    let mut written = BTreeMap::new();
    for (number, operation) in operations.iter().enumerate() {
        let at = format!("{at}/{number}");
        let operation = Operation::read(operation, whole, rules, &at)?;
        if let Some(new) = operation.new_value(whole) {
            *added += new.to_string().len();
            if *added > MAX_ADDED {
                return Err(Problem::wrong_at(&at, "puts in too much: it may be 16 MiB with all before it"));
            }
            if operation.patch.path().count() + depth(new) > MAX_DEPTH {
                return Err(Problem::wrong_at(format!("{at}/path"), "is too deep: 32 levels at most"));
            }
        }
        written.extend(operation.writes.iter().map(|member| (member.clone(), number)));
        operation.run(whole, &at)?;
    }
    Ok(written)
}

/// Whether a value holds a number that is not an integer or is too large: its digits are not stored.
fn has_other_number(value: &Json) -> bool {
    match value {
        Json::Number => true,
        Json::Array(items) => items.iter().any(has_other_number),
        Json::Object(members) => members.iter().any(|(_, value)| has_other_number(value)),
        _ => false,
    }
}

/// The levels that a value nests. A patched document is never deeper than a body may be.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

/// A parsed operation, and the members that it writes.
struct Operation {
    patch: PatchOperation,
    writes: Vec<String>,
}

const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

impl Operation {
    fn read(operation: &Json, whole: &Value, rules: &Rules<'_>, at: &str) -> Result<Self, Problem> {
        let mut writes = Vec::new();
        let mut pointer = |name: &str, is_written: bool| {
            let at = format!("{at}/{name}");
            let text = member_of(operation, name).ok_or_else(|| Problem::wrong_at(&at, "is missing"))?;
            let target = resolve(whole, text, rules);
            let (member, path) = target.ok_or_else(|| Problem::wrong_at(&at, "names no member"))?;
            if is_written && !(rules.may_write)(&member) {
                return Err(Problem::wrong_at(&at, format!("{member} is not written here")));
            }
            writes.extend(is_written.then_some(member));
            PointerBuf::parse(path).map_err(|_| Problem::wrong_at(&at, "is no JSON Pointer (RFC 6901)"))
        };
        let value = || match member(operation, "value") {
            Some(value) if has_other_number(value) => {
                Err(Problem::wrong_at(format!("{at}/value"), "holds a number that no member takes"))
            }
            Some(value) => Ok(value.to_serde()),
            None => Err(Problem::wrong_at(format!("{at}/value"), "is missing")),
        };
        let kind = member_of(operation, "op").map(str::to_ascii_lowercase).unwrap_or_default();
        let operation = match kind.as_str() {
            "add" => PatchOperation::Add(AddOperation { path: pointer("path", true)?, value: value()? }),
            "remove" => PatchOperation::Remove(RemoveOperation { path: pointer("path", true)? }),
            "replace" => {
                PatchOperation::Replace(ReplaceOperation { path: pointer("path", true)?, value: value()? })
            }
            "move" => PatchOperation::Move(MoveOperation {
                path: pointer("path", true)?,
                from: pointer("from", true)?,
            }),
            "copy" => PatchOperation::Copy(CopyOperation {
                path: pointer("path", true)?,
                from: pointer("from", false)?,
            }),
            "test" => PatchOperation::Test(TestOperation { path: pointer("path", false)?, value: value()? }),
            _ => {
                let detail = format!("must be one of {}", OPERATIONS.join(", "));
                return Err(Problem::wrong_at(format!("{at}/op"), detail));
            }
        };
        Ok(Self { patch: operation, writes })
    }

    /// The value that the operation adds, if there is one.
    fn new_value<'a>(&'a self, whole: &'a Value) -> Option<&'a Value> {
        match &self.patch {
            PatchOperation::Add(AddOperation { value, .. })
            | PatchOperation::Replace(ReplaceOperation { value, .. }) => Some(value),
            PatchOperation::Copy(CopyOperation { from, .. })
            | PatchOperation::Move(MoveOperation { from, .. }) => whole.pointer(from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        }
    }

    fn run(self, whole: &mut Value, at: &str) -> Result<(), Problem> {
        patch(whole, &[self.patch]).map_err(|error| match error.kind {
            PatchErrorKind::TestFailed => {
                let detail = format!("{at} does not hold: the value is another.");
                Problem { errors: Problem::wrong_at(at, "does not hold").errors, ..Problem::conflict(detail) }
            }
            _ => Problem::wrong_at(format!("{at}/path"), "names nothing that this can be done to"),
        })
    }
}

/// A member of an operation, by its name in any case.
fn member<'a>(operation: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(members) = operation else { return None };
    members.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn member_of<'a>(operation: &'a Json, name: &str) -> Option<&'a str> {
    match member(operation, name) {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

fn first_token(path: &str) -> Option<String> {
    path.strip_prefix('/')?.split('/').next().map(unescape)
}

/// The name that is equal, else the one that is equal without regard to case.
fn find<'a>(names: &[&'a str], name: &str) -> Option<&'a str> {
    let exact = names.iter().find(|known| **known == name);
    exact.or_else(|| names.iter().find(|known| known.eq_ignore_ascii_case(name))).copied()
}

/// The first member of a path, and the path with the names in their own case.
fn resolve(whole: &Value, path: &str, rules: &Rules<'_>) -> Option<(String, String)> {
    let tokens = path.strip_prefix('/')?.split('/').map(unescape);
    let (mut current, mut resolved, mut member) = (Some(whole), String::new(), None);
    for token in tokens {
        let name = match current {
            _ if member.is_none() => find(rules.members, &token)?.to_owned(),
            Some(Value::Object(members)) => {
                let names: Vec<&str> = members.keys().map(String::as_str).collect();
                find(&names, &token).map_or(token, str::to_owned)
            }
            _ => token,
        };
        current = match current {
            Some(Value::Object(members)) => members.get(&name),
            Some(Value::Array(items)) => name.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        resolved.push('/');
        resolved.push_str(&escape(&name));
        member.get_or_insert(name);
    }
    Some((member?, resolved))
}

#[cfg(test)]
mod tests;
