//! Regular expressions of callers, at a bounded cost.

use regex_automata::{
    meta::{Config, Regex},
    nfa::thompson::WhichCaptures,
};
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::{MAX_TEXT_BYTES, reading::ParsedPattern};

/// The most characters of a pattern.
pub const MAX_PATTERN_CHARACTERS: usize = 2_000;
/// The greatest weight of a pattern. The weight is the number of the automaton's states, once for the
/// match itself and once more for each group that a search captures. A pattern of a hundred letters of any
/// script weighs 280,000.
pub const MAX_PATTERN_WEIGHT: u64 = 400_000;
/// The most bytes of a compiled pattern: more than one of [`MAX_PATTERN_WEIGHT`] takes.
const MAX_COMPILED_BYTES: usize = 24 << 20;
/// The most bytes of each of the three tables that make a pattern's searches fast.
const MAX_TABLE_BYTES: usize = 1 << 20;
/// The greatest weight times bytes of text of one search: two seconds in the worst case.
const MAX_SEARCH: u64 = 300_000_000;
/// The most matches that are rewritten in one text. Finding one match takes linear time, finding all
/// need not.
const MAX_PLACES: usize = 1_000;

/// A compiled regular expression. It runs in time linear in the text, because it has neither
/// backreferences nor look-around.
///
/// It matches a text in which it is found anywhere; `^` and `$` anchor it. The empty pattern
/// matches every text. Classes such as `\d` and `\w` are those of Unicode.
#[derive(Clone, Debug, Default)]
pub struct Pattern(Option<Compiled>);

#[derive(Clone, Debug)]
struct Compiled {
    regex: Regex,
    weight: u64,
    /// The one text that it matches, where there is one, as of `^sales$`: to compare texts is quicker than to search.
    only: Option<Box<[u8]>>,
}

impl Compiled {
    /// The most work of a search in this text.
    fn work(&self, text: &str) -> u64 {
        self.weight.saturating_mul(u64::try_from(text.len()).unwrap_or(u64::MAX))
    }

    /// Whether the work of a search in this text is within [`MAX_SEARCH`].
    fn can_search(&self, text: &str) -> Result<(), Overflow> {
        if self.work(text) > MAX_SEARCH { Err(Overflow::Text) } else { Ok(()) }
    }
}

/// The bound that a search exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The text: too long for a pattern of this weight, too long when rewritten, or with too many matches.
    Text,
    /// The caller's time.
    Time,
}

/// The caller's answer to whether there is time to go on.
pub type GoOn<'a> = &'a dyn Fn() -> bool;

