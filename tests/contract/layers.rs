//! The folders of a crate, its top-level modules, form layers: no two of them import each other, however indirectly.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The crates whose folders still import each other in a circle: resources that are declared with their relations to each
/// other, and the declaration of an operation with its call.
const CIRCULAR: &[&str] = &["management", "resource", "userstore"];

/// The folders that the folders of a crate import.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_two_folders_of_a_crate_import_each_other() {
    let mut circular = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("crates");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let imports = imports(&folder.join("src"));
        let circles = circles(&imports);
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !circles.is_empty() {
            assert!(CIRCULAR.contains(&name.as_str()), "{name}: {circles:?} import each other");
            circular.push(name);
        }
    }
    assert_eq!(circular, CIRCULAR, "what is no circle any more is none in the list");
}

/// The console has three layers, and its entry points above them.
#[test]
fn the_console_imports_downward() {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/console/src"));
    let of = |folder: &str| imports[folder].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("shell"), of("pages"), of("resources")), (vec![], vec!["shell"], vec!["pages", "shell"]));
}

/// A sign-in in progress names neither a page nor an endpoint, and a page no endpoint.
#[test]
fn the_openid_provider_imports_downward() {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/signin/src"));
    for (folder, above) in [("flow", ["pages", "endpoints"]), ("pages", ["endpoints", "preview"])] {
        let named = above.into_iter().find(|above| imports[folder].contains(*above));
        assert_eq!(named, None, "{folder} imports it");
    }
}

/// The imports of the folders of a crate, without those of tests.
fn imports(sources: &Path) -> Imports {
    let mut files = Vec::new();
    let mut folders = vec![sources.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    let modules: Vec<(Vec<String>, String)> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(sources).unwrap().with_extension("");
            let parts = path.iter().map(|part| part.to_str().unwrap().to_owned());
            let module = parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str()));
            (module.collect(), code(&fs::read_to_string(file).unwrap()))
        })
        .collect();
    let known: BTreeSet<&str> =
        modules.iter().filter_map(|(module, _)| Some(module.first()?.as_str())).collect();
    // a re-export of the crate's root belongs to its folder
    let root = modules.iter().filter(|(module, _)| module.is_empty());
    let exported: BTreeMap<String, String> = root.flat_map(|(_, code)| exports(code)).collect();
    let mut all = Imports::new();
    for (module, code) in &modules {
        let Some(folder) = module.first() else { continue };
        let imported = all.entry(folder.clone()).or_default();
        for name in named(code, module.len()) {
            let target = if known.contains(name.as_str()) { Some(&name) } else { exported.get(&name) };
            imported.extend(target.filter(|target| *target != folder).cloned());
        }
    }
    all
}

/// A file without comments and without its tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The re-exports of the root of a crate, with their folders.
fn exports(code: &str) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for statement in code.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';')) {
        for path in expanded(&statement.0.split_whitespace().collect::<Vec<_>>().join(" ")) {
            let path = path.trim_start_matches("crate::").trim_start_matches("self::").to_owned();
            let (path, alias) = path.split_once(" as ").unwrap_or((&path, ""));
            let last = path.rsplit("::").next().unwrap_or_default();
            let name = if alias.is_empty() { last } else { alias };
            let folder = path.split("::").next().unwrap_or_default();
            names.push((name.to_owned(), folder.to_owned()));
        }
    }
    names
}

/// The names that code imports from the root of its crate, in a module at this depth.
fn named(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    for (start, from) in [("crate::", 0), ("super::", depth - 1)] {
        for (at, _) in code.match_indices(start) {
            let is_word =
                code[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_:".contains(letter));
            if !is_word {
                names.extend(code[at + start.len()..].split(';').next().map(|rest| firsts(rest, from)));
            }
        }
    }
    names.into_iter().flatten().collect()
}

/// The first names of a path, or of the tree of paths in braces, as far as they are named from the root.
fn firsts(path: &str, depth: usize) -> Vec<String> {
    let path = path.trim_start();
    if let Some(rest) = path.strip_prefix("super::") {
        return firsts(rest, depth.saturating_sub(1));
    }
    if let Some(rest) = path.strip_prefix("self::") {
        return firsts(rest, depth);
    }
    if path.starts_with('{') {
        return expanded(path).iter().flat_map(|one| firsts(one, depth)).collect();
    }
    let name: String = path.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    if depth == 0 { vec![name] } else { Vec::new() }
}

/// The paths of a tree, each whole.
fn expanded(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let (mut depth, mut one) = (1, String::new());
    let mut all = Vec::new();
    for letter in rest.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && letter == ',') {
            if !one.trim().is_empty() {
                all.extend(expanded(one.trim()).iter().map(|one| format!("{}{one}", before.trim())));
            }
            one.clear();
        } else {
            one.push(letter);
        }
        if depth == 0 {
            break;
        }
    }
    all
}

/// The folders that reach themselves.
fn circles(imports: &Imports) -> Vec<&str> {
    let reached = |from: &str| {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(folder) = open.pop() {
            for next in imports.get(folder).into_iter().flatten() {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    };
    imports.keys().map(String::as_str).filter(|folder| reached(folder).contains(folder)).collect()
}

#[test]
fn imports_are_read_as_they_are_written() {
    let code = code(
        "use crate::{\n    one::A,\n    two::{self, B},\n};\nuse super::{three::C, super::four::D};\nfn e() { crate::five::f(super::g()) } // crate::six",
    );
    let at = |depth| named(&code, depth).into_iter().collect::<BTreeSet<_>>();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    // for a file in the root, the parent is the root
    assert_eq!(at(2), names(&["one", "two", "five", "four"]));
    assert_eq!(at(3), names(&["one", "two", "five"]));
    assert!(at(1).is_superset(&names(&["three", "g"])));
    assert_eq!(
        exports("pub use a::{B, c::D as E};"),
        [("B".into(), "a".into()), ("E".to_owned(), "a".to_owned())]
    );
    let circle = |pairs: &[(&str, &str)]| {
        let mut all = Imports::new();
        for (from, to) in pairs {
            all.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        circles(&all).join(" ")
    };
    assert_eq!(circle(&[("a", "b"), ("b", "c"), ("c", "b")]), "b c");
    assert_eq!(circle(&[("a", "b"), ("b", "c")]), "");
}
