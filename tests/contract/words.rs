//! The code uses the standard terms of the field. Words that were used instead are counted in each crate: a count may only fall.

use std::{collections::BTreeMap, fs, path::Path};

/// Words that hide what a thing is: a message is rendered or reported, a row is stored, a parameter is requested, an input is validated,
/// a person is unknown or anonymous.
const AVOIDED: [&str; 20] = [
    "told",
    "tell",
    "tells",
    "telling",
    "kept",
    "keeps",
    "asked",
    "asks",
    "asking",
    "judge",
    "judged",
    "flown",
    "circumstances",
    "examined",
    "stranger",
    "strangers",
    "nobody",
    "piece",
    "pieces",
    "whoever",
];
/// The exact count of each crate. A crate without a line has none. What is left are names that other crates use, and words in their
/// ordinary sense.
const ALLOWED: &str = include_str!("words.txt");

#[test]
fn avoided_words_do_not_return_to_code_and_comments() {
    let allowed: BTreeMap<&str, usize> = ALLOWED
        .lines()
        .map(|line| line.split_once('\t').map(|(name, count)| (name, count.parse().unwrap())).unwrap())
        .collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let found: BTreeMap<String, usize> = fs::read_dir(crates)
        .unwrap()
        .map(Result::unwrap)
        .map(|entry| (entry.file_name().into_string().unwrap(), count_in(&entry.path())))
        .collect();
    for (name, count) in &found {
        let most = allowed.get(name.as_str()).copied().unwrap_or(0);
        assert!(
            *count <= most,
            "{name} has {count} of {AVOIDED:?}, and at most {most} are allowed: name the thing itself"
        );
        assert!(*count >= most, "{name} has {count} of them alone: lower its line in words.txt to that");
    }
}

/// The avoided words in the code and comments of a folder, without literals. Lines within a literal of several lines count as code.
fn count_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let counts = entries.map(|path| {
        if path.is_dir() {
            count_in(&path)
        } else if path.extension().is_some_and(|end| end == "rs") {
            fs::read_to_string(&path).unwrap().lines().map(|line| words(&without_literals(line))).sum()
        } else {
            0
        }
    });
    counts.sum()
}

/// A line without its literals; a comment has none.
fn without_literals(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        line.to_owned()
    } else {
        line.split('"').step_by(2).collect::<Vec<_>>().join(" ")
    }
}

/// How many parts of the names in a text are avoided: `KeptFlow` and `kept_flow` have one each.
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
    assert_eq!(words("struct KeptFlow { told_elsewhere: bool }"), 2);
    assert_eq!(words(&without_literals("let text = \"nobody\";")), 0);
    assert_eq!(words(&without_literals("/// Nobody is \"told\".")), 2);
}
