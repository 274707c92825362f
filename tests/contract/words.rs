//! The code uses the standard terms of the field. Words that were used instead are counted in each crate: a count may only fall.

use std::{collections::BTreeMap, fs, path::Path};

/// Words that hide what a thing is: a message is rendered or reported, an input is validated, a value comes from a flow or depends on
/// a context, a person is unknown or anonymous.
const AVOIDED: [&str; 8] =
    ["told", "judged", "flown", "circumstances", "stranger", "strangers", "nobody", "whoever"];
/// The limit of each crate. A crate without a line has none. What is left are names that other crates use, and words in their
/// ordinary sense.
const ALLOWED: &str = include_str!("words.txt");

#[test]
fn avoided_words_do_not_return_to_code_and_comments() {
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
            "{name} has {} of {AVOIDED:?}, and its limit in words.txt is {limit}: name the thing itself\n{}",
            found.len(),
            found.join("\n")
        );
    }
}

/// Finds the avoided words in the code and comments of a folder, not those in literals. Lines within a literal of several lines
/// count as code.
fn find_in(folder: &Path, found: &mut Vec<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            find_in(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            for (index, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
                let place = format!("{}:{}: {}", path.display(), index + 1, line.trim());
                found.extend(std::iter::repeat_n(place, words(&without_literals(line))));
            }
        }
    }
}

/// A line without its literals; a comment has none.
fn without_literals(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        line.to_owned()
    } else {
        line.split('"').step_by(2).collect::<Vec<_>>().join(" ")
    }
}

/// How many parts of the names in a text are avoided: `ToldFlow` and `told_flow` have one each.
fn words(text: &str) -> usize {
    let mut apart = String::new();
    for letter in text.chars() {
        if letter.is_uppercase() && apart.ends_with(char::is_lowercase) {
            apart.push(' ');
        }
        apart.extend(letter.to_lowercase());
    }
    apart.split(|letter: char| !letter.is_alphabetic()).filter(|word| AVOIDED.contains(word)).count()
}

#[test]
fn parts_of_names_are_counted_and_literals_are_not() {
    assert_eq!(words("struct ToldFlow { was_judged: bool }"), 2);
    assert_eq!(words(&without_literals("let text = \"nobody\";")), 0);
    assert_eq!(words(&without_literals("/// Nobody is \"told\".")), 2);
}
