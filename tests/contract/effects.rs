//! The effect of each setting: `spec/effects.tsv` has a row for each field, option and relation that can be set, with the test that
//! changes it and sees the effect, or sees that its use is refused.

mod page;

use std::{collections::BTreeSet, path::Path};

use chancery::services;
use chancery_management::client_app::RESPONSE_TYPES;
use chancery_record::{Column, Field, Kind};
use chancery_resource::{
    Action, Op, Shape,
    settings::{CATALOGUE, Form},
};

use crate::sources::{crates, root, sources};

/// A setting: its owner, and its name there.
type Setting = (String, String);

struct Row {
    setting: Setting,
    effect: &'static str,
    state: &'static str,
    test: &'static str,
}

/// The rows of a table of five columns, below its heading.
fn cells(text: &'static str, heading: &'static str) -> impl Iterator<Item = [&'static str; 5]> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(heading));
    lines.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        cells.try_into().unwrap_or_else(|_| panic!("not five cells: {line}"))
    })
}

/// The rows of `spec/effects.tsv`.
fn rows() -> Vec<Row> {
    let row = |[owner, name, effect, state, test]: [&'static str; 5]| Row {
        setting: (owner.to_owned(), name.to_owned()),
        effect,
        state,
        test,
    };
    cells(include_str!("../../spec/effects.tsv"), "owner\tname\teffect\tstate\ttest").map(row).collect()
}

/// Some values of an enumeration: of a field, or of an option.
struct Enumerated {
    setting: Setting,
    values: Vec<&'static str>,
    state: &'static str,
    test: &'static str,
}

/// The rows of `spec/values.tsv`.
fn values() -> Vec<Enumerated> {
    let row = |[owner, name, values, state, test]: [&'static str; 5]| Enumerated {
        setting: (owner.to_owned(), name.to_owned()),
        values: values.split(", ").collect(),
        state,
        test,
    };
    cells(include_str!("../../spec/values.tsv"), "owner\tname\tvalues\tstate\ttest").map(row).collect()
}

/// Whether bodies set a field: not path parameters, nor generated values.
fn can_be_set(field: &Field) -> bool {
    let access = field.access;
    let is_written = access.create || access.put || access.patch;
    let is_stored = matches!(access.column, Column::Own | Column::Unstored);
    let is_path = access.key && matches!(field.kind, Kind::Id);
    is_written && is_stored && !is_path && !field.is_token()
}

/// Whether an operation is of the pattern, and writes rows of its resource.
fn writes_rows(op: &Op) -> bool {
    matches!(
        op.action,
        Action::Create
            | Action::CreateBatch
            | Action::Replace
            | Action::ReplaceBatch
            | Action::Patch
            | Action::ReplaceMembers(_)
    )
}

/// Each value of each enumeration that can be set.
fn declared_values() -> BTreeSet<(Setting, &'static str)> {
    let mut all = BTreeSet::new();
    for op in services().iter().flat_map(|service| service.all()).filter(|op| op.shape.base.is_none()) {
        for field in op.shape.fields.iter().filter(|field| writes_rows(op) && can_be_set(field)) {
            if let Kind::Choice(values) = field.kind {
                let setting = (op.shape.name.to_owned(), field.wire().to_owned());
                all.extend(values.iter().map(|value| (setting.clone(), *value)));
            }
        }
    }
    for entry in CATALOGUE.iter() {
        if let Form::Choice(values) = entry.form {
            let setting = (owner_of_options(entry.owner.type_name()), entry.name.to_owned());
            all.extend(values.iter().map(|value| (setting.clone(), *value)));
        }
    }
    let types = ("ClientApp".to_owned(), "allowedResponseTypes".to_owned());
    all.extend(RESPONSE_TYPES.map(|kind| (types.clone(), kind)));
    all
}

/// All that can be set: fields and relations of the newest version, and options.
fn declared() -> BTreeSet<Setting> {
    let mut all = BTreeSet::new();
    let mut add = |shape: &Shape, name: &str| all.insert((shape.name.to_owned(), name.to_owned()));
    for op in services().iter().flat_map(|service| service.all()).filter(|op| op.shape.base.is_none()) {
        if writes_rows(op) {
            for field in op.shape.fields.iter().filter(|field| can_be_set(field)) {
                add(op.shape, field.wire());
            }
            for relation in op.shape.relations.iter().filter(|relation| relation.listed.at_creation()) {
                add(op.shape, relation.name);
            }
        }
        if let Action::Relate(relation, _) = op.action {
            add(op.shape, relation.name);
        }
    }
    let options =
        CATALOGUE.iter().map(|entry| (owner_of_options(entry.owner.type_name()), entry.name.to_owned()));
    all.extend(options);
    all
}

fn owner_of_options(kind: &str) -> String {
    format!("{kind} options")
}

