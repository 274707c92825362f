//! The examples of RFC 6902, appendix A, and what version 1 adds to them.

use chancery_record::{Json, read_json};
use chancery_resource::{Problem, ProblemKind};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{
    MAX_ADDED, MAX_OPERATIONS, PatchOutcome, Rules, apply_within, first_token, member_of, named_members,
};

fn apply(mut whole: Value, operations: &Json, rules: &Rules<'_>, at: &str) -> Result<PatchOutcome, Problem> {
    let written = apply_within(&mut whole, operations, rules, at, &mut 0)?;
    Ok(PatchOutcome { whole, written })
}

/// Applies a patch, as text, to a form of these members, all of which may be written.
fn apply_to(document: Value, members: &[&str], patch: &str) -> Result<PatchOutcome, Problem> {
    let operations = read_json(patch.as_bytes()).map_err(|error| Problem::invalid(error.0))?;
    apply(document, &operations, &Rules { members, may_write: &|_| true }, "")
}

/// Applies a patch to a form that has the document's own members and those that the patch names.
fn run(document: Value, patch: &Value) -> Result<PatchOutcome, Problem> {
    let operations = Json::from_serde(patch.clone());
    let Json::Array(items) = &operations else { panic!("{patch}") };
    let named: Vec<String> =
        items.iter().filter_map(|item| member_of(item, "path")).filter_map(first_token).collect();
    let own: Vec<String> = document.as_object().unwrap().keys().cloned().collect();
    let members: Vec<&str> = own.iter().chain(&named).map(String::as_str).collect();
    apply_to(document, &members, &patch.to_string())
}

fn error_of(outcome: Result<PatchOutcome, Problem>) -> Problem {
    match outcome {
        Ok(patched) => panic!("it was done: {}", patched.whole),
        Err(problem) => problem,
    }
}

/// The kind of the error and the one pointer that it names.
fn kind_and_pointer(outcome: Result<PatchOutcome, Problem>) -> (ProblemKind, String) {
    let problem = error_of(outcome);
    assert_eq!(problem.errors.len(), 1, "{problem:?}");
    (problem.kind, problem.errors[0].pointer.clone())
}

fn invalid(pointer: &str) -> (ProblemKind, String) {
    (ProblemKind::InvalidRequest, pointer.to_owned())
}

/// A.1 to A.8, A.10, A.11, A.14 and A.16: applied. All of them are about objects, so none is left out.
#[test]
fn examples_that_are_applied() {
    let examples = [
        (
            "A.1 adding an object member",
            json!({ "foo": "bar" }),
            json!([{ "op": "add", "path": "/baz", "value": "qux" }]),
            json!({ "baz": "qux", "foo": "bar" }),
        ),
        (
            "A.2 adding an array element",
            json!({ "foo": ["bar", "baz"] }),
            json!([{ "op": "add", "path": "/foo/1", "value": "qux" }]),
            json!({ "foo": ["bar", "qux", "baz"] }),
        ),
        (
            "A.3 removing an object member",
            json!({ "baz": "qux", "foo": "bar" }),
            json!([{ "op": "remove", "path": "/baz" }]),
            json!({ "foo": "bar" }),
        ),
        (
            "A.4 removing an array element",
            json!({ "foo": ["bar", "qux", "baz"] }),
            json!([{ "op": "remove", "path": "/foo/1" }]),
            json!({ "foo": ["bar", "baz"] }),
        ),
        (
            "A.5 replacing a value",
            json!({ "baz": "qux", "foo": "bar" }),
            json!([{ "op": "replace", "path": "/baz", "value": "boo" }]),
            json!({ "baz": "boo", "foo": "bar" }),
        ),
        (
            "A.6 moving a value",
            json!({ "foo": { "bar": "baz", "waldo": "fred" }, "qux": { "corge": "grault" } }),
            json!([{ "op": "move", "from": "/foo/waldo", "path": "/qux/thud" }]),
            json!({ "foo": { "bar": "baz" }, "qux": { "corge": "grault", "thud": "fred" } }),
        ),
        (
            "A.7 moving an array element",
            json!({ "foo": ["all", "grass", "cows", "eat"] }),
            json!([{ "op": "move", "from": "/foo/1", "path": "/foo/3" }]),
            json!({ "foo": ["all", "cows", "eat", "grass"] }),
        ),
        (
            "A.8 testing a value: success",
            json!({ "baz": "qux", "foo": ["a", 2, "c"] }),
            json!([
                { "op": "test", "path": "/baz", "value": "qux" },
                { "op": "test", "path": "/foo/1", "value": 2 },
            ]),
            json!({ "baz": "qux", "foo": ["a", 2, "c"] }),
        ),
        (
            "A.10 adding a nested member object",
            json!({ "foo": "bar" }),
            json!([{ "op": "add", "path": "/child", "value": { "grandchild": {} } }]),
            json!({ "foo": "bar", "child": { "grandchild": {} } }),
        ),
        (
            "A.11 ignoring unrecognized elements",
            json!({ "foo": "bar" }),
            json!([{ "op": "add", "path": "/baz", "value": "qux", "xyz": 123 }]),
            json!({ "foo": "bar", "baz": "qux" }),
        ),
        (
            "A.14 ~ escape ordering",
            json!({ "/": 9, "~1": 10 }),
            json!([{ "op": "test", "path": "/~01", "value": 10 }]),
            json!({ "/": 9, "~1": 10 }),
        ),
        (
            "A.16 adding an array value",
            json!({ "foo": ["bar"] }),
            json!([{ "op": "add", "path": "/foo/-", "value": ["abc", "def"] }]),
            json!({ "foo": ["bar", ["abc", "def"]] }),
        ),
    ];
    for (name, document, patch, expected) in examples {
        assert_eq!(run(document, &patch).unwrap().whole, expected, "{name}");
    }
}

