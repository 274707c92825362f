//! The texts of pages in each language, and the names of resources and fields.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use chancery_resource::{Problem, settings::CATALOGUE};
use minijinja::value::Serde;

use super::{assets, directory, error_translation::ErrorTranslations};

/// The texts of one language.
pub struct Words {
    /// The language's tag.
    pub tag: &'static str,
    /// The fixed texts of pages.
    pub page: BTreeMap<String, String>,
    /// The same for templates, as `t`, with the addresses of the assets as `assets`: converted once, and not for each page.
    pub in_templates: minijinja::Value,
    tables: HashMap<String, HashMap<String, String>>,
    refusals: ErrorTranslations,
}

static ENGLISH: LazyLock<Words> = LazyLock::new(|| read("en", include_str!("../../texts/en.toml")));
static GERMAN: LazyLock<Words> = LazyLock::new(|| {
    let mut words = read("de", GERMAN_TEXTS);
    for (table, key, text) in declared_in_german() {
        words.tables.entry(table.to_owned()).or_default().insert(key, text.to_owned());
    }
    words
});
const GERMAN_TEXTS: &str = include_str!("../../texts/de.toml");

/// The German error messages alone: to read all texts takes four times as long, and every test asks for these.
static GERMAN_ERRORS: LazyLock<ErrorTranslations> = LazyLock::new(|| {
    let section = GERMAN_TEXTS.split("\n[refusal]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    ErrorTranslations::of(toml::from_str(section.unwrap_or_default()).unwrap_or_default())
});

/// Whether an error message of the API has a German text.
pub fn has_german_error_text(english: &str) -> bool {
    GERMAN_ERRORS.has(english)
}

fn read(tag: &'static str, text: &str) -> Words {
    let mut tables: HashMap<String, HashMap<String, String>> = toml::from_str(text).unwrap_or_default();
    let page: BTreeMap<_, _> = tables.remove("page").unwrap_or_default().into_iter().collect();
    let in_templates = minijinja::context! {
        t => minijinja::Value::from(Serde(&page)),
        assets => minijinja::Value::from(Serde(&*assets::ADDRESSES)),
    };
    let refusals = ErrorTranslations::of(tables.remove("refusal").unwrap_or_default());
    Words { tag, page, in_templates, tables, refusals }
}

/// The German texts that are at declarations, `#[de(..)]`: each with its table and key. The texts that several declarations share are in
/// `texts/de.toml`.
fn declared_in_german() -> Vec<(&'static str, String, &'static str)> {
    let mut texts = Vec::new();
    for op in directory::operations() {
        let shape = op.shape;
        if let Some(german) = shape.german {
            texts.push(("resource", shape.name.to_owned(), german.one));
            texts.push(("resource", format!("{}_many", shape.name), german.many));
            texts.extend(german.about.map(|about| ("hint", shape.about.trim().to_owned(), about)));
        }
        for field in directory::declared_fields(op) {
            texts.extend(field.german.label.map(|label| ("field", field.wire().to_owned(), label)));
            texts.extend(field.german.hint.map(|hint| ("hint", field.about.trim().to_owned(), hint)));
        }
    }
    for entry in CATALOGUE.iter() {
        texts.extend(entry.german.map(|label| ("option", entry.name.to_owned(), label)));
    }
    texts
}

impl Words {
    /// The texts of the first supported language; English if none is supported.
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

    /// A fixed text; its key if there is none.
    pub fn page<'a>(&'a self, key: &'a str) -> &'a str {
        self.page.get(key).map_or(key, String::as_str)
    }

    /// The label of a field by its wire name; a readable form of the name if there is none.
    pub fn field(&self, wire: &str) -> String {
        self.find("field", wire).map_or_else(|| spaced(wire), str::to_owned)
    }

    /// The name of a resource, singular.
    pub fn resource(&self, name: &str) -> String {
        self.find("resource", name).map_or_else(|| spaced(name).to_lowercase(), str::to_owned)
    }

    /// The name of a resource, plural, as a heading.
    pub fn resources(&self, name: &str) -> String {
        let many = self.find("resource", &format!("{name}_many"));
        many.map_or_else(|| plural(&spaced(name)), raised)
    }

    /// The name of a resource, plural, within a sentence.
    pub fn many(&self, name: &str) -> String {
        let many = self.find("resource", &format!("{name}_many"));
        many.map_or_else(|| plural(&spaced(name).to_lowercase()), str::to_owned)
    }

    /// The short name of an operation, if it has one.
    pub fn act(&self, operation: &str) -> Option<&str> {
        self.find("act", operation)
    }

    /// The result of a check whether a user can sign in.
    pub fn check(&self, check: &str, passes: bool) -> Option<&str> {
        if passes { self.find("check", check) } else { self.find("check", &format!("{check}_not")) }
    }

    /// The label of an option; a readable form of its name if there is none.
    pub fn option(&self, name: &str) -> String {
        self.find("option", name).map_or_else(|| spaced(name), str::to_owned)
    }

    /// A declared description in this language; empty if there is no translation.
    pub fn explanation<'a>(&'a self, english: &'a str) -> &'a str {
        if self.tag == "en" { english } else { self.find("hint", english.trim()).unwrap_or_default() }
    }

    /// An error message in this language; in English if there is no translation.
    pub fn error_text<'a>(&'a self, english: &'a str) -> Cow<'a, str> {
        self.refusals
            .translate(english, |part| self.find("resource", part).or_else(|| self.find("choice", part)))
    }

    /// A problem in this language.
    pub fn problem(&self, mut problem: Problem) -> Problem {
        problem.detail = self.error_text(&problem.detail).into_owned();
        for error in &mut *problem.errors {
            error.detail = self.error_text(&error.detail).into_owned();
        }
        problem
    }

    /// A group of the navigation.
    pub fn group<'a>(&'a self, key: &'a str) -> &'a str {
        self.find("group", key).unwrap_or(key)
    }

    /// A choice of an option: the option's own text, or that of the choice.
    pub fn choice_of<'a>(&'a self, option: &str, value: &'a str) -> &'a str {
        self.find("choice", &format!("{option}.{value}")).unwrap_or_else(|| self.choice(value))
    }

    /// A choice.
    pub fn choice<'a>(&'a self, value: &'a str) -> &'a str {
        self.find("choice", value).unwrap_or(value)
    }
}

/// A text with a capital first letter.
pub fn raised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A wire name as words: `emailAddress` is `Email address`.
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

/// The regular plural of an English noun: `branch` is `branches`.
fn plural(noun: &str) -> String {
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match before_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

    use chancery_record::{Field, Kind};
    use chancery_resource::settings::{CATALOGUE, Form};

    use super::{ENGLISH, GERMAN, GERMAN_TEXTS, Words, declared_in_german, plural, read, spaced};
    use crate::{
        pages::act,
        shell::{directory, fields::hint},
    };

    #[test]
    fn names_are_readable() {
        assert_eq!(spaced("emailAddress"), "Email address");
        assert_eq!(spaced("ClientApp"), "Client app");
        assert_eq!(spaced("isUserActive"), "Is user active");
        let plurals = ["Branch", "Event delivery", "Access key", "Tenant"].map(plural);
        assert_eq!(plurals, ["Branches", "Event deliveries", "Access keys", "Tenants"]);
    }

    /// Declared names are English: a label stands in the English texts only if it differs from the readable form of the name.
    #[test]
    fn both_languages_have_the_same_keys() {
        let keys = |words: &'static Words| -> BTreeSet<(&str, &str)> {
            // descriptions are English
            let tables = words.tables.iter().filter(|(table, _)| *table != "hint");
            let labels =
                tables.flat_map(|(table, rows)| rows.keys().map(|key| (table.as_str(), key.as_str())));
            labels.chain(words.page.keys().map(|key| ("page", key.as_str()))).collect()
        };
        let (english, german) = (keys(&ENGLISH), keys(&GERMAN));
        let untranslated: Vec<_> = english.difference(&german).collect();
        assert!(untranslated.is_empty() && english.len() > 20, "without a German text: {untranslated:?}");
        let is_readable = |(table, _): &&(&str, &str)| ["field", "option", "resource"].contains(table);
        let wordless: Vec<_> = german.difference(&english).filter(|key| !is_readable(key)).collect();
        assert!(wordless.is_empty(), "without an English text: {wordless:?}");
        let none = read("en", "");
        let repeated: Vec<_> = english
            .iter()
            .filter(|(table, key)| {
                let readable = match (*table, key.strip_suffix("_many")) {
                    ("field", _) => none.field(key),
                    ("option", _) => none.option(key),
                    ("resource", Some(name)) => none.many(name),
                    ("resource", None) => none.resource(key),
                    _ => return false,
                };
                ENGLISH.find(table, key) == Some(&readable)
            })
            .collect();
        assert!(repeated.is_empty(), "the same as the readable form of their names: {repeated:?}");
    }

    /// A German text is at its declaration, or in the file if several declarations share it.
    #[test]
    fn a_german_text_is_in_one_place() {
        let file = read("de", GERMAN_TEXTS);
        let mut declared = BTreeMap::new();
        for (table, key, text) in declared_in_german() {
            assert_eq!(
                file.find(table, &key),
                None,
                "{key} of [{table}] is at a declaration and in the file"
            );
            let other = *declared.entry((table, key.clone())).or_insert(text);
            assert_eq!(other, text, "two declarations of {key} differ");
        }
        let (mut first, mut shared) = (HashMap::<&str, &Field>::new(), HashSet::new());
        for op in directory::operations() {
            for field in directory::declared_fields(op) {
                if !first.entry(field.wire()).or_insert(field).is(field) {
                    shared.insert(field.wire());
                }
            }
            shared.extend(op.shape.relations.iter().map(|relation| relation.name));
        }
        let is_alone = |wire: &&&str| file.find("field", wire).is_some() && !shared.contains(**wire);
        let alone: Vec<_> = first.keys().filter(is_alone).collect();
        assert!(alone.is_empty() && declared.len() > 500, "one declaration has each of these: {alone:?}");
    }

    /// German descriptions belong to present declarations.
    #[test]
    fn german_descriptions_belong_to_declarations() {
        let mut declared = HashSet::new();
        for op in directory::operations() {
            let form = directory::body_fields(op);
            declared.extend(op.shape.fields.iter().chain(form).map(|field| field.about.trim()));
            declared.extend(op.shape.relations.iter().map(|relation| relation.about.trim()));
            declared.extend([op.summary.trim(), op.shape.about.trim()]);
        }
        let hints = &GERMAN.tables["hint"];
        let stale: Vec<&String> = hints.keys().filter(|hint| !declared.contains(hint.as_str())).collect();
        assert!(stale.is_empty() && hints.len() > 100, "{stale:#?}");
        assert_eq!(
            GERMAN.explanation("Whether the tokens of the client app contain the groups of the user."),
            "Ob die Token der Client-App die Gruppen des Benutzers enthalten."
        );
        assert_eq!((GERMAN.explanation("New."), ENGLISH.explanation("New.")), ("", "New."));
    }

    /// Every declaration has a German text.
    #[test]
    fn everything_declared_has_a_german_text() {
        crate::resources::fill();
        let mut expected: BTreeSet<(&str, String)> = BTreeSet::new();
        for resource in directory::resources() {
            expected.insert(("resource", resource.name.to_owned()));
            expected.insert(("resource", format!("{}_many", resource.name)));
            let acts = act::of_one(resource).chain(act::with_page(resource));
            for op in acts {
                expected.extend([("act", op.name.to_owned()), ("hint", op.summary.trim().to_owned())]);
            }
            expected.insert(("hint", resource.shape.about.trim().to_owned()));
            for relation in resource.shape.relations {
                expected.insert(("field", relation.name.to_owned()));
                expected.insert(("hint", relation.about.trim().to_owned()));
            }
        }
        for op in directory::operations() {
            let met = |field: &&Field| field.access.shown || field.access.create || field.access.patch;
            for field in directory::declared_fields(op).filter(met) {
                expected.insert(("field", field.wire().to_owned()));
                // read-only fields have no description
                if (field.access.create || field.access.patch) && !field.is_token() {
                    expected.insert(("hint", hint(field).trim().to_owned()));
                }
                if let Kind::Choice(names) | Kind::Numbered(names) = field.kind {
                    expected.extend(names.iter().map(|name| ("choice", (*name).to_owned())));
                }
            }
        }
        for entry in CATALOGUE.iter() {
            expected.insert(("option", entry.name.to_owned()));
            if let Form::Choice(names) = entry.form {
                expected.extend(names.iter().map(|name| ("choice", (*name).to_owned())));
            }
        }
        expected.remove(&("hint", String::new()));
        // names of algorithms and media types are not translated
        let is_name =
            |key: &str| key.contains(|letter: char| letter.is_ascii_digit() || "/-".contains(letter));
        let is_wordless = |(table, key): &&(&str, String)| {
            GERMAN.find(table, key).is_none() && !(*table == "choice" && is_name(key))
        };
        let wordless: Vec<_> = expected.iter().filter(is_wordless).collect();
        assert!(wordless.is_empty(), "{wordless:#?}");
    }

    /// Translations contain the variable parts of messages in the same order; messages without translation stay English.
    #[test]
    fn error_messages_are_translated() {
        for (english, german) in [
            ("is missing", "fehlt"),
            ("must be from 1 to 10", "muss von 1 bis 10 sein"),
            ("names no Tenant", "verweist auf nichts Vorhandenes: Mandant"),
            ("/name is taken", "/name ist vergeben"),
            ("must be a string, not an array", "muss Text sein, nicht eine Liste"),
            ("is new", "is new"),
        ] {
            assert_eq!(GERMAN.error_text(english), german);
            assert_eq!(ENGLISH.error_text(english), english);
        }
        let placeholders = |text: &str| text.matches("{}").count();
        let texts: HashMap<String, HashMap<String, String>> = toml::from_str(GERMAN_TEXTS).unwrap();
        for (english, translation) in &texts["refusal"] {
            assert_eq!(placeholders(english), placeholders(translation), "{english}");
            assert!(!english.replace("{}", "").trim().is_empty(), "it matches everything: {english}");
        }
    }

    #[test]
    fn the_first_supported_language_is_chosen() {
        assert_eq!(Words::of(["fr", "de-AT", "en"]).tag, "de");
        assert_eq!(Words::of(["fr"]).tag, "en");
    }
}
