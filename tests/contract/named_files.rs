//! Pages and comments name files and tests that exist.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use crate::sources::{crates, root, sources};

/// The names in the architecture pages exist: files by the end of their paths, and tests by their names.
#[test]
fn pages_name_existing_files_and_tests() {
    let files: Vec<(PathBuf, String)> =
        ["crates", "tests", "benches"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    let names: HashSet<&str> = files
        .iter()
        .flat_map(|(_, text)| text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_'))
        .collect();
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/invariants.md", "docs/walkthroughs.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_file =
                Path::new(name).extension().is_some_and(|end| end == "rs") && !name.contains([' ', '<', '*']);
            let is_test =
                name.contains('_') && name.chars().all(|one| one.is_ascii_lowercase() || one == '_');
            let is_there = if is_file {
                let end = name.trim_start_matches("crates/").replace("/src/", "/");
                files.iter().any(|(path, _)| {
                    path.to_str().unwrap().replace("/src/", "/").ends_with(&format!("/{end}"))
                })
            } else {
                !is_test || names.contains(name)
            };
            assert!(is_there, "{page} names {name}, which is not there");
        }
    }
}

/// Comments name documents that are here: by the path from the root, or from the folder of the crate.
#[test]
fn comments_name_existing_documents() {
    for folder in crates().into_values().chain([root().join("tests"), root().join("benches")]) {
        for (path, text) in sources(&folder) {
            let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
            let names = comments.flat_map(|line| line.split('`').skip(1).step_by(2));
            let is_document =
                |name: &&str| Path::new(name).extension().is_some_and(|end| end == "md" || end == "tsv");
            for name in names.filter(is_document) {
                let is_there = root().join(name).exists() || folder.join(name).exists();
                assert!(is_there, "{} names {name}, which is not there", path.display());
            }
        }
    }
}