/// A.9, A.12, A.13 and A.15: rejected.
#[test]
fn examples_that_are_rejected() {
    let failed = |pointer: &str| (ProblemKind::Conflict, pointer.to_owned());
    let examples = [
        (
            "A.9 testing a value: error",
            json!({ "baz": "qux" }),
            json!([{ "op": "test", "path": "/baz", "value": "bar" }]),
            failed("/0"),
        ),
        (
            "A.12 adding to a nonexistent target",
            json!({ "foo": "bar" }),
            json!([{ "op": "add", "path": "/baz/bat", "value": "qux" }]),
            invalid("/0/path"),
        ),
        (
            "A.15 comparing strings and numbers",
            json!({ "/": 9, "~1": 10 }),
            json!([{ "op": "test", "path": "/~01", "value": "10" }]),
            failed("/0"),
        ),
    ];
    for (name, document, patch, expected) in examples {
        assert_eq!(kind_and_pointer(run(document, &patch)), expected, "{name}");
    }
    // A.13 invalid JSON Patch document: JSON with a duplicate member is not read
    let twice = r#"[{ "op": "add", "path": "/baz", "value": "qux", "op": "remove" }]"#;
    read_json(twice.as_bytes()).unwrap_err();
}

#[test]
fn operations_and_paths_in_any_case() {
    let members = ["name", "items", "a", "A"];
    let document = json!({ "name": "n", "items": [{ "Id": 1 }], "a": 1, "A": 2 });
    let patch = r#"[
        { "OP": "Replace", "Path": "/NAME", "VALUE": "other" },
        { "op": "REPLACE", "path": "/Items/0/iD", "value": 2 },
        { "op": "ADD", "path": "/A", "value": 3 }
    ]"#;
    let patched = apply_to(document.clone(), &members, patch).unwrap();
    // an exact name comes first
    assert_eq!(patched.whole, json!({ "name": "other", "items": [{ "Id": 2 }], "a": 1, "A": 3 }));
    let written: Vec<_> = patched.written.iter().map(|(name, last)| (name.as_str(), *last)).collect();
    assert_eq!(written, [("A", 2), ("items", 1), ("name", 0)]);

    let patch = read_json(
        br#"[{ "op": "move", "from": "/ITEMS/0", "path": "/Name" }, { "op": "test", "path": "/none" }]"#,
    )
    .unwrap();
    assert_eq!(named_members(&patch, &members), ["name", "items"]);
    assert_eq!(
        kind_and_pointer(apply_to(document, &members, r#"[{ "op": "remove", "path": "/none" }]"#)),
        invalid("/0/path")
    );
}

#[test]
fn positions_and_the_end_of_an_array() {
    let document = json!({ "list": [1, 2] });
    let add = |at: &str| json!([{ "op": "add", "path": format!("/list/{at}"), "value": 3 }]);
    assert_eq!(run(document.clone(), &add("-")).unwrap().whole, json!({ "list": [1, 2, 3] }));
    assert_eq!(run(document.clone(), &add("2")).unwrap().whole, json!({ "list": [1, 2, 3] }));
    for at in ["3", "01", "+1", "-1", "x", ""] {
        assert_eq!(kind_and_pointer(run(document.clone(), &add(at))), invalid("/0/path"), "{at}");
    }
    for op in ["remove", "replace", "test"] {
        let patch = json!([{ "op": op, "path": "/list/-", "value": 1 }]);
        assert_eq!(
            kind_and_pointer(run(document.clone(), &patch)),
            invalid("/0/path"),
            "{op}: nothing is there yet"
        );
    }
}

#[test]
fn escaped_names() {
    let document = json!({ "a/b": 1, "m~n": { "x/y": 2 } });
    let patch = json!([
        { "op": "replace", "path": "/a~1b", "value": 3 },
        { "op": "replace", "path": "/m~0n/x~1y", "value": 4 },
    ]);
    let patched = run(document, &patch).unwrap();
    assert_eq!(patched.whole, json!({ "a/b": 3, "m~n": { "x/y": 4 } }));
    assert_eq!(patched.written.keys().collect::<Vec<_>>(), ["a/b", "m~n"]);
}

#[test]
fn malformed_operations_are_rejected() {
    let document = json!({ "a": { "b": {} } });
    let cases = [
        (json!({ "path": "/a" }), "/0/op"),
        (json!({ "op": "merge", "path": "/a" }), "/0/op"),
        (json!({ "op": 1, "path": "/a" }), "/0/op"),
        (json!({ "op": "remove" }), "/0/path"),
        (json!({ "op": "remove", "path": null }), "/0/path"),
        (json!({ "op": "remove", "path": "a" }), "/0/path"),
        // the whole form is not one of its members
        (json!({ "op": "remove", "path": "" }), "/0/path"),
        (json!({ "op": "add", "path": "", "value": {} }), "/0/path"),
        (json!({ "op": "remove", "path": "/a/none" }), "/0/path"),
        (json!({ "op": "add", "path": "/a" }), "/0/value"),
        (json!({ "op": "replace", "path": "/a" }), "/0/value"),
        (json!({ "op": "test", "path": "/a" }), "/0/value"),
        (json!({ "op": "move", "path": "/a" }), "/0/from"),
        (json!({ "op": "copy", "path": "/a", "from": null }), "/0/from"),
        (json!({ "op": "copy", "path": "/a", "from": "/none" }), "/0/from"),
        // into itself
        (json!({ "op": "move", "from": "/a", "path": "/a/b" }), "/0/path"),
        (json!("remove"), "/0/op"),
    ];
    for (operation, pointer) in cases {
        let patch = json!([operation]);
        assert_eq!(
            kind_and_pointer(apply_to(document.clone(), &["a"], &patch.to_string())),
            invalid(pointer),
            "{patch}"
        );
    }
    assert_eq!(kind_and_pointer(apply_to(document.clone(), &["a"], "{}")), invalid(""));
    // null is a value, and a member that is moved onto itself counts as written
    let patch =
        json!([{ "op": "move", "from": "/a", "path": "/a" }, { "op": "add", "path": "/a", "value": null }]);
    assert_eq!(run(document, &patch).unwrap().whole, json!({ "a": null }));
}

#[test]
fn a_failed_test_names_its_operation() {
    let patch = read_json(
        br#"[
        { "op": "replace", "path": "/a", "value": 2 },
        { "op": "test", "path": "/a", "value": 1 }
    ]"#,
    )
    .unwrap();
    let rules = Rules { members: &["a"], may_write: &|_| true };
    let problem = error_of(apply(json!({ "a": 1 }), &patch, &rules, "/3/patch"));
    assert_eq!((problem.kind, problem.status()), (ProblemKind::Conflict, 409));
    assert_eq!(problem.errors[0].pointer, "/3/patch/1");
    assert!(problem.detail.contains("/3/patch/1"), "{}", problem.detail);
}