impl Pattern {
    /// Compiles a pattern; the error says for people what is wrong, and where. Compiling takes up to some
    /// tenths of a second, so it must not run where it blocks other requests.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::compile(&ParsedPattern::of_filter(text)?, MAX_TABLE_BYTES)
    }

    /// The pattern's weight (see [`MAX_PATTERN_WEIGHT`]), without compiling it; the error says for people
    /// what is wrong, and where.
    pub fn weigh(text: &str) -> Result<u64, String> {
        ParsedPattern::of_filter(text).map(|reading| reading.weight)
    }

    /// Compiles a pattern that was read, with this many bytes for each of its tables.
    pub(crate) fn compile(reading: &ParsedPattern, table_bytes: usize) -> Result<Self, String> {
        let Some(expression) = &reading.expression else { return Ok(Self(None)) };
        let tables = table_bytes.min(MAX_TABLE_BYTES);
        let captures = if reading.keeps_groups { WhichCaptures::All } else { WhichCaptures::Implicit };
        let config = Config::new()
            .which_captures(captures)
            .nfa_size_limit(Some(MAX_COMPILED_BYTES))
            .hybrid_cache_capacity(tables)
            .onepass_size_limit(Some(tables));
        Regex::builder()
            .configure(config)
            .build_from_hir(expression)
            .map(|regex| {
                let only = only_text(expression).map(Into::into);
                Self(Some(Compiled { regex, weight: reading.weight, only }))
            })
            .map_err(|_| "is not a regular expression".to_owned())
    }

    /// Whether the pattern is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The one text that the pattern matches, where there is one and no claim's text is too long to be compared with it.
    pub(crate) fn only(&self) -> Option<&[u8]> {
        let compiled = self.0.as_ref()?;
        let longest = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
        compiled.only.as_deref().filter(|_| compiled.weight.saturating_mul(longest) <= MAX_SEARCH)
    }

    /// The most work of a search in this text: the pattern's weight times its bytes.
    pub(crate) fn work(&self, text: &str) -> u64 {
        self.0.as_ref().map_or(0, |compiled| compiled.work(text))
    }

    /// Whether the pattern is found in the text. The error: the text is too long for the pattern's weight.
    pub fn is_match(&self, text: &str) -> Result<bool, Overflow> {
        let Some(compiled) = &self.0 else { return Ok(true) };
        compiled.can_search(text)?;
        Ok(match &compiled.only {
            Some(only) => **only == *text.as_bytes(),
            None => compiled.regex.is_match(text),
        })
    }

    /// The text with every match replaced, of at most `most` bytes. Here the empty pattern matches nowhere.
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
        for (index, groups) in compiled.regex.captures_iter(text).enumerate() {
            let Some(found) = groups.get_match() else { continue };
            // no group is longer than the match, so an expansion's length is bounded before it is written
            let longest = replacement.len().saturating_add(references.saturating_mul(found.len()));
            if index >= MAX_PLACES || written.len() > most || longest > most.saturating_mul(16) {
                return Err(Overflow::Text);
            }
            if !go_on() {
                return Err(Overflow::Time);
            }
            written.push_str(text.get(end..found.start()).unwrap_or_default());
            groups.interpolate_string_into(text, replacement, &mut written);
            end = found.end();
        }
        written.push_str(text.get(end..).unwrap_or_default());
        if written.len() > most { Err(Overflow::Text) } else { Ok(written) }
    }
}

