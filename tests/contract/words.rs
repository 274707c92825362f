//! The code uses the standard terms of the field. Words that were used instead are counted in each crate: a count may only fall.

use crate::sources::assert_counts_fall;

/// Words that hide what a thing is: a message is rendered or reported, an input is validated, a value comes from a flow or depends on
/// a context, a person is unknown or anonymous.
const AVOIDED: [&str; 8] =
    ["told", "judged", "flown", "circumstances", "stranger", "strangers", "nobody", "whoever"];
/// The limit of each crate. A crate without a line has none. What is left are names that other crates use, and words in their
/// ordinary sense.
const ALLOWED: &str = include_str!("words.txt");

#[test]
fn avoided_words_do_not_return_to_code_and_comments() {
    let advice = format!("name the thing itself, instead of {AVOIDED:?} (words.txt)");
    assert_counts_fall(ALLOWED, &advice, |path, text| {
        // lines within a literal of several lines count as code
        let places = text.lines().enumerate().flat_map(|(index, line)| {
            let place = format!("{}:{}: {}", path.display(), index + 1, line.trim());
            std::iter::repeat_n(place, words(&without_literals(line)))
        });
        places.collect()
    });
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