#[test]
fn read_only_members_can_be_tested_and_copied() {
    let rules = Rules { members: &["id", "name"], may_write: &|member| member != "id" };
    let document = json!({ "id": "1", "name": "n" });
    let apply = |patch: &Value| apply(document.clone(), &Json::from_serde(patch.clone()), &rules, "");
    let reads = json!([
        { "op": "test", "path": "/id", "value": "1" }, { "op": "copy", "from": "/id", "path": "/name" },
    ]);
    let patched = apply(&reads).unwrap();
    assert_eq!(patched.whole, json!({ "id": "1", "name": "1" }));
    assert_eq!(patched.written.keys().collect::<Vec<_>>(), ["name"]);
    for (operation, pointer) in [
        (json!({ "op": "replace", "path": "/ID", "value": "2" }), "/0/path"),
        (json!({ "op": "remove", "path": "/id" }), "/0/path"),
        (json!({ "op": "copy", "from": "/name", "path": "/id" }), "/0/path"),
        (json!({ "op": "move", "from": "/id", "path": "/name" }), "/0/from"),
    ] {
        assert_eq!(kind_and_pointer(apply(&json!([operation]))), invalid(pointer));
    }
}

#[test]
fn bounds() {
    let many = |count: usize| {
        let one = json!({ "op": "test", "path": "/a", "value": 1 });
        Value::Array(vec![one; count])
    };
    run(json!({ "a": 1 }), &many(MAX_OPERATIONS)).unwrap();
    let problem = error_of(run(json!({ "a": 1 }), &many(MAX_OPERATIONS + 1)));
    assert_eq!(problem.kind, ProblemKind::PayloadTooLarge);

    // each copy doubles it
    let doubling = Value::Array(vec![json!({ "op": "copy", "from": "/a", "path": "/a/-" }); 40]);
    let problem = error_of(run(json!({ "a": ["x".repeat(1000)] }), &doubling));
    assert_eq!(problem.kind, ProblemKind::InvalidRequest);
    assert!(problem.detail.contains("puts in too much"), "{}", problem.detail);
    let large = json!([{ "op": "replace", "path": "/a", "value": "x".repeat(MAX_ADDED) }]);
    assert!(error_of(run(json!({ "a": 1 }), &large)).detail.contains("puts in too much"));

    // each copy into itself would nest twice as deep
    let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
    let within = format!("/a{}", "/0".repeat(19));
    for (op, from, path) in [("copy", "/a", within.as_str()), ("move", "/b", within.as_str())] {
        let patch = json!([{ "op": op, "from": from, "path": path }]);
        let document = json!({ "a": nested(20), "b": nested(20) });
        assert_eq!(kind_and_pointer(run(document, &patch)), invalid("/0/path"), "{op}");
    }
    let add = json!([{ "op": "add", "path": within, "value": nested(13) }]);
    assert_eq!(kind_and_pointer(run(json!({ "a": nested(20) }), &add)), invalid("/0/path"));
    let add = json!([{ "op": "add", "path": within, "value": nested(12) }]);
    run(json!({ "a": nested(20) }), &add).unwrap();
}

