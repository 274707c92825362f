//! Parameters are named one by one, or in a struct: tuples hide what a caller passes. Functions with a tuple among their parameters
//! are counted in each crate: a count may only fall.

use std::{collections::BTreeMap, fs, path::Path};

/// The limit of each crate. A crate without a line has none.
const ALLOWED: &str = include_str!("tuples.txt");

#[test]
fn functions_take_no_tuples() {
    let allowed: BTreeMap<&str, usize> = ALLOWED
        .lines()
        .map(|line| line.split_once('\t').map(|(name, count)| (name, count.parse().unwrap())).unwrap())
        .collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for entry in fs::read_dir(crates).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let mut found = Vec::new();
        find_in(&entry.path(), &mut found);
        let limit = allowed.get(name.as_str()).copied().unwrap_or(0);
        assert!(
            found.len() <= limit,
            "{name} has {} functions that take tuples, and its limit in tuples.txt is {limit}: name the parameters\n{}",
            found.len(),
            found.join("\n")
        );
    }
}

fn find_in(folder: &Path, found: &mut Vec<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            find_in(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let names = with_tuples(&fs::read_to_string(&path).unwrap());
            found.extend(names.into_iter().map(|name| format!("{}: {name}", path.display())));
        }
    }
}

/// The names of the functions in code with a parameter whose pattern is a tuple, except those of properties (`in`).
fn with_tuples(text: &str) -> Vec<String> {
    let code: String = text.lines().flat_map(|line| [line.split("//").next().unwrap(), "\n"]).collect();
    let functions = code.split("fn ").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
        let (name, rest) = rest.split_at(end);
        let parameters = parameters(rest)?;
        parameters
            .iter()
            .any(|one| one.trim_start().starts_with('(') && !one.contains(") in "))
            .then(|| name.to_owned())
    });
    functions.collect()
}

/// The parameters of a function, from the end of its name.
fn parameters(text: &str) -> Option<Vec<&str>> {
    // the opened brackets and the angles within the list, the first of which are the generics
    let (mut brackets, mut angles, mut begin) = (0, 0, None);
    let (mut all, mut before) = (Vec::new(), ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => angles += 1,
            '>' if before != '-' => angles -= 1,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            _ => {}
        }
        match begin {
            None if letter == '(' && angles == 0 => begin = Some(at + 1),
            None if angles == 0 && letter != '>' => return None,
            Some(from) if brackets == 0 || (letter == ',' && brackets == 1 && angles == 0) => {
                all.push(&text[from..at]);
                begin = Some(at + 1);
                if brackets == 0 {
                    return Some(all);
                }
            }
            _ => {}
        }
        before = letter;
    }
    None
}

#[test]
fn only_patterns_of_parameters_are_counted() {
    let code = "fn one((a, b): (u8, u8)) {}\n\
        fn two<F: Fn(u8, u8) -> u8>(of: F, c: (u8, u8)) -> (u8, u8) { fn three(\n    d: u8,\n    (_, e): Pair,\n) {} }\n\
        // fn four((a, b): Pair)\n\
        fn five(f: HashMap<u8, (u8, u8)>, g: fn(u8) -> u8) {}";
    assert_eq!(with_tuples(code), ["one", "three"]);
}
