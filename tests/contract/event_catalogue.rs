//! The catalogue of events: `spec/events.tsv` names every operation that writes, and the page in `docs/` is generated from it. With
//! `UPDATE_PAGES=1` a resource that has no rows gets those of its standard operations. The events of operations are compared with it at
//! the end of every test, on both engines (`chancery_testkit::catalogue`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use chancery_record::Field;
use chancery_resource::{Action, Op, Reach};
use chancery_testkit::catalogue::operations;
use chancery_web::{EventRow, event_rows};

use crate::sources::root;

const ROWS: &str = "spec/events.tsv";
const PAGE: &str = "docs/event-catalogue.md";

/// The event of an operation of the standard pattern.
fn word(op: &Op) -> Option<&'static str> {
    match op.action {
        Action::Create | Action::CreateBatch => Some("created"),
        Action::Replace | Action::ReplaceBatch | Action::Patch | Action::ReplaceMembers(_) => Some("updated"),
        Action::Delete | Action::DeleteBatch => Some("deleted"),
        Action::Relate(..) => Some("related"),
        Action::List | Action::Read | Action::Custom(_) => None,
    }
}

fn names(row: &EventRow) -> impl Iterator<Item = &'static str> {
    row.operations.iter().map(|name| name.trim_end_matches('?'))
}

/// The kind of the event of an operation of the standard pattern.
fn kind_of(name: &str, op: &Op, word: &str) -> String {
    let service = name.split(':').next().unwrap();
    format!("platform.{service}.{}.{word}", op.shape.name.to_lowercase())
}