const MEMBERS: [&str; 5] = ["id", "name", "list", "inner", "a/b"];

fn document() -> Value {
    json!({
        "id": 7, "name": "a", "list": [1, "b", { "Id": 2 }], "inner": { "x": null, "y": [true] }, "a/b": null,
    })
}

fn path() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "/",
        "id",
        "/id",
        "/name",
        "/NAME",
        "/list",
        "/list/0",
        "/list/1",
        "/list/2/id",
        "/list/-",
        "/list/9",
        "/inner",
        "/inner/x",
        "/Inner/Y/0",
        "/inner/y/-",
        "/inner/z",
        "/a~1b",
        "/a~1b/c",
        "/~0",
        "/~",
        "/none",
    ])
}

fn operation() -> impl Strategy<Value = Value> {
    let op = select(vec!["add", "remove", "replace", "move", "copy", "test", "Add", "other"]);
    let value = select(vec![json!(null), json!(1), json!("a"), json!([]), json!({ "x": [1] }), json!(1.5)]);
    (op, path(), path(), value)
        .prop_map(|(op, path, from, value)| json!({ "op": op, "path": path, "from": from, "value": value }))
}

proptest! {
    #[test]
    fn only_members_reported_as_written_are_written(operations in vec(operation(), 0..12)) {
        let before = document();
        let count = operations.len();
        let rules = Rules { members: &MEMBERS, may_write: &|member| member != "id" };
        match apply(before.clone(), &Json::from_serde(Value::Array(operations)), &rules, "") {
            Ok(patched) => {
                for (name, value) in patched.whole.as_object().unwrap() {
                    prop_assert!(MEMBERS.contains(&name.as_str()), "{name} is no member: {value}");
                }
                for member in MEMBERS.iter().filter(|member| !patched.written.contains_key(**member)) {
                    prop_assert_eq!(patched.whole.get(member), before.get(member));
                }
                prop_assert!(!patched.written.contains_key("id"));
                prop_assert!(patched.written.values().all(|number| *number < count));
            }
            Err(problem) => {
                prop_assert!([400, 409].contains(&problem.status()));
                prop_assert_eq!(problem.errors.len(), 1);
                prop_assert!(problem.errors[0].pointer.starts_with('/'));
            }
        }
    }
}
