//! The catalogue of events: `spec/events.tsv` names every operation that writes, and the page in `docs/` is generated from it. The
//! events of operations are compared with it at the end of every test, on both engines (`chancery_testkit::catalogue`).

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use chancery_record::Field;
use chancery_resource::{Action, Op, Reach};
use chancery_testkit::catalogue::operations;
use chancery_web::{EventRow, event_rows};

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

#[test]
fn every_operation_that_writes_is_in_the_catalogue() {
    let rows = event_rows();
    let named: BTreeSet<&str> = rows.iter().flat_map(names).collect();
    let mut known = BTreeSet::new();
    for (name, _, op) in operations() {
        known.insert(name.clone());
        if op.writes() {
            assert!(named.contains(name.as_str()), "{name} is not in spec/events.tsv");
        }
        let Some(word) = word(op) else { continue };
        let service = name.split(':').next().unwrap();
        let kind = format!("platform.{service}.{}.{word}", op.shape.name.to_lowercase());
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
