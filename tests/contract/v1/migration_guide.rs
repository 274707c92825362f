//! The migration guide from version 1: its table is generated from the declared operations.

use std::{fs, path::Path};

use chancery::services;

const BEGIN: &str = "<!-- operations -->\n";
const END: &str = "<!-- end of operations -->";

/// The table: each operation of version 1, and its successor.
fn table() -> String {
    let all = services();
    let mut rows = Vec::new();
    for old in all.iter().filter(|service| service.version == "v1") {
        let new = all.iter().find(|service| service.name == old.name && service.version == "v2").unwrap();
        rows.push(format!(
            "\n### {}\n\n| Version 1 | Name | Version 2 | Name |\n|---|---|---|---|",
            old.base
        ));
        rows.extend(old.all().map(|op| {
            let before = format!("| `{} {}` | {}", op.method.name(), op.path, op.name);
            match op.successor {
                Some(next) => format!("{before} | `{} {}` | {} |", next.method.name(), next.path, next.name),
                None => format!("{before} | | |"),
            }
        }));
        rows.push(format!("\nPaths of version 2 are below `{}`.", new.base));
    }
    format!("{}\n\n", rows.join("\n"))
}

/// Run it with `CHANCERY_WRITE_DOCUMENTS=1` to regenerate the table.
#[test]
fn the_guide_lists_every_operation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/migrating-from-v1.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (current_table, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var_os("CHANCERY_WRITE_DOCUMENTS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(current_table, table, "write it anew with CHANCERY_WRITE_DOCUMENTS=1");
}

/// Every caller has a migration path.
#[test]
fn every_operation_has_a_successor() {
    let all = services();
    let without_successor: Vec<&str> = all
        .iter()
        .filter(|service| service.version == "v1")
        .flat_map(|service| service.all())
        .filter(|op| op.successor.is_none())
        .map(|op| op.name)
        .collect();
    assert_eq!(without_successor, [""; 0]);
}
