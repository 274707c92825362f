//! Refusals of the interface, which are English, in another language.

use std::{borrow::Cow, collections::HashMap};

/// How deep a refusal may stand within another one. What stands deeper stays as it is: it may be what somebody typed.
const DEPTH: usize = 4;

/// Translations of refusals, by their English sentences. `{}` in both stands for what differs, in the same order.
pub struct Refusals {
    whole: HashMap<String, String>,
    /// Those with places, the longest first: what is more particular is looked at before what is less.
    patterns: Vec<(Pattern, String)>,
}

impl Refusals {
    /// The translations of these sentences.
    pub fn of(texts: HashMap<String, String>) -> Self {
        let (named, whole): (HashMap<_, _>, HashMap<_, _>) =
            texts.into_iter().partition(|(english, _)| english.contains("{}"));
        let mut named: Vec<(String, String)> = named.into_iter().collect();
        named.sort_by(|(one, _), (other, _)| (other.len(), other).cmp(&(one.len(), one)));
        let patterns = named.into_iter().map(|(english, told)| (Pattern::of(&english), told)).collect();
        Self { whole, patterns }
    }

    /// A refusal in the language of the translations; as it is where there is none. What stands at its places is told in
    /// `known` words, or is a refusal itself.
    pub fn tell<'a>(
        &'a self,
        english: &'a str,
        known: impl Fn(&str) -> Option<&'a str> + Copy,
    ) -> Cow<'a, str> {
        self.tell_within(english, known, DEPTH)
    }

    fn tell_within<'a>(
        &'a self,
        english: &'a str,
        known: impl Fn(&str) -> Option<&'a str> + Copy,
        depth: usize,
    ) -> Cow<'a, str> {
        if let Some(told) = self.whole.get(english) {
            return told.into();
        }
        let Some(below) = depth.checked_sub(1) else { return english.into() };
        let found = self.patterns.iter().find_map(|(pattern, told)| Some((pattern.find(english)?, told)));
        let Some((parts, told)) = found else { return english.into() };
        let tell = |part| known(part).map_or_else(|| self.tell_within(part, known, below), Into::into);
        let mut literals = told.split("{}");
        let mut text = literals.next().unwrap_or_default().to_owned();
        for (part, literal) in parts.into_iter().zip(literals) {
            text.push_str(&tell(part));
            text.push_str(literal);
        }
        text.into()
    }
}

/// A sentence with places for what differs in it.
struct Pattern(Vec<String>);

impl Pattern {
    fn of(text: &str) -> Self {
        Self(text.split("{}").map(str::to_owned).collect())
    }

    /// What stands at the places of this pattern in a text.
    fn find<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let (first, rest) = self.0.split_first()?;
        let (last, between) = rest.split_last()?;
        let mut left = text.strip_prefix(first.as_str())?.strip_suffix(last.as_str())?;
        let mut found = Vec::with_capacity(rest.len());
        for literal in between {
            let (one, after) = left.split_once(literal.as_str())?;
            found.push(one);
            left = after;
        }
        found.push(left);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, Refusals};

    fn told(english: &str) -> String {
        let texts = [("is taken", "ist vergeben"), ("[{}] {}", "[{}] {}"), ("names no {}", "nennt kein {}")];
        let texts = texts.map(|(english, told)| (english.to_owned(), told.to_owned()));
        let known = |part: &str| (part == "Tenant").then_some("Mandant");
        Refusals::of(texts.into()).tell(english, known).into_owned()
    }

    #[test]
    fn what_differs_is_kept_and_told() {
        assert_eq!(told("[3] is taken"), "[3] ist vergeben");
        assert_eq!(told("[3] names no Tenant"), "[3] nennt kein Mandant");
        assert_eq!(told("is new"), "is new");
    }

    /// A text of any length takes a bounded depth: deeper than that, nothing is told.
    #[test]
    fn depth_is_bounded() {
        assert_eq!(told("[1] [2] [3] [4] is taken"), "[1] [2] [3] [4] ist vergeben");
        let deep = format!("{}is new", "[1] ".repeat(1_000_000));
        assert_eq!(told(&deep), deep);
    }

    #[test]
    fn a_pattern_finds_its_own() {
        assert_eq!(Pattern::of("a{}b{}").find("a1b2"), Some(vec!["1", "2"]));
        for (text, pattern) in [("a b", "{} c"), ("b", "a{}b"), ("ab", "ab")] {
            assert_eq!(Pattern::of(pattern).find(text), None, "{text}");
        }
    }
}
