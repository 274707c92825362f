//! The texts of the pages, in German and English.

use std::sync::LazyLock;

use minijinja::{Value, value::Serde};

/// A language of the shipped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// German.
    German,
}

static ENGLISH: LazyLock<Value> = LazyLock::new(|| table(Language::English));
static GERMAN: LazyLock<Value> = LazyLock::new(|| table(Language::German));

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::German];

    /// The language by the first part of a language tag (BCP 47), such as German for `de` and `de-AT`.
    pub fn named(tag: &str) -> Option<Self> {
        let first = tag.split(['-', '_']).next()?;
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(first))
    }

    /// The first available language of these tags; English where none is available.
    pub fn of<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        tags.into_iter().find_map(Self::named).unwrap_or(Self::English)
    }

    /// The language's tag (BCP 47), as in a page's `lang`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    /// The texts of the shipped pages, as TOML.
    pub const fn source(self) -> &'static str {
        match self {
            Self::English => include_str!("../texts/en.toml"),
            Self::German => include_str!("../texts/de.toml"),
        }
    }

    pub(crate) fn texts(self) -> Value {
        match self {
            Self::English => ENGLISH.clone(),
            Self::German => GERMAN.clone(),
        }
    }
}

/// The texts; empty where they cannot be parsed, and then no page renders. Tests check that they parse.
fn table(language: Language) -> Value {
    let texts: Option<serde_json::Value> = toml::from_str(language.source()).ok();
    Value::from(Serde(texts))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Language;

    /// Collects each text's path with the names in braces in it.
    fn keys(path: &str, table: &toml::Table, texts: &mut BTreeSet<(String, Vec<String>)>) {
        for (key, value) in table {
            let path = format!("{path}.{key}");
            match value {
                toml::Value::Table(table) => keys(&path, table, texts),
                toml::Value::String(text) => {
                    assert!(!text.trim().is_empty(), "{path}");
                    let names = text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap().into());
                    let mut names: Vec<String> = names.collect();
                    names.sort();
                    texts.insert((path, names));
                }
                _ => panic!("{path} is no text"),
            }
        }
    }

    #[test]
    fn all_languages_have_the_same_texts_with_the_same_gaps() {
        let [english, german] = Language::ALL.map(|language| {
            let mut texts = BTreeSet::new();
            keys("text", &toml::from_str(language.source()).unwrap(), &mut texts);
            texts
        });
        assert_eq!(english, german);
        assert!(english.len() > 80);
    }

    #[test]
    fn tags_choose_the_language() {
        for (tags, language) in [
            ("", Language::English),
            ("de", Language::German),
            ("DE-at", Language::German),
            ("den", Language::English),
            ("fr", Language::English),
            ("fr de en", Language::German),
            ("fr en de", Language::English),
        ] {
            assert_eq!(Language::of(tags.split(' ')), language, "{tags}");
        }
    }
}
