//! The effect of each setting: each field, option and relation that can be set has a test that changes it and shows the effect, or shows
//! that its use is refused. The documentation of the test states it, in lines at the end such as
//! ``- Effect of `Customer.name`: Lists show the customer under this name.`` and ``- Refusal of `ClientApp.idTokenEncryptedResponseAlg`: ..``.

mod page;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

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

/// What a test states of a setting.
struct Row {
    setting: Setting,
    effect: String,
    state: &'static str,
    test: String,
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

/// The effects that tests state, in the order of the settings.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = tests()
        .iter()
        .flat_map(|(test, lines)| {
            statements(lines).map(|(setting, effect, state)| Row {
                setting,
                effect,
                state,
                test: test.clone(),
            })
        })
        .collect();
    rows.sort_by(|one, other| one.setting.cmp(&other.setting));
    rows
}

/// The settings, effects and states in the documentation of a test. A statement may continue on the next lines.
fn statements(lines: &[String]) -> impl Iterator<Item = (Setting, String, &'static str)> {
    let mut found: Vec<(Setting, String, &'static str)> = Vec::new();
    for line in lines {
        let state = match line.split_once(" of `") {
            Some(("- Effect", rest)) => Some(("works", rest)),
            Some(("- Refusal", rest)) => Some(("refused when used", rest)),
            _ => None,
        };
        if let Some((state, rest)) = state {
            let (setting, effect) = rest.split_once("`: ").unwrap_or_else(|| panic!("no effect: {line}"));
            let (owner, name) = setting.split_once('.').unwrap_or_else(|| panic!("no owner: {line}"));
            found.push(((owner.to_owned(), name.to_owned()), effect.to_owned(), state));
        } else if let (Some((_, effect, _)), Some(rest)) = (found.last_mut(), line.strip_prefix("  ")) {
            *effect = format!("{effect} {rest}");
        }
    }
    found.into_iter()
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

/// The names of the tests in a source, with their documentation: functions that are marked as such, and those that run on both engines.
fn tests_in(text: &str) -> Vec<(&str, Vec<String>)> {
    let (mut all, mut about, mut is_marked, mut runs_on_both) = (Vec::new(), Vec::new(), false, false);
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            runs_on_both = line.starts_with("on_both_engines!") || (runs_on_both && line != "}");
        }
        let code = line.trim_start();
        if let Some(documentation) = code.strip_prefix("///") {
            about.push(documentation.strip_prefix(' ').unwrap_or(documentation).to_owned());
            continue;
        }
        if code.starts_with("#[") {
            is_marked |= code == "#[test]" || code.starts_with("#[tokio::test");
            continue;
        }
        let function = code.strip_prefix("async fn ").or_else(|| code.strip_prefix("fn "));
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            let is_of_both = runs_on_both && line.starts_with("    async fn ");
            all.extend((is_marked || is_of_both).then(|| (name, std::mem::take(&mut about))));
        }
        about.clear();
        is_marked = false;
    }
    all
}

/// The test that walks through the rows of all resources, and the rows, which state the effects that it shows.
const WALK: &str = "management::pattern::every_resource_follows_the_crud_pattern";
const WALKED: &str = include_str!("../src/pattern.rs");

/// The documentation of the rows.
fn about_rows() -> impl Iterator<Item = String> {
    let (before, _) = WALKED.split_once("pub const ROWS").unwrap();
    let about = before.lines().rev().map_while(|line| line.strip_prefix("///"));
    let lines: Vec<_> = about.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect();
    lines.into_iter().rev()
}

/// The tests of the contract and of the crates, without the engine that ends their names, and their documentation.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut roots = vec![(root().join("tests/contract"), ""), (root().join("tests/sign_in"), "")];
    roots.extend(crates().into_values().map(|folder| (folder.join("src"), "tests")));
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (root, inner) in roots {
        for (file, text) in sources(&root) {
            let module = module(&file, &root);
            let is_apart = inner.is_empty() || module.split("::").any(|part| part == inner);
            let module = if is_apart { module } else { format!("{module}::{inner}") };
            for (name, about) in tests_in(&text) {
                let name = ["_on_sqlite", "_on_postgres", "_sqlite", "_postgres"]
                    .iter()
                    .find_map(|engine| name.strip_suffix(engine))
                    .unwrap_or(name);
                all.entry(format!("{module}::{name}")).or_default().extend(about);
            }
        }
    }
    all.get_mut(WALK).unwrap().extend(about_rows());
    all
}

#[test]
fn every_setting_has_one_test_that_states_its_effect() {
    let (declared, rows) = (declared(), rows());
    let named: BTreeSet<Setting> = rows.iter().map(|row| row.setting.clone()).collect();
    let missing: Vec<&Setting> = declared.difference(&named).collect();
    assert!(missing.is_empty(), "no test states the effect of these: {missing:#?}");
    let unknown: Vec<&Setting> = named.difference(&declared).collect();
    assert!(unknown.is_empty(), "tests state effects of what cannot be set: {unknown:#?}");
    for pair in rows.windows(2) {
        assert_ne!(
            pair[0].setting, pair[1].setting,
            "{} and {} state its effect",
            pair[0].test, pair[1].test
        );
    }
}

#[test]
fn an_effect_is_one_short_sentence() {
    for Row { setting: (owner, name), effect, test, .. } in rows() {
        let is_sentence = effect.ends_with('.') && effect.len() <= 160;
        assert!(is_sentence, "{test}: {owner}.{name}: one short sentence says what changes when it is set");
    }
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
        assert!(tests.contains_key(row.test), "{owner}.{name}: no test {}", row.test);
    }
}
