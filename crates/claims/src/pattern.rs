//! Regular expressions of callers, at a cost that has an end.

use regex::{Regex, RegexBuilder};

/// How many characters a pattern may have.
pub const MAX_PATTERN_CHARACTERS: usize = 2_000;
/// How many bytes a compiled pattern may take; a hundred letters of any script take five MiB.
const MAX_COMPILED_BYTES: usize = 6 << 20;
/// How many bytes the tables may take that make it fast.
const MAX_TABLE_BYTES: usize = 1 << 20;
/// How many places of one text are rewritten. To find one is linear, to find each need not be.
const MAX_PLACES: usize = 1_000;

/// A compiled regular expression. It runs in time linear in the text, because it knows neither
/// backreferences nor looking around.
///
/// It matches a text in which it is found anywhere; `^` and `$` tie it to the ends. The empty one
/// matches every text. Classes such as `\d` and `\w` are those of Unicode.
#[derive(Clone, Debug, Default)]
pub struct Pattern(Option<Regex>);

/// What a rewritten text has too much of: length, or places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Pattern {
    /// Compiles the text; `Err` tells a person what is wrong with it, and where.
    pub fn new(text: &str) -> Result<Self, String> {
        let length = text.chars().count();
        if length > MAX_PATTERN_CHARACTERS {
            return Err(format!("takes at most {MAX_PATTERN_CHARACTERS} characters, not {length}"));
        }
        if text.is_empty() {
            return Ok(Self(None));
        }
        RegexBuilder::new(text)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_TABLE_BYTES)
            .build()
            .map(|regex| Self(Some(regex)))
            .map_err(|error| explain(text, &error))
    }

    /// Whether the text is a pattern, for the time when it is configured.
    pub fn check(text: &str) -> Result<(), String> {
        Self::new(text).map(drop)
    }

    /// Whether it is the empty one.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it is found in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    /// The text with every place replaced where the pattern is found, at most so many bytes long.
    /// The empty pattern is found nowhere here.
    pub(crate) fn rewrite(&self, text: &str, replacement: &str, most: usize) -> Result<String, Overflow> {
        let Some(regex) = &self.0 else { return Ok(text.to_owned()) };
        let references = replacement.matches('$').count();
        let mut written = String::new();
        let mut end = 0;
        for (place, groups) in regex.captures_iter(text).enumerate() {
            let found = groups.get_match();
            // no group is longer than the match: what an expansion takes is known before it is made
            let longest = replacement.len().saturating_add(references.saturating_mul(found.len()));
            if place >= MAX_PLACES || written.len() > most || longest > most.saturating_mul(16) {
                return Err(Overflow);
            }
            written.push_str(text.get(end..found.start()).unwrap_or_default());
            groups.expand(replacement, &mut written);
            end = found.end();
        }
        written.push_str(text.get(end..).unwrap_or_default());
        if written.len() > most { Err(Overflow) } else { Ok(written) }
    }
}

/// In one line: the library draws the pattern with a mark below it.
fn explain(text: &str, error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "takes too much memory: use fewer or shorter repetitions".to_owned();
    }
    let (problem, offset) = match regex_syntax::parse(text) {
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), error.span().start.offset),
        Err(regex_syntax::Error::Translate(error)) => (error.kind().to_string(), error.span().start.offset),
        _ => return "is not a regular expression".to_owned(),
    };
    let character = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    format!("is not a regular expression: {problem} (at character {character})")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_PATTERN_CHARACTERS, Overflow, Pattern};

    fn rewrite(pattern: &str, text: &str, replacement: &str) -> Result<String, Overflow> {
        Pattern::new(pattern).unwrap().rewrite(text, replacement, 1 << 16)
    }

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_tied() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().is_match(text);
        assert!(matches("mail", "e-mail-address"));
        assert!(!matches("^mail$", "e-mail-address"));
        assert!(!matches("^mail$", "mail\n"));
        assert!(matches("", "anything") && matches("", ""));
        assert!(matches("^\\w+$", "Grüße"));
    }

    #[test]
    fn what_is_wrong_is_told_in_a_line_with_its_place() {
        let told = |pattern: &str| Pattern::check(pattern).unwrap_err();
        assert_eq!(told("ü(b"), "is not a regular expression: unclosed group (at character 2)");
        assert!(told(r"(a)\1").contains("backreferences are not supported (at character 4)"));
        assert!(told("a(?=b)").contains("look-around"), "{}", told("a(?=b)"));
        assert!(told(r"\p{Nobody}").contains("at character 1"), "{}", told(r"\p{Nobody}"));
        assert!(told(r"(\w{900}){900}").contains("too much memory"));
        assert!(told(&"a".repeat(MAX_PATTERN_CHARACTERS + 1)).contains("at most 2000 characters, not 2001"));
        assert_eq!(Pattern::check(&"ä".repeat(MAX_PATTERN_CHARACTERS)), Ok(()));
        assert_eq!(Pattern::check(r"^[\p{L} .'-]{1,100}$"), Ok(()));
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

    #[test]
    fn a_rewritten_text_has_an_end() {
        let long = "x".repeat(1 << 16);
        assert_eq!(rewrite("^.*$", &long, "$0"), Ok(long.clone()));
        assert_eq!(rewrite("^.*$", &long, "$0$0"), Err(Overflow));
        assert_eq!(rewrite("^.*$", &long, &"$0".repeat(1_000)), Err(Overflow));
        assert_eq!(rewrite("x", &"x".repeat(1_000), "y"), Ok("y".repeat(1_000)));
        assert_eq!(rewrite("x", &"x".repeat(1_001), "y"), Err(Overflow));
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
            prop_assert_eq!(Pattern::check(&pattern).is_ok(), Pattern::new(&pattern).is_ok());
            match Pattern::new(&pattern) {
                Ok(compiled) => {
                    let rewritten = compiled.rewrite(&text, &replacement, 256);
                    prop_assert!(rewritten.as_ref().map_or(0, String::len) <= 256);
                    if !compiled.is_match(&text) && text.len() <= 256 {
                        prop_assert_eq!(rewritten, Ok(text));
                    }
                }
                Err(told) => prop_assert!(!told.is_empty() && !told.contains('\n')),
            }
        }
    }
}
