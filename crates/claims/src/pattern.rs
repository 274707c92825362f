//! User-supplied regular expressions with bounded cost.

use regex_automata::{
    meta::{Config, Regex},
    nfa::thompson::WhichCaptures,
};
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::{MAX_TEXT_BYTES, parsed_pattern::ParsedPattern};

/// The maximum size of a compiled pattern, in bytes: more than one of [`MAX_PATTERN_WEIGHT`](crate::parsed_pattern::MAX_PATTERN_WEIGHT) needs.
const MAX_COMPILED_BYTES: usize = 24 << 20;
/// The maximum size of each of the three tables that accelerate searches, in bytes.
const MAX_TABLE_BYTES: usize = 1 << 20;
/// The maximum weight times bytes of text of one search: two seconds in the worst case.
const MAX_SEARCH: u64 = 300_000_000;
/// The maximum number of matches that are replaced in one text. Only the search for one match takes linear
/// time.
const MAX_REPLACEMENTS: usize = 1_000;

/// A compiled regular expression. A search takes time linear in the text, because neither
/// backreferences nor look-around are supported.
///
/// It matches anywhere in a text; `^` and `$` anchor it. The empty pattern matches every text.
/// Classes such as `\d` and `\w` are those of Unicode.
#[derive(Clone, Debug, Default)]
pub struct Pattern(Option<Compiled>);

#[derive(Clone, Debug)]
struct Compiled {
    regex: Regex,
    weight: u64,
    /// The only text that it matches, if there is only one, e.g. for `^sales$`: comparison is faster than search.
    only: Option<Box<[u8]>>,
}

impl Compiled {
    /// The maximum work of a search in this text.
    fn work(&self, text: &str) -> u64 {
        self.weight.saturating_mul(u64::try_from(text.len()).unwrap_or(u64::MAX))
    }

    /// Checks that the work of a search in this text is within [`MAX_SEARCH`].
    fn check_work(&self, text: &str) -> Result<(), Overflow> {
        if self.work(text) > MAX_SEARCH { Err(Overflow::Text) } else { Ok(()) }
    }
}

/// The limit that a search exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The text is too long for a pattern of this weight, too long after the replacement, or has too many matches.
    Text,
    /// The caller's time limit.
    Time,
}

/// The caller's check of the time limit: whether there is time left.
pub type TimeCheck<'a> = &'a dyn Fn() -> bool;

impl Pattern {
    /// Compiles a pattern; the error is an explanation for people, with the position. Compilation takes up to some
    /// tenths of a second, so it must not block other requests.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::compile(&ParsedPattern::of_filter(text)?, MAX_TABLE_BYTES)
    }

    /// The pattern's weight (see [`MAX_PATTERN_WEIGHT`](crate::parsed_pattern::MAX_PATTERN_WEIGHT)), without compiling it; the error is an explanation for people,
    /// with the position.
    pub fn weigh(text: &str) -> Result<u64, String> {
        ParsedPattern::of_filter(text).map(|parsed| parsed.weight)
    }

    /// Compiles a parsed pattern; `table_bytes` is the maximum size of each of its tables.
    pub(crate) fn compile(parsed: &ParsedPattern, table_bytes: usize) -> Result<Self, String> {
        let Some(expression) = &parsed.expression else { return Ok(Self(None)) };
        let tables = table_bytes.min(MAX_TABLE_BYTES);
        let captures = if parsed.captures_groups { WhichCaptures::All } else { WhichCaptures::Implicit };
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
                Self(Some(Compiled { regex, weight: parsed.weight, only }))
            })
            .map_err(|_| "is not a regular expression".to_owned())
    }

    /// Whether the pattern is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The only text that the pattern matches, if there is only one, and if no claim's text is too long for the pattern's weight.
    pub(crate) fn only(&self) -> Option<&[u8]> {
        let compiled = self.0.as_ref()?;
        let max_length = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
        compiled.only.as_deref().filter(|_| compiled.weight.saturating_mul(max_length) <= MAX_SEARCH)
    }

    /// The maximum work of a search in this text: the pattern's weight times its bytes.
    pub(crate) fn work(&self, text: &str) -> u64 {
        self.0.as_ref().map_or(0, |compiled| compiled.work(text))
    }

    /// Whether the pattern matches in the text. The error means that the text is too long for the pattern's weight.
    pub fn is_match(&self, text: &str) -> Result<bool, Overflow> {
        let Some(compiled) = &self.0 else { return Ok(true) };
        compiled.check_work(text)?;
        Ok(match &compiled.only {
            Some(only) => **only == *text.as_bytes(),
            None => compiled.regex.is_match(text),
        })
    }

    /// Replaces all matches in the text; the result has at most `max_length` bytes. Here the empty pattern has no matches.
    pub(crate) fn rewrite(
        &self,
        text: &str,
        replacement: &str,
        max_length: usize,
        has_time: TimeCheck<'_>,
    ) -> Result<String, Overflow> {
        let Some(compiled) = &self.0 else { return Ok(text.to_owned()) };
        compiled.check_work(text)?;
        let references = replacement.matches('$').count();
        let mut output = String::new();
        let mut end = 0;
        for (index, groups) in compiled.regex.captures_iter(text).enumerate() {
            let Some(matched) = groups.get_match() else { continue };
            // no group is longer than the match, which bounds the length of the expansion
            let expanded = replacement.len().saturating_add(references.saturating_mul(matched.len()));
            if index >= MAX_REPLACEMENTS
                || output.len() > max_length
                || expanded > max_length.saturating_mul(16)
            {
                return Err(Overflow::Text);
            }
            if !has_time() {
                return Err(Overflow::Time);
            }
            output.push_str(text.get(end..matched.start()).unwrap_or_default());
            groups.interpolate_string_into(text, replacement, &mut output);
            end = matched.end();
        }
        output.push_str(text.get(end..).unwrap_or_default());
        if output.len() > max_length { Err(Overflow::Text) } else { Ok(output) }
    }
}

