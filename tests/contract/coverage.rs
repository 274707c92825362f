//! The operation lists against the contract's own list.

use std::collections::BTreeMap;

use chancery::services;

struct Row {
    service: &'static str,
    version: &'static str,
    name: &'static str,
    status: u16,
}

/// The rows of the contract, by method and path. Parameters' names are compared too.
fn contract() -> BTreeMap<(&'static str, &'static str), Row> {
    let table = include_str!("../../spec/operations.tsv");
    let rows = table.lines().skip(1).map(|line| {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let row = Row {
            service: columns[0],
            version: columns[1],
            name: columns[2],
            status: columns[6].parse().unwrap(),
        };
        ((columns[3], columns[4]), row)
    });
    rows.collect()
}

/// Every operation is a row of the contract, with its name and status, or says that it is an
/// addition. The rows that are not there yet are listed in a file, so that each step is seen.
#[test]
fn every_operation_is_in_the_contract_and_the_gap_is_known() {
    let contract = contract();
    let mut there = Vec::new();
    for service in services() {
        for op in service.all() {
            let path = format!("{}{}", service.base, op.path);
            let row_of_contract =
                contract.iter().find(|((method, at), _)| *method == op.method.name() && *at == path);
            let Some((key, row)) = row_of_contract else {
                assert!(op.addition, "{} {path} is not in the contract", op.method.name());
                continue;
            };
            assert!(!op.addition, "{path} is in the contract");
            assert_eq!((row.service, row.version), (service.name, service.version));
            assert_eq!(row.status, op.status, "{path}");
            if !row.name.is_empty() {
                assert_eq!(row.name, op.name);
            }
            there.push(*key);
        }
    }
    let missing: Vec<String> = contract
        .iter()
        .filter(|(key, _)| !there.contains(key))
        .map(|((method, path), row)| format!("{} {} {method} {path}", row.service, row.version))
        .collect();
    println!("{} of {} operations are there, {} are not yet", there.len(), contract.len(), missing.len());
    insta::assert_snapshot!("not_there_yet", missing.join("\n"));
}

#[test]
fn operation_names_are_unique() {
    for service in services() {
        let mut names: Vec<_> = service.all().map(|op| op.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{}", service.name);
    }
}
