//! The faults that reviews and reports found: `spec/findings.tsv` names the test of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const FINDINGS: &str = include_str!("../../spec/findings.tsv");
/// The number of faults in each area. A row that is deleted with its test shows here.
const FAULTS: [(&str, usize); 10] = [
    ("administration", 14),
    ("availability", 11),
    ("configuration", 3),
    ("console", 8),
    ("escalation", 8),
    ("events", 5),
    ("http", 6),
    ("operation", 12),
    ("scim", 15),
    ("sign-in", 25),
];

/// Each row: the area, the fault, and the file and name of the test.
fn rows() -> impl Iterator<Item = [&'static str; 4]> {
    let mut lines = FINDINGS.lines();
    assert_eq!(lines.next(), Some("area\tfault\tfile\ttest"));
    lines.map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap())
}

/// A test of both engines may be a function for each: `name_on_sqlite`.
#[test]
fn each_fault_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for [_, fault, file, test] in rows() {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let has = |end: &str| text.contains(&format!("fn {test}{end}"));
        // a function of an engine is called by tests, and is none
        let is_there = has("_sqlite(") || has("_on_sqlite(") || has("(") && !has("(engine: Engine");
        assert!(is_there, "{file} has no test {test}, which is to show that this does not return: {fault}");
    }
}

#[test]
fn the_faults_are_complete_and_in_order() {
    let rows: Vec<_> = rows().collect();
    assert!(rows.is_sorted_by(|one, next| one < next), "each row is there once, in the order of the columns");
    let faults: BTreeSet<_> = rows.iter().map(|[area, fault, ..]| (*area, *fault)).collect();
    let mut counts = BTreeMap::new();
    for (area, _) in faults {
        *counts.entry(area).or_insert(0) += 1;
    }
    assert_eq!(counts, FAULTS.into());
}
