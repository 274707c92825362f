//! The folders of a crate, its top-level modules, form layers: no two of them import each other, however indirectly.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::sources::{crates, sources};

/// The crates whose folders name each other in a circle by their data model: a relation is declared by both of its resources.
/// Nothing else of them may.
const CIRCULAR_MODELS: &[&str] = &["management", "userstore"];

/// The folders that the folders of a crate import.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_two_folders_of_a_crate_import_each_other() {
    for (name, folder) in crates() {
        let folder = folder.join("src");
        let (all, others) = (imports(&folder), imports_without(&folder, data_model));
        let (all, others) = (circles(&all), circles(&others));
        assert_eq!(!all.is_empty(), CIRCULAR_MODELS.contains(&name.as_str()), "{name}: {all:?}");
        assert!(others.is_empty(), "{name}: {others:?} import each other");
    }
}

/// The console has three layers, and its entry points above them.
#[test]
fn the_console_imports_downward() {
    let imports = imports(&crates()["console"].join("src"));
    let of = |folder: &str| imports[folder].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("shell"), of("pages"), of("resources")), (vec![], vec!["shell"], vec!["pages", "shell"]));
}

/// A sign-in in progress names neither a page nor an endpoint, and a page no endpoint.
#[test]
fn the_openid_provider_imports_downward() {
    let imports = imports(&crates()["signin"].join("src"));
    for (folder, above) in [("flow", ["pages", "endpoints"]), ("pages", ["endpoints", "preview"])] {
        let named = above.into_iter().find(|above| imports[folder].contains(*above));
        assert_eq!(named, None, "{folder} imports it");
    }
}

/// The imports of the folders of a crate, without those of tests.
fn imports(folder: &Path) -> Imports {
    imports_without(folder, |_| Vec::new())
}

/// The same, without the names that `left_out` finds in the crate's code.
fn imports_without(folder: &Path, left_out: fn(&str) -> Vec<String>) -> Imports {
    let modules: Vec<(Vec<String>, String)> = sources(folder)
        .iter()
        .map(|(file, text)| {
            let path = file.strip_prefix(folder).unwrap().with_extension("");
            let parts = path.iter().map(|part| part.to_str().unwrap().to_owned());
            let module = parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str()));
            (module.collect(), code(text))
        })
        .collect();
    let left_out: BTreeSet<String> = modules.iter().flat_map(|(_, code)| left_out(code)).collect();
    let known: BTreeSet<&str> =
        modules.iter().filter_map(|(module, _)| Some(module.first()?.as_str())).collect();
    // a re-export of the crate's root belongs to its folder
    let root = modules.iter().filter(|(module, _)| module.is_empty());
    let exported: BTreeMap<String, String> = root.flat_map(|(_, code)| exports(code)).collect();
    let mut all = Imports::new();
    for (module, code) in &modules {
        let Some(folder) = module.first() else { continue };
        let imported = all.entry(folder.clone()).or_default();
        for path in named(code, module.len()) {
            let names: Vec<&str> = path.split("::").collect();
            if names.iter().any(|name| left_out.contains(*name)) {
                continue;
            }
            let target = known.get(names[0]).copied().or_else(|| Some(exported.get(names[0])?.as_str()));
            imported.extend(target.filter(|target| *target != folder).map(str::to_owned));
        }
    }
    all
}

/// A file without comments and without its tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The names of resources, records, ids and tables of links that code declares.
fn data_model(code: &str) -> Vec<String> {
    let first = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let declared = |line: &str| {
        let (name, kind) = line.trim().trim_start_matches("pub ").split_once(": ")?;
        let is_shape = name.starts_with("static ") && first(kind) == "Shape";
        let is_link = name.starts_with("const ") && first(kind) == "LinkTable";
        (is_shape || is_link).then(|| name.split_once(' ').map(|(_, name)| name.to_owned()))?
    };
    let mut names: Vec<String> = code.lines().filter_map(declared).collect();
    let records = code.split("record! {").skip(1);
    names.extend(records.filter_map(|record| Some(first(record.split_once("pub struct ")?.1))));
    let ids = code.split("id_types! {").skip(1).filter_map(|ids| ids.split('}').next());
    names.extend(ids.flat_map(str::split_whitespace).map(first));
    names
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

/// The paths from the root of its crate that code names, in a module at this depth.
fn named(code: &str, depth: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (start, from) in [("crate::", 0), ("super::", depth - 1)] {
        for (at, _) in code.match_indices(start) {
            let is_word =
                code[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_:".contains(letter));
            if !is_word {
                all.extend(paths(&code[at + start.len()..], from));
            }
        }
    }
    all
}

/// A path, or those of a tree of paths in braces, as far as they are named from the root.
fn paths(text: &str, depth: usize) -> Vec<String> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("super::") {
        return paths(rest, depth.saturating_sub(1));
    }
    if let Some(rest) = text.strip_prefix("self::") {
        return paths(rest, depth);
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter));
    let (path, rest) = text.split_at(end.unwrap_or(text.len()));
    if rest.starts_with('{') && (path.is_empty() || path.ends_with("::")) {
        return expanded(text).iter().flat_map(|one| paths(one, depth)).collect();
    }
    if depth == 0 { vec![path.to_owned()] } else { Vec::new() }
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
    assert_eq!(at(2), names(&["one::A", "two::self", "two::B", "five::f", "four::D"]));
    assert_eq!(at(3), names(&["one::A", "two::self", "two::B", "five::f"]));
    assert!(at(1).is_superset(&names(&["three::C", "g"])));
    assert_eq!(
        exports("pub use a::{B, c::D as E};"),
        [("B".into(), "a".into()), ("E".to_owned(), "a".to_owned())]
    );
    let declarations = "id_types! {\n    AId\n}\nrecord! {\n    pub struct A {\n}\n}\npub static A_SHAPE: Shape = x;\n\
        pub const A_B: LinkTable =\n    x;\npub static OTHER: JsonForm = x;";
    assert_eq!(data_model(declarations), ["A_SHAPE", "A_B", "A", "AId"]);
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
