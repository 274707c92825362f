//! Translation of the English error messages of the API.

use std::{borrow::Cow, collections::HashMap};

/// Maximum nesting of messages. Deeper ones stay English: they may be user input.
const DEPTH: usize = 4;

/// Translations by English message. `{}` in both stands for a variable part, in the same order.
pub struct ErrorTranslations {
    whole: HashMap<String, String>,
    /// The messages with placeholders, the longest first: the more specific one has precedence.
    patterns: Vec<(Pattern, String)>,
}

impl ErrorTranslations {
    /// Builds the translations from the texts.
    pub fn of(texts: HashMap<String, String>) -> Self {
        let (named, whole): (HashMap<_, _>, HashMap<_, _>) =
            texts.into_iter().partition(|(english, _)| english.contains("{}"));
        let mut named: Vec<(String, String)> = named.into_iter().collect();
        named.sort_by(|(one, _), (other, _)| (other.len(), other).cmp(&(one.len(), one)));
        let patterns =
            named.into_iter().map(|(english, translation)| (Pattern::of(&english), translation)).collect();
        Self { whole, patterns }
    }

    /// Whether a message has a translation.
    pub fn has(&self, english: &str) -> bool {
        self.whole.contains_key(english)
            || self.patterns.iter().any(|(pattern, _)| pattern.find(english).is_some())
    }

    /// Translates a message; returns it unchanged if there is no translation. A variable part is looked up in `known`, or
    /// translated as a message itself.
    pub fn translate<'a>(
        &'a self,
        english: &'a str,
        known: impl Fn(&str) -> Option<&'a str> + Copy,
    ) -> Cow<'a, str> {
        self.translate_within(english, known, DEPTH)
    }

    fn translate_within<'a>(
        &'a self,
        english: &'a str,
        known: impl Fn(&str) -> Option<&'a str> + Copy,
        depth: usize,
    ) -> Cow<'a, str> {
        if let Some(translation) = self.whole.get(english) {
            return translation.into();
        }
        let Some(below) = depth.checked_sub(1) else { return english.into() };
        let matching = self
            .patterns
            .iter()
            .find_map(|(pattern, translation)| Some((pattern.find(english)?, translation)));
        let Some((parts, translation)) = matching else { return english.into() };
        let translate =
            |part| known(part).map_or_else(|| self.translate_within(part, known, below), Into::into);
        let mut literals = translation.split("{}");
        let mut text = literals.next().unwrap_or_default().to_owned();
        for (part, literal) in parts.into_iter().zip(literals) {
            text.push_str(&translate(part));
            text.push_str(literal);
        }
        text.into()
    }
}

/// A message with placeholders for its variable parts.
struct Pattern(Vec<String>);

impl Pattern {
    fn of(text: &str) -> Self {
        Self(text.split("{}").map(str::to_owned).collect())
    }

    /// The variable parts of a text that matches this pattern.
    fn find<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let (first, rest) = self.0.split_first()?;
        let (last, between) = rest.split_last()?;
        let mut left = text.strip_prefix(first.as_str())?.strip_suffix(last.as_str())?;
        let mut parts = Vec::with_capacity(rest.len());
        for literal in between {
            let (one, after) = left.split_once(literal.as_str())?;
            parts.push(one);
            left = after;
        }
        parts.push(left);
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorTranslations, Pattern};

    fn translations() -> ErrorTranslations {
        let texts = [("is taken", "ist vergeben"), ("[{}] {}", "[{}] {}"), ("names no {}", "nennt kein {}")];
        let texts = texts.map(|(english, translation)| (english.to_owned(), translation.to_owned()));
        ErrorTranslations::of(texts.into())
    }

    fn translated(english: &str) -> String {
        let known = |part: &str| (part == "Tenant").then_some("Mandant");
        translations().translate(english, known).into_owned()
    }

    #[test]
    fn a_new_message_has_no_translation() {
        let translations = translations();
        assert_eq!(
            ["is taken", "names no Tenant", "is new"].map(|text| translations.has(text)),
            [true, true, false]
        );
    }

    #[test]
    fn variable_parts_are_translated() {
        assert_eq!(translated("[3] is taken"), "[3] ist vergeben");
        assert_eq!(translated("[3] names no Tenant"), "[3] nennt kein Mandant");
        assert_eq!(translated("is new"), "is new");
    }

    /// A text of any length is processed up to a bounded depth: beyond it, nothing is translated.
    #[test]
    fn depth_is_bounded() {
        assert_eq!(translated("[1] [2] [3] [4] is taken"), "[1] [2] [3] [4] ist vergeben");
        let deep = format!("{}is new", "[1] ".repeat(1_000_000));
        assert_eq!(translated(&deep), deep);
    }

    #[test]
    fn a_pattern_extracts_its_variable_parts() {
        assert_eq!(Pattern::of("a{}b{}").find("a1b2"), Some(vec!["1", "2"]));
        for (text, pattern) in [("a b", "{} c"), ("b", "a{}b"), ("ab", "ab")] {
            assert_eq!(Pattern::of(pattern).find(text), None, "{text}");
        }
    }
}