/// The text of an expression that matches one whole text and no other.
fn only_text(expression: &Hir) -> Option<&[u8]> {
    let HirKind::Concat(parts) = expression.kind() else { return None };
    let [start, text, end] = parts.as_slice() else { return None };
    match (start.kind(), text.kind(), end.kind()) {
        (HirKind::Look(Look::Start), HirKind::Literal(text), HirKind::Look(Look::End)) => Some(&text.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_PATTERN_CHARACTERS, MAX_TABLE_BYTES, Overflow, Pattern};
    use crate::reading::ParsedPattern;

    const FOR_EVER: super::GoOn<'static> = &|| true;

    fn rewrite(pattern: &str, text: &str, replacement: &str) -> Result<String, Overflow> {
        rewriting(pattern).unwrap().rewrite(text, replacement, 1 << 16, FOR_EVER)
    }

    fn rewriting(pattern: &str) -> Result<Pattern, String> {
        Pattern::compile(&ParsedPattern::of_rewriting(pattern)?, MAX_TABLE_BYTES)
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

    /// A pattern for one whole text is compared, and finds what the search would find.
    #[test]
    fn a_pattern_for_one_text_finds_that_text_alone() {
        for pattern in [
            "^sales$",
            r"\Asales\z",
            "^Grüße$",
            "(?i)^sales$",
            "(?m)^sales$",
            "^sales",
            "sales$",
            "^(sales)$",
            "^sale(s)?$",
        ] {
            let compiled = Pattern::new(pattern).unwrap();
            let searched = super::Regex::new(pattern).unwrap();
            for text in ["sales", "sale", "sales ", "sales\n", "a\nsales", "Sales", "Grüße", "grüße", ""]
            {
                assert_eq!(compiled.is_match(text), Ok(searched.is_match(text)), "{pattern} {text:?}");
            }
        }
        let is_compared = |pattern: &str| Pattern::new(pattern).unwrap().0.unwrap().only.is_some();
        assert!(is_compared("^sales$") && is_compared(r"\Asales\z"));
        assert!(!is_compared("(?i)^sales$") && !is_compared("(?m)^sales$") && !is_compared("^sales"));
    }

    /// A6: what a search refuses is not looked up either.
    #[test]
    fn a_pattern_that_a_text_can_be_too_long_for_is_not_looked_up() {
        let is_looked_up = |pattern: &str| Pattern::new(pattern).unwrap().only().is_some();
        assert!(is_looked_up("^sales$") && is_looked_up(&format!("^{}$", "ä".repeat(1_998))));
        let heavy = format!("^{}$", "\u{1F600}".repeat(1_998));
        assert!(!is_looked_up(&heavy) && !is_looked_up("") && !is_looked_up("sales"));
        assert_eq!(Pattern::new(&heavy).unwrap().is_match(&"a".repeat(60_000)), Err(Overflow::Text));
    }

    #[test]
    fn errors_are_one_line_with_their_position() {
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

    /// A6: the worst cost of a search is known before it begins.
    #[test]
    fn a_heavy_pattern_is_not_looked_for_in_a_long_text() {
        let heavy = Pattern::new(r"\w{100}x").unwrap();
        assert_eq!(heavy.is_match(&"a".repeat(800)), Ok(false));
        assert_eq!(heavy.is_match(&"a".repeat(60_000)), Err(Overflow::Text));
        let light = rewriting("^a+x$").unwrap();
        assert_eq!(light.is_match(&"a".repeat(60_000)), Ok(false));
        assert_eq!(light.rewrite("aax", "", 1 << 16, &|| false), Err(Overflow::Time));
    }

    /// A6: a search that captures groups pays for each of them in every step; one that does not, does not.
    #[test]
    fn groups_weigh_where_they_are_kept() {
        let groups = format!("{}[ab]{{0,190000}}", "()".repeat(900));
        let told = rewriting(&groups).unwrap_err();
        assert!(told.contains("fewer groups"), "{told}");
        assert_eq!(Pattern::new(&groups).unwrap().is_match("b"), Ok(true));
        let few = r"^(\d{4})-(\d{2})-(\d{2})T.*$";
        assert_eq!(rewrite(few, "2026-11-22T12:00", "$3.$2.$1").as_deref(), Ok("22.11.2026"));
    }

    /// A6: ignoring case costs a step for each character of a class, so the number of classes is bounded.
    #[test]
    fn classes_are_bounded_where_case_is_ignored() {
        let all = "[!-\u{10FFFD}]";
        let nested = |count: usize| format!("(?i)[{}]", all.repeat(count));
        let told = Pattern::weigh(&format!("(?i){}", all.repeat(33))).unwrap_err();
        assert_eq!(told, "takes at most 32 classes of characters where case is ignored, not 33");
        assert!(Pattern::weigh(&format!("(?i){}", all.repeat(32))).is_ok());
        assert!(Pattern::weigh(&all.repeat(133)).is_ok());
        assert!(Pattern::weigh(&nested(31)).is_ok() && Pattern::weigh(&nested(32)).is_err());
        for folded in [r"\p{L}", r"[a-z&&b-c]", r"(?i:[a])", r"[\pL--\pN]"] {
            assert!(Pattern::weigh(&format!("{}(?i)", folded.repeat(33))).is_err(), "{folded}");
        }
        assert!(Pattern::weigh(&format!("(?i){}", r"\w\d\s".repeat(20))).is_ok());
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
            // a pattern that is not too heavy compiles
            prop_assert_eq!(Pattern::weigh(&pattern).is_ok(), Pattern::new(&pattern).is_ok());
            match rewriting(&pattern) {
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
