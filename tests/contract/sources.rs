//! The sources of the project, for tests that read them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The folders of the crates, by their names.
pub fn crates() -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    folders.map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)).collect()
}

/// The Rust files below a folder, with their texts.
pub fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all
}

/// Asserts that no crate has a finding.
pub fn assert_none(advice: &str, find: impl Fn(&Path, &str) -> Vec<String>) {
    assert_counts_fall("", advice, find);
}

/// Asserts that each crate has at most as many findings as its line in a list, `crate<TAB>count`, allows; without a line, none.
pub fn assert_counts_fall(list: &str, advice: &str, find: impl Fn(&Path, &str) -> Vec<String>) {
    let counts = list.lines().map(|line| line.split_once('\t').unwrap());
    let limits: BTreeMap<&str, usize> = counts.map(|(name, count)| (name, count.parse().unwrap())).collect();
    for (name, folder) in crates() {
        let found: Vec<String> = sources(&folder).iter().flat_map(|(path, text)| find(path, text)).collect();
        let (count, limit) = (found.len(), limits.get(name.as_str()).copied().unwrap_or(0));
        assert!(
            count <= limit,
            "{name} has {count}, and its limit is {limit}: {advice}\n{}",
            found.join("\n")
        );
    }
}
