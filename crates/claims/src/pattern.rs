//! Regular expressions of callers, at a cost that has an end.

use regex::{Regex, RegexBuilder};
use regex_syntax::{
    hir::{Class, Hir, HirKind},
    utf8::Utf8Sequences,
};

/// How many characters a pattern may have.
pub const MAX_PATTERN_CHARACTERS: usize = 2_000;
/// How heavy a pattern may be, in steps of the automaton that it becomes: some 15 bytes each. A hundred
/// letters of any script weigh 280,000.
pub const MAX_PATTERN_WEIGHT: u64 = 400_000;
/// How many bytes a compiled pattern may take: more than one of that weight does.
const MAX_COMPILED_BYTES: usize = 24 << 20;
/// How many bytes the tables may take that make a pattern fast: alone, and among many.
const TABLE_BYTES: std::ops::RangeInclusive<usize> = 32 << 10..=1 << 20;
/// How many steps times bytes one search may be in the worst case: a second or two.
const MAX_SEARCH: u64 = 500_000_000;
/// How many places of one text are rewritten. To find one is linear, to find each need not be.
const MAX_PLACES: usize = 1_000;

/// A compiled regular expression. It runs in time linear in the text, because it knows neither
/// backreferences nor looking around.
///
/// It matches a text in which it is found anywhere; `^` and `$` tie it to the ends. The empty one
/// matches every text. Classes such as `\d` and `\w` are those of Unicode.
#[derive(Clone, Debug, Default)]
pub struct Pattern(Option<Compiled>);

#[derive(Clone, Debug)]
struct Compiled {
    regex: Regex,
    weight: u64,
}

impl Compiled {
    /// Whether the pattern can be looked for in the text at a cost that has an end.
    fn can_search(&self, text: &str) -> Result<(), Overflow> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if self.weight.saturating_mul(bytes) > MAX_SEARCH { Err(Overflow::Text) } else { Ok(()) }
    }
}

/// What a search is too much for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The text's length: before it for so heavy a pattern, or rewritten; or the places in it.
    Text,
    /// The time that there is.
    Time,
}

/// Whether there is time to go on.
pub type GoOn<'a> = &'a dyn Fn() -> bool;

impl Pattern {
    /// Compiles the text; `Err` tells a person what is wrong with it, and where. It takes up to some
    /// tenths of a second: never in the way of others.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::among(text, 1)
    }

    /// Compiles the text, as one of so many patterns that share what tables may take.
    pub(crate) fn among(text: &str, patterns: usize) -> Result<Self, String> {
        let weight = Self::weigh(text)?;
        if text.is_empty() {
            return Ok(Self(None));
        }
        let tables = ((64 << 20) / patterns.max(1)).clamp(*TABLE_BYTES.start(), *TABLE_BYTES.end());
        RegexBuilder::new(text)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(tables)
            .build()
            .map(|regex| Self(Some(Compiled { regex, weight })))
            .map_err(|_| "is not a regular expression".to_owned())
    }

    /// How heavy the pattern is, without compiling it; `Err` tells a person what is wrong with it, and
    /// where.
    pub fn weigh(text: &str) -> Result<u64, String> {
        let length = text.chars().count();
        if length > MAX_PATTERN_CHARACTERS {
            return Err(format!("takes at most {MAX_PATTERN_CHARACTERS} characters, not {length}"));
        }
        let parsed = regex_syntax::Parser::new().parse(text).map_err(|error| explain(text, error))?;
        let weight = weigh(&parsed);
        if weight > MAX_PATTERN_WEIGHT {
            return Err("takes too much memory: write it with fewer or smaller repetitions".to_owned());
        }
        Ok(weight)
    }

    /// Whether it is the empty one.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it is found in the text. `Err`: so heavy a pattern is not looked for in so long a text.
    pub fn is_match(&self, text: &str) -> Result<bool, Overflow> {
        let Some(compiled) = &self.0 else { return Ok(true) };
        compiled.can_search(text)?;
        Ok(compiled.regex.is_match(text))
    }

    /// The text with every place replaced where the pattern is found, at most so many bytes long.
    /// The empty pattern is found nowhere here.
    pub(crate) fn rewrite(
        &self,
        text: &str,
        replacement: &str,
        most: usize,
        go_on: GoOn<'_>,
    ) -> Result<String, Overflow> {
        let Some(compiled) = &self.0 else { return Ok(text.to_owned()) };
        compiled.can_search(text)?;
        let references = replacement.matches('$').count();
        let mut written = String::new();
        let mut end = 0;
        for (place, groups) in compiled.regex.captures_iter(text).enumerate() {
            let found = groups.get_match();
            // no group is longer than the match: what an expansion takes is known before it is made
            let longest = replacement.len().saturating_add(references.saturating_mul(found.len()));
            if place >= MAX_PLACES || written.len() > most || longest > most.saturating_mul(16) {
                return Err(Overflow::Text);
            }
            if !go_on() {
                return Err(Overflow::Time);
            }
            written.push_str(text.get(end..found.start()).unwrap_or_default());
            groups.expand(replacement, &mut written);
            end = found.end();
        }
        written.push_str(text.get(end..).unwrap_or_default());
        if written.len() > most { Err(Overflow::Text) } else { Ok(written) }
    }
}