/// The text of an expression that matches only one text.
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

    use super::{MAX_TABLE_BYTES, Overflow, Pattern};
    use crate::parsed_pattern::{MAX_PATTERN_CHARACTERS, ParsedPattern};

    const UNLIMITED: super::TimeCheck<'static> = &|| true;

    fn rewrite(pattern: &str, text: &str, replacement: &str) -> Result<String, Overflow> {
        rewriting(pattern).unwrap().rewrite(text, replacement, 1 << 16, UNLIMITED)
    }

    fn rewriting(pattern: &str) -> Result<Pattern, String> {
        Pattern::compile(&ParsedPattern::of_rewriting(pattern)?, MAX_TABLE_BYTES)
    }

    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_anchored() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().is_match(text).unwrap();
        assert!(matches("mail", "e-mail-address"));
        assert!(!matches("^mail$", "e-mail-address"));
        assert!(!matches("^mail$", "mail\n"));
        assert!(matches("", "anything") && matches("", ""));
        assert!(matches("^\\w+$", "Grüße"));
    }

    /// A pattern for one text is compared, with the same result as a search.
    #[test]
    fn a_pattern_for_one_text_matches_only_that_text() {
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

    /// A6: a text that a search rejects is not looked up either.
    #[test]
    fn a_pattern_too_heavy_for_the_longest_text_is_not_looked_up() {
        let is_looked_up = |pattern: &str| Pattern::new(pattern).unwrap().only().is_some();
        assert!(is_looked_up("^sales$") && is_looked_up(&format!("^{}$", "ä".repeat(1_998))));
        let heavy = format!("^{}$", "\u{1F600}".repeat(1_998));
        assert!(!is_looked_up(&heavy) && !is_looked_up("") && !is_looked_up("sales"));
        assert_eq!(Pattern::new(&heavy).unwrap().is_match(&"a".repeat(60_000)), Err(Overflow::Text));
    }

    #[test]
    fn errors_are_one_line_with_their_position() {
        let error_of = |pattern: &str| Pattern::weigh(pattern).unwrap_err();
        assert_eq!(error_of("ü(b"), "is not a regular expression: unclosed group (at character 2)");
        assert!(error_of(r"(a)\1").contains("backreferences are not supported (at character 4)"));
        assert!(error_of("a(?=b)").contains("look-around"), "{}", error_of("a(?=b)"));
        assert!(error_of(r"\p{Nobody}").contains("at character 1"), "{}", error_of(r"\p{Nobody}"));
        assert!(error_of(r"(\w{900}){900}").contains("too much memory"));
        assert!(
            error_of(&"a".repeat(MAX_PATTERN_CHARACTERS + 1)).contains("at most 2000 characters, not 2001")
        );
        assert_eq!(Pattern::weigh(&"ä".repeat(MAX_PATTERN_CHARACTERS)), Ok(4_000));
        assert!(Pattern::new(r"^[\p{L} .'-]{1,100}$").is_ok());
    }

    #[test]
    fn all_matches_are_replaced_with_group_references() {
        assert_eq!(rewrite("-", "a-b-c", ".").as_deref(), Ok("a.b.c"));
        assert_eq!(rewrite("^CN=([^,]+),.*$", "CN=ada,OU=x", "$1").as_deref(), Ok("ada"));
        assert_eq!(rewrite("(?P<who>.+)@.+", "ada@example.com", "${who}_x$$").as_deref(), Ok("ada_x$"));
        assert_eq!(rewrite("x", "ada", "y").as_deref(), Ok("ada"));
        assert_eq!(rewrite("", "ada", "y").as_deref(), Ok("ada"));
        assert_eq!(rewrite("a*", "baac", "<$0>").as_deref(), Ok("<>b<aa>c<>"));
    }

    /// A6: the maximum cost of a search is known before it begins.
    #[test]
    fn a_heavy_pattern_does_not_search_a_long_text() {
        let heavy = Pattern::new(r"\w{100}x").unwrap();
        assert_eq!(heavy.is_match(&"a".repeat(800)), Ok(false));
        assert_eq!(heavy.is_match(&"a".repeat(60_000)), Err(Overflow::Text));
        let light = rewriting("^a+x$").unwrap();
        assert_eq!(light.is_match(&"a".repeat(60_000)), Ok(false));
        assert_eq!(light.rewrite("aax", "", 1 << 16, &|| false), Err(Overflow::Time));
    }

    /// A6: a search has the cost of each captured group in every step.
    #[test]
    fn only_captured_groups_have_weight() {
        let groups = format!("{}[ab]{{0,190000}}", "()".repeat(900));
        let error = rewriting(&groups).unwrap_err();
        assert!(error.contains("fewer groups"), "{error}");
        assert_eq!(Pattern::new(&groups).unwrap().is_match("b"), Ok(true));
        let few = r"^(\d{4})-(\d{2})-(\d{2})T.*$";
        assert_eq!(rewrite(few, "2026-11-22T12:00", "$3.$2.$1").as_deref(), Ok("22.11.2026"));
    }

    /// A6: ignoring case has a cost for each character of a class, so the number of classes is limited.
    #[test]
    fn the_number_of_classes_is_limited_if_case_is_ignored() {
        let all = "[!-\u{10FFFD}]";
        let nested = |count: usize| format!("(?i)[{}]", all.repeat(count));
        let error = Pattern::weigh(&format!("(?i){}", all.repeat(33))).unwrap_err();
        assert_eq!(error, "takes at most 32 classes of characters where case is ignored, not 33");
        assert!(Pattern::weigh(&format!("(?i){}", all.repeat(32))).is_ok());
        assert!(Pattern::weigh(&all.repeat(133)).is_ok());
        assert!(Pattern::weigh(&nested(31)).is_ok() && Pattern::weigh(&nested(32)).is_err());
        for folded in [r"\p{L}", r"[a-z&&b-c]", r"(?i:[a])", r"[\pL--\pN]"] {
            assert!(Pattern::weigh(&format!("{}(?i)", folded.repeat(33))).is_err(), "{folded}");
        }
        assert!(Pattern::weigh(&format!("(?i){}", r"\w\d\s".repeat(20))).is_ok());
    }

    #[test]
    fn a_rewritten_text_is_bounded() {
        let long = "x".repeat(1 << 16);
        assert_eq!(rewrite("^.*$", &long, "$0"), Ok(long.clone()));
        assert_eq!(rewrite("^.*$", &long, "$0$0"), Err(Overflow::Text));
        assert_eq!(rewrite("^.*$", &long, &"$0".repeat(1_000)), Err(Overflow::Text));
        assert_eq!(rewrite("x", &"x".repeat(1_000), "y"), Ok("y".repeat(1_000)));
        assert_eq!(rewrite("x", &"x".repeat(1_001), "y"), Err(Overflow::Text));
    }

    proptest! {
        #[test]
        fn any_pattern_compiles_or_is_rejected(
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
                    let rewritten = compiled.rewrite(&text, &replacement, 256, UNLIMITED);
                    prop_assert!(rewritten.as_ref().map_or(0, String::len) <= 256);
                    if compiled.is_match(&text) == Ok(false) && text.len() <= 256 {
                        prop_assert_eq!(rewritten, Ok(text));
                    }
                }
                Err(error) => prop_assert!(!error.is_empty() && !error.contains('\n')),
            }
        }
    }
}