/// The module of a file below the root of its crate, as nextest names it.
fn module(file: &Path, root: &Path) -> String {
    let within = file.strip_prefix(root).unwrap().with_extension("");
    let parts = within.iter().map(|part| part.to_str().unwrap());
    parts.filter(|part| !["mod", "lib", "main"].contains(part)).collect::<Vec<_>>().join("::")
}

/// The names of the tests in a source: functions that are marked as such, and those that run on both engines.
fn tests_in(text: &str) -> Vec<&str> {
    let (mut names, mut is_marked, mut runs_on_both) = (Vec::new(), false, false);
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            runs_on_both = line.starts_with("on_both_engines!") || (runs_on_both && line != "}");
        }
        let code = line.trim_start();
        let function = code.strip_prefix("async fn ").or_else(|| code.strip_prefix("fn "));
        if let Some(name) = function.and_then(|rest| rest.split_once('(')).map(|(name, _)| name) {
            let is_of_both = runs_on_both && line.starts_with("    async fn ");
            names.extend((is_marked || is_of_both).then_some(name));
        }
        let is_mark = code == "#[test]" || code.starts_with("#[tokio::test");
        is_marked = is_mark || (is_marked && (code.starts_with("#[") || code.starts_with("///")));
    }
    names
}

/// The tests of the contract and of the crates, without the engine that ends their names.
fn tests() -> BTreeSet<String> {
    let mut roots = vec![(root().join("tests/contract"), ""), (root().join("tests/sign_in"), "")];
    roots.extend(crates().into_values().map(|folder| (folder.join("src"), "tests")));
    let mut names = BTreeSet::new();
    for (root, inner) in roots {
        for (file, text) in sources(&root) {
            for name in tests_in(&text) {
                let module = module(&file, &root);
                let is_apart = inner.is_empty() || module.split("::").any(|part| part == inner);
                let module = if is_apart { module } else { format!("{module}::{inner}") };
                let name = ["_on_sqlite", "_on_postgres", "_sqlite", "_postgres"]
                    .iter()
                    .find_map(|engine| name.strip_suffix(engine))
                    .unwrap_or(name);
                names.insert(format!("{module}::{name}"));
            }
        }
    }
    names
}

#[test]
fn every_setting_has_a_row_and_every_row_is_of_a_setting() {
    let (declared, rows) = (declared(), rows());
    let named: BTreeSet<Setting> = rows.iter().map(|row| row.setting.clone()).collect();
    let missing: Vec<&Setting> = declared.difference(&named).collect();
    assert!(missing.is_empty(), "not in spec/effects.tsv: {missing:#?}");
    let unknown: Vec<&Setting> = named.difference(&declared).collect();
    assert!(unknown.is_empty(), "spec/effects.tsv names what cannot be set: {unknown:#?}");
    assert!(rows.is_sorted_by(|one, other| one.setting < other.setting), "in order, and each once");
}

#[test]
fn every_setting_works_or_its_use_is_refused() {
    for row in rows() {
        let (owner, name) = &row.setting;
        assert!(["works", "refused when used"].contains(&row.state), "{owner}.{name} is {:?}", row.state);
        let is_sentence = row.effect.ends_with('.') && row.effect.len() <= 160;
        assert!(is_sentence, "{owner}.{name}: one short sentence says what changes when it is set");
    }
}

#[test]
fn every_setting_has_a_test() {
    let tests = tests();
    assert!(tests.contains("effects::every_setting_has_a_test") && tests.len() > 1000);
    let is_missing = |row: &Row| !tests.contains(row.test);
    let missing: Vec<String> = rows()
        .into_iter()
        .filter(is_missing)
        .map(|row| format!("{}.{}: {}", row.setting.0, row.setting.1, row.test))
        .collect();
    assert!(missing.is_empty(), "tests that are not there: {missing:#?}");
}

/// A value that can be set works, or its use is refused; a test uses it.
#[test]
fn every_value_of_an_enumeration_has_a_row_with_a_test() {
    let (declared, rows, tests) = (declared_values(), values(), tests());
    let all = rows.iter().flat_map(|row| row.values.iter().map(|value| (row.setting.clone(), *value)));
    let named: BTreeSet<(Setting, &str)> = all.clone().collect();
    assert_eq!(named.len(), all.count(), "each value once");
    let missing: Vec<_> = declared.difference(&named).collect();
    assert!(missing.is_empty(), "not in spec/values.tsv: {missing:#?}");
    let unknown: Vec<_> = named.difference(&declared).collect();
    assert!(unknown.is_empty(), "spec/values.tsv names what cannot be set: {unknown:#?}");
    assert!(rows.is_sorted_by_key(|row| &row.setting), "in order");
    for row in &rows {
        let (owner, name) = &row.setting;
        assert!(["works", "refused when used"].contains(&row.state), "{owner}.{name} is {:?}", row.state);
        assert!(tests.contains(row.test), "{owner}.{name}: no test {}", row.test);
    }
}