#[test]
fn every_operation_that_writes_is_in_the_catalogue() {
    if std::env::var_os("UPDATE_PAGES").is_some() {
        add_standard_rows();
    }
    let rows = event_rows();
    let named: BTreeSet<&str> = rows.iter().flat_map(names).collect();
    let mut known = BTreeSet::new();
    for (name, _, op) in operations() {
        known.insert(name.clone());
        if op.writes() {
            assert!(named.contains(name.as_str()), "{name} is not in {ROWS}");
        }
        let Some(word) = word(op) else { continue };
        let kind = kind_of(&name, op, word);
        let its = |row: &&EventRow| names(row).any(|named| named == name);
        let is_there =
            rows.iter().filter(its).any(|row| row.kind == kind || row.kind.starts_with("platform.signin."));
        assert!(is_there, "{name} is not among the operations of {kind}");
    }
    let unknown: Vec<&&str> = named.iter().filter(|name| !known.contains(**name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are no operations");
}

/// Whether rows can be changed so that their scope changes.
fn can_be_moved(reach: Reach) -> bool {
    let is_open = |field: &Field| (field.access.put || field.access.patch) && !field.access.key;
    match reach {
        Reach::Customer(field)
        | Reach::Subscription(field)
        | Reach::Assigned(field, ..)
        | Reach::Of(field, _) => is_open(field),
        Reach::Instance(one, other) | Reach::Tenant(one, other) => is_open(one) || is_open(other),
        Reach::Any(ways) => ways.iter().any(|way| can_be_moved(*way)),
        Reach::Unless(way, _) => can_be_moved(*way),
        Reach::Store | Reach::Part | Reach::All => false,
    }
}

/// The rows of a resource that has none: its events of the standard pattern, each with its operations.
fn standard_rows(is_new: impl Fn(&Op) -> bool) -> BTreeMap<String, String> {
    let mut kinds: BTreeMap<String, (&Op, BTreeSet<String>)> = BTreeMap::new();
    for (name, _, op) in operations() {
        let Some(word) = word(op).filter(|_| is_new(op)) else { continue };
        let is_moved = word == "updated" && name.starts_with("management:") && can_be_moved(op.shape.reach);
        for word in [word].into_iter().chain(is_moved.then_some("moved")) {
            kinds
                .entry(kind_of(&name, op, word))
                .or_insert_with(|| (op, BTreeSet::new()))
                .1
                .insert(name.clone());
        }
    }
    let row = |(kind, (op, names)): (String, (&Op, BTreeSet<String>))| {
        let (data, audited) = match kind.rsplit('.').next().unwrap() {
            "created" | "updated" => ("changed", "yes"),
            "related" => ("relation, added, removed", "yes"),
            "moved" => ("-", "no"),
            _ => ("-", "yes"),
        };
        let names = names.into_iter().collect::<Vec<_>>().join(" ");
        let row = format!("{kind}\t{}\t{names}\t{data}\t{audited}\t-", op.shape.name);
        (kind, row)
    };
    kinds.into_iter().map(row).collect()
}

/// Adds the rows of resources that have none to the file, which the documents of webhooks are compiled with.
fn add_standard_rows() {
    let listed: BTreeSet<&str> = event_rows().iter().map(|row| row.resource).collect();
    let mut added = standard_rows(|op| !listed.contains(op.shape.name));
    if added.is_empty() {
        return;
    }
    let path = root().join(ROWS);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let kind = line.split('\t').next().unwrap();
        if number > 0 {
            // rows without a type are last
            let later = if kind == "-" { BTreeMap::new() } else { added.split_off(kind) };
            lines.extend(std::mem::replace(&mut added, later).into_values());
        }
        lines.push(line.to_owned());
    }
    lines.extend(added.into_values());
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    panic!("{ROWS} has new rows: compile again");
}

/// A resource without rows gets those that a resource of the pattern has.
#[test]
fn standard_rows_are_those_of_the_pattern() {
    let of = |resource: &str| -> Vec<String> {
        standard_rows(|op| op.shape.name == resource).into_values().collect()
    };
    let text = std::fs::read_to_string(root().join(ROWS)).unwrap();
    for resource in ["IpAddressRange", "CertStore"] {
        let rows = of(resource);
        assert!(rows.len() > 2, "{rows:?}");
        for row in rows {
            assert!(text.lines().any(|line| line == row), "{row}");
        }
    }
}

/// A row that moves to another scope has an event there: `moved`, of every operation that can do so.
#[test]
fn operations_that_can_move_a_row_name_the_moved_event() {
    let rows = event_rows();
    let mut missing = Vec::new();
    for (name, _, op) in operations() {
        let changes = matches!(op.action, Action::Replace | Action::ReplaceBatch | Action::Patch);
        if name.starts_with("management:") && changes && can_be_moved(op.shape.reach) {
            let kind = format!("platform.management.{}.moved", op.shape.name.to_lowercase());
            if !rows.iter().any(|row| row.kind == kind && names(row).any(|named| named == name)) {
                missing.push(format!("{name} is not among the operations of {kind}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_rows_are_in_order_and_whole() {
    let rows = event_rows();
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind).filter(|kind| !kind.is_empty()).collect();
    assert!(kinds.is_sorted_by(|one, next| one < next), "types in order, each once");
    for row in rows {
        if row.kind.is_empty() {
            assert!(!row.data.is_empty() && !row.operations.is_empty(), "a row without an event says why");
        } else {
            assert!(row.kind.starts_with("platform.") && !row.resource.is_empty(), "{}", row.kind);
        }
    }
}

/// The page, generated from the rows.
fn page() -> String {
    let mut page = String::from(
        "# The catalogue of events\n\nMade from `spec/events.tsv` by `tests/contract/event_catalogue.rs`; do not edit. \
         [events.md](events.md) describes how to read events.\n\nEvery event has `id`, `actor` and `scope` in its `data`; \
         members that end in `?` may be missing. An event without an operation is caused by a job or by a sign-in.\n\n\
         | Type | Resource | Caused by | More in `data` | Audited | Signal |\n|---|---|---|---|---|---|\n",
    );
    let rows = event_rows();
    for row in rows.iter().filter(|row| !row.kind.is_empty()) {
        let operations: Vec<String> =
            names(row).map(|name| format!("`{}`", name.replace(':', " "))).collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            row.kind,
            row.resource,
            operations.join(", "),
            row.data,
            row.audited,
            row.signal
        );
    }
    page.push_str("\n## Operations that leave no event\n\n| Operations | Why |\n|---|---|\n");
    for row in rows.iter().filter(|row| row.kind.is_empty()) {
        let operations: Vec<String> =
            names(row).map(|name| format!("`{}`", name.replace(':', " "))).collect();
        let _ = writeln!(page, "| {} | {} |", operations.join(", "), row.data);
    }
    page
}

/// `UPDATE_PAGES=1` writes it.
#[test]
fn the_page_is_made_from_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == page(), "run this test with UPDATE_PAGES=1");
}
