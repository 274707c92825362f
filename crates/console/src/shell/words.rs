//! The words of pages in each language, and those of resources and fields.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use chancery_resource::Problem;

use super::refusal::Refusals;

/// The words of one language.
pub struct Words {
    /// The language's tag.
    pub tag: &'static str,
    /// The fixed words of templates.
    pub page: BTreeMap<String, String>,
    tables: HashMap<String, HashMap<String, String>>,
    refusals: Refusals,
}

static ENGLISH: LazyLock<Words> = LazyLock::new(|| read("en", include_str!("../../texts/en.toml")));
static GERMAN: LazyLock<Words> = LazyLock::new(|| read("de", include_str!("../../texts/de.toml")));

fn read(tag: &'static str, text: &str) -> Words {
    let mut tables: HashMap<String, HashMap<String, String>> = toml::from_str(text).unwrap_or_default();
    let page = tables.remove("page").unwrap_or_default().into_iter().collect();
    let refusals = Refusals::of(tables.remove("refusal").unwrap_or_default());
    Words { tag, page, tables, refusals }
}

impl Words {
    /// The words of the first of these languages that is spoken here; English where none is.
    pub fn of<'a>(tags: impl IntoIterator<Item = &'a str>) -> &'static Self {
        let spoken = tags.into_iter().find_map(|tag| match tag.split('-').next() {
            Some("de") => Some(&*GERMAN),
            Some("en") => Some(&*ENGLISH),
            _ => None,
        });
        spoken.unwrap_or(&ENGLISH)
    }

    fn find(&self, table: &str, key: &str) -> Option<&str> {
        self.tables.get(table)?.get(key).map(String::as_str)
    }

    /// A fixed word; its key where there is none.
    pub fn page<'a>(&'a self, key: &'a str) -> &'a str {
        self.page.get(key).map_or(key, String::as_str)
    }

    /// The label of a field, by its name on the wire: readable before it is translated.
    pub fn field(&self, wire: &str) -> String {
        self.find("field", wire).map_or_else(|| spaced(wire), str::to_owned)
    }

    /// What one of a resource is called.
    pub fn resource(&self, name: &str) -> String {
        self.find("resource", name).map_or_else(|| spaced(name), str::to_owned)
    }

    /// What many of a resource are called, as a heading.
    pub fn resources(&self, name: &str) -> String {
        let many = self.find("resource", &format!("{name}_many"));
        many.map_or_else(|| format!("{}s", spaced(name)), raised)
    }

    /// What many of a resource are called, within a sentence.
    pub fn many(&self, name: &str) -> String {
        let many = self.find("resource", &format!("{name}_many"));
        many.map_or_else(|| format!("{}s", spaced(name).to_lowercase()), str::to_owned)
    }

    /// What an operation is called as an act, where it has a short name.
    pub fn act(&self, operation: &str) -> Option<&str> {
        self.find("act", operation)
    }

    /// What was found when it was asked whether somebody may sign in.
    pub fn check(&self, check: &str, passes: bool) -> Option<&str> {
        if passes { self.find("check", check) } else { self.find("check", &format!("{check}_not")) }
    }

    /// The label of an option, by its name: readable before it is translated.
    pub fn option(&self, name: &str) -> String {
        self.find("option", name).map_or_else(|| spaced(name), str::to_owned)
    }

    /// What a declaration says in English, in this language; nothing where it is not translated.
    pub fn explained<'a>(&'a self, english: &'a str) -> &'a str {
        if self.tag == "en" { english } else { self.find("hint", english.trim()).unwrap_or_default() }
    }

    /// What a refusal says in English, in this language; as it is where that is not translated.
    pub fn refusal<'a>(&'a self, english: &'a str) -> Cow<'a, str> {
        self.refusals.tell(english, |part| self.find("resource", part).or_else(|| self.find("choice", part)))
    }

    /// A problem in this language.
    pub fn problem(&self, mut problem: Problem) -> Problem {
        problem.detail = self.refusal(&problem.detail).into_owned();
        for error in &mut *problem.errors {
            error.detail = self.refusal(&error.detail).into_owned();
        }
        problem
    }

    /// A group of the navigation.
    pub fn group<'a>(&'a self, key: &'a str) -> &'a str {
        self.find("group", key).unwrap_or(key)
    }

    /// A value of an option that is a choice: its own word, where the value is another's, too.
    pub fn choice_of<'a>(&'a self, option: &str, value: &'a str) -> &'a str {
        self.find("choice", &format!("{option}.{value}")).unwrap_or_else(|| self.choice(value))
    }

    /// A value of a choice.
    pub fn choice<'a>(&'a self, value: &'a str) -> &'a str {
        self.find("choice", value).unwrap_or(value)
    }
}

