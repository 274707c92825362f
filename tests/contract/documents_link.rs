//! The links of the documents: each leads to a file and a heading that exist, and each page is listed by an index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, iter,
    path::{Component, Path, PathBuf},
};

/// Folders with documents of others.
const FOREIGN: &[&str] = &["target", "node_modules"];

/// The documents of the repository, by their paths in it.
type Documents = BTreeMap<PathBuf, String>;

#[test]
fn links_lead_to_files_and_headings() {
    let documents = documents();
    let mut anchors = BTreeMap::new();
    for (path, text) in &documents {
        let found: BTreeSet<String> = headings(text).into_iter().map(|(_, anchor)| anchor).collect();
        anchors.insert(path.clone(), found);
    }
    let mut broken = Vec::new();
    for (document, text) in &documents {
        for target in targets(text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let path = destination(document, path);
            let is_heading = anchors.get(&path).is_some_and(|anchors| anchors.contains(anchor));
            if !root().join(&path).exists() || !(anchor.is_empty() || is_heading) {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
}

#[test]
fn manuals_list_their_pages_and_sections() {
    let documents = documents();
    let mut missing = Vec::new();
    for folder in ["docs/contract", "docs/operating"] {
        let index = Path::new(folder).join("README.md");
        let listed: BTreeSet<String> = targets(&documents[&index]).into_iter().collect();
        for (path, text) in &documents {
            if path.parent() != Some(Path::new(folder)) || *path == index {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let sections = headings(text).into_iter().filter(|(level, _)| *level == 2);
            let sections = sections.map(|(_, anchor)| format!("{name}#{anchor}"));
            let expected = iter::once(name.to_owned()).chain(sections);
            missing.extend(
                expected.filter(|one| !listed.contains(one)).map(|one| format!("{}: {one}", index.display())),
            );
        }
    }
    assert!(missing.is_empty(), "not listed: {missing:#?}");
}

/// The pages of the two manuals are listed by the manuals.
#[test]
fn the_index_lists_every_page() {
    let documents = documents();
    let first = Path::new("docs/README.md");
    let mut listed = BTreeSet::from([first.to_owned()]);
    for index in [first, Path::new("docs/contract/README.md"), Path::new("docs/operating/README.md")] {
        for target in targets(&documents[index]) {
            listed.insert(destination(index, target.split('#').next().unwrap_or_default()));
        }
    }
    let unlisted: Vec<&PathBuf> =
        documents.keys().filter(|path| path.starts_with("docs") && !listed.contains(*path)).collect();
    assert!(unlisted.is_empty(), "not listed by {}: {unlisted:#?}", first.display());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn documents() -> Documents {
    let mut found = Documents::new();
    collect(Path::new(""), &mut found);
    assert!(found.len() > 100, "{:?}", found.keys());
    found
}

fn collect(folder: &Path, found: &mut Documents) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = folder.join(&name);
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && !FOREIGN.contains(&name.as_str()) {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            found.insert(path, text);
        }
    }
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut found = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}

/// The targets of links and images within the repository.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in prose(text).split("\n\n") {
        // every second part is a span of code
        let plain: String = paragraph.split('`').step_by(2).collect();
        for rest in plain.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The path in the repository of a link's target.
fn destination(document: &Path, target: &str) -> PathBuf {
    if target.is_empty() {
        return document.to_owned();
    }
    let mut found = PathBuf::new();
    for part in document.parent().unwrap().join(target).components() {
        match part {
            Component::ParentDir => assert!(found.pop(), "{}: {target}", document.display()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// The level and the anchor of each heading.
fn headings(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in prose(text).lines() {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let base = anchor(title);
        let count = counts.entry(base.clone()).or_default();
        found.push((level, if *count == 0 { base } else { format!("{base}-{count}") }));
        *count += 1;
    }
    found
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title;
    // of a link only the text is shown
    while let Some((before, after)) = rest.split_once("](") {
        shown.extend(before.chars().filter(|one| *one != '['));
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let shown = shown.trim().chars().filter(|one| one.is_alphanumeric() || [' ', '-', '_'].contains(one));
    shown.flat_map(char::to_lowercase).map(|one| if one == ' ' { '-' } else { one }).collect()
}