/// The steps of the automaton that the expression becomes, as its compiler lays them out.
fn weigh(expression: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().fold(1, |sum: u64, part| sum.saturating_add(weigh(part)));
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Literal(literal) => u64::try_from(literal.0.len()).unwrap_or(u64::MAX),
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .flat_map(|range| Utf8Sequences::new(range.start(), range.end()))
            .map(|sequence| u64::try_from(sequence.len()).unwrap_or(u64::MAX))
            .sum(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1);
            weigh(&repetition.sub).saturating_add(1).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => weigh(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// In one line: the library draws the pattern with a mark below it.
fn explain(text: &str, error: regex_syntax::Error) -> String {
    let (problem, offset) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
        _ => return "is not a regular expression".to_owned(),
    };
    let character = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    format!("is not a regular expression: {problem} (at character {character})")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_PATTERN_CHARACTERS, Overflow, Pattern};

    const FOR_EVER: super::GoOn<'static> = &|| true;

    fn rewrite(pattern: &str, text: &str, replacement: &str) -> Result<String, Overflow> {
        Pattern::new(pattern).unwrap().rewrite(text, replacement, 1 << 16, FOR_EVER)
    }

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_tied() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().is_match(text).unwrap();
        assert!(matches("mail", "e-mail-address"));
        assert!(!matches("^mail$", "e-mail-address"));
        assert!(!matches("^mail$", "mail\n"));
        assert!(matches("", "anything") && matches("", ""));
        assert!(matches("^\\w+$", "Grüße"));
    }

    #[test]
    fn what_is_wrong_is_told_in_a_line_with_its_place() {
        let told = |pattern: &str| Pattern::weigh(pattern).unwrap_err();
        assert_eq!(told("ü(b"), "is not a regular expression: unclosed group (at character 2)");
        assert!(told(r"(a)\1").contains("backreferences are not supported (at character 4)"));
        assert!(told("a(?=b)").contains("look-around"), "{}", told("a(?=b)"));
        assert!(told(r"\p{Nobody}").contains("at character 1"), "{}", told(r"\p{Nobody}"));
        assert!(told(r"(\w{900}){900}").contains("too much memory"));
        assert!(told(&"a".repeat(MAX_PATTERN_CHARACTERS + 1)).contains("at most 2000 characters, not 2001"));
        assert_eq!(Pattern::weigh(&"ä".repeat(MAX_PATTERN_CHARACTERS)), Ok(4_000));
        assert!(Pattern::new(r"^[\p{L} .'-]{1,100}$").is_ok());
    }

    #[test]
    fn every_place_is_rewritten_and_groups_are_named() {
        assert_eq!(rewrite("-", "a-b-c", ".").as_deref(), Ok("a.b.c"));
        assert_eq!(rewrite("^CN=([^,]+),.*$", "CN=ada,OU=x", "$1").as_deref(), Ok("ada"));
        assert_eq!(rewrite("(?P<who>.+)@.+", "ada@example.com", "${who}_x$$").as_deref(), Ok("ada_x$"));
        assert_eq!(rewrite("x", "ada", "y").as_deref(), Ok("ada"));
        assert_eq!(rewrite("", "ada", "y").as_deref(), Ok("ada"));
        assert_eq!(rewrite("a*", "baac", "<$0>").as_deref(), Ok("<>b<aa>c<>"));
    }

    /// A6: what a search costs at the worst is known before it begins.
    #[test]
    fn a_heavy_pattern_is_not_looked_for_in_a_long_text() {
        let heavy = Pattern::new(r"\w{100}x").unwrap();
        assert_eq!(heavy.is_match(&"a".repeat(1_000)), Ok(false));
        assert_eq!(heavy.is_match(&"a".repeat(60_000)), Err(Overflow::Text));
        let light = Pattern::new("^a+x$").unwrap();
        assert_eq!(light.is_match(&"a".repeat(60_000)), Ok(false));
        assert_eq!(light.rewrite("aax", "", 1 << 16, &|| false), Err(Overflow::Time));
    }

    #[test]
    fn a_rewritten_text_has_an_end() {
        let long = "x".repeat(1 << 16);
        assert_eq!(rewrite("^.*$", &long, "$0"), Ok(long.clone()));
        assert_eq!(rewrite("^.*$", &long, "$0$0"), Err(Overflow::Text));
        assert_eq!(rewrite("^.*$", &long, &"$0".repeat(1_000)), Err(Overflow::Text));
        assert_eq!(rewrite("x", &"x".repeat(1_000), "y"), Ok("y".repeat(1_000)));
        assert_eq!(rewrite("x", &"x".repeat(1_001), "y"), Err(Overflow::Text));
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_pattern(
            pattern in prop_oneof![
                "\\PC{0,60}",
                r"([a-z0-9äλ]|[()\[\]{}.*+?|^$\\,:=!<>&~-]|\{[0-9]{1,4},?[0-9]{0,4}\}|\\[pPdwsbxuQ]|\(\?[a-zP<]){0,30}",
            ],
            text in any::<String>(),
            replacement in prop_oneof!["\\PC{0,40}", r"([a-z]|\$\{?[a-z0-9_]{0,2}\}?){0,12}"],
        ) {
            // what is not too heavy compiles
            prop_assert_eq!(Pattern::weigh(&pattern).is_ok(), Pattern::new(&pattern).is_ok());
            match Pattern::new(&pattern) {
                Ok(compiled) => {
                    let rewritten = compiled.rewrite(&text, &replacement, 256, FOR_EVER);
                    prop_assert!(rewritten.as_ref().map_or(0, String::len) <= 256);
                    if compiled.is_match(&text) == Ok(false) && text.len() <= 256 {
                        prop_assert_eq!(rewritten, Ok(text));
                    }
                }
                Err(told) => prop_assert!(!told.is_empty() && !told.contains('\n')),
            }
        }
    }
}