/// A text with a capital first letter.
pub fn raised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A name on the wire as words: `emailAddress` is `Email address`.
fn spaced(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
        if words.is_empty() {
            words.extend(letter.to_uppercase());
        } else {
            words.extend(letter.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap, HashSet};

    use chancery_record::{Field, Kind};
    use chancery_resource::settings::{CATALOGUE, Form};

    use super::{ENGLISH, GERMAN, Words, spaced};
    use crate::{
        pages::act,
        shell::{directory, fields::hint},
    };

    #[test]
    fn names_are_readable() {
        assert_eq!(spaced("emailAddress"), "Email address");
        assert_eq!(spaced("ClientApp"), "Client app");
        assert_eq!(spaced("isUserActive"), "Is user active");
    }

    #[test]
    fn both_languages_say_the_same() {
        let keys = |words: &Words| -> Vec<String> {
            let mut keys: Vec<String> = words.page.keys().cloned().collect();
            // declarations are English
            for (table, rows) in words.tables.iter().filter(|(table, _)| *table != "hint") {
                keys.extend(rows.keys().map(|key| format!("{table}.{key}")));
            }
            keys.sort();
            keys
        };
        assert_eq!(keys(&ENGLISH), keys(&GERMAN));
        assert!(ENGLISH.page.len() > 20, "the texts can be read");
    }

    /// A German explanation is of what is declared now.
    #[test]
    fn explanations_are_of_what_is_declared() {
        let mut declared = HashSet::new();
        for op in directory::operations() {
            let form = crate::pages::act::fields(op);
            declared.extend(op.shape.fields.iter().chain(form).map(|field| field.about.trim()));
            declared.extend(op.shape.relations.iter().map(|relation| relation.about.trim()));
            declared.extend([op.summary.trim(), op.shape.about.trim()]);
        }
        let hints = &GERMAN.tables["hint"];
        let stale: Vec<&String> = hints.keys().filter(|hint| !declared.contains(hint.as_str())).collect();
        assert!(stale.is_empty() && hints.len() > 100, "{stale:#?}");
        assert_eq!(
            GERMAN.explained("Whether its tokens hold the groups."),
            "Ob ihre Token die Gruppen enthalten."
        );
        assert_eq!((GERMAN.explained("New."), ENGLISH.explained("New.")), ("", "New."));
    }

    /// What is declared has a German word.
    #[test]
    fn everything_declared_has_a_word() {
        crate::resources::fill();
        let mut asked: BTreeSet<(&str, String)> = BTreeSet::new();
        for resource in directory::resources() {
            asked.insert(("resource", resource.name.to_owned()));
            asked.insert(("resource", format!("{}_many", resource.name)));
            let acts = act::of_one(resource).chain(act::with_page(resource));
            for op in acts {
                asked.extend([("act", op.name.to_owned()), ("hint", op.summary.trim().to_owned())]);
            }
            asked.insert(("hint", resource.shape.about.trim().to_owned()));
            for relation in resource.shape.relations {
                asked.insert(("field", relation.name.to_owned()));
                asked.insert(("hint", relation.about.trim().to_owned()));
            }
        }
        for op in directory::operations() {
            let met = |field: &&Field| field.access.shown || field.access.create || field.access.patch;
            for field in op.shape.fields.iter().chain(act::fields(op)).filter(met) {
                asked.insert(("field", field.wire().to_owned()));
                // what is only shown has no explanation
                if (field.access.create || field.access.patch) && !field.is_token() {
                    asked.insert(("hint", hint(field).trim().to_owned()));
                }
                if let Kind::Choice(names) | Kind::Numbered(names) = field.kind {
                    asked.extend(names.iter().map(|name| ("choice", (*name).to_owned())));
                }
            }
        }
        for entry in CATALOGUE.iter() {
            asked.insert(("option", entry.name.to_owned()));
            if let Form::Choice(names) = entry.form {
                asked.extend(names.iter().map(|name| ("choice", (*name).to_owned())));
            }
        }
        asked.remove(&("hint", String::new()));
        // algorithms and types of files are called the same everywhere
        let is_name =
            |key: &str| key.contains(|letter: char| letter.is_ascii_digit() || "/-".contains(letter));
        let is_wordless = |(table, key): &&(&str, String)| {
            GERMAN.find(table, key).is_none() && !(*table == "choice" && is_name(key))
        };
        let wordless: Vec<_> = asked.iter().filter(is_wordless).collect();
        assert!(wordless.is_empty(), "{wordless:#?}");
    }

    /// What differs in a refusal stands in its translation, in the same order; what nobody translated stays English.
    #[test]
    fn refusals_are_told_in_words() {
        for (english, german) in [
            ("is missing", "fehlt"),
            ("must be from 1 to 10", "muss von 1 bis 10 sein"),
            ("names no Tenant", "verweist auf nichts Vorhandenes: Mandant"),
            ("/name is taken", "/name ist vergeben"),
            ("must be a string, not an array", "muss Text sein, nicht eine Liste"),
            ("is new", "is new"),
        ] {
            assert_eq!(GERMAN.refusal(english), german);
            assert_eq!(ENGLISH.refusal(english), english);
        }
        let places = |text: &str| text.matches("{}").count();
        let texts: HashMap<String, HashMap<String, String>> =
            toml::from_str(include_str!("../../texts/de.toml")).unwrap();
        for (english, told) in &texts["refusal"] {
            assert_eq!(places(english), places(told), "{english}");
            assert!(!english.replace("{}", "").trim().is_empty(), "it matches everything: {english}");
        }
    }

    #[test]
    fn the_first_language_that_is_spoken_counts() {
        assert_eq!(Words::of(["fr", "de-AT", "en"]).tag, "de");
        assert_eq!(Words::of(["fr"]).tag, "en");
    }
}
