//! Scopes (RFC 6749, section 3.3).

use std::fmt;

use crate::{ErrorCode, ProtocolError};

/// The maximum length of a scope, in bytes.
const MAX_LENGTH: usize = 4096;
/// The maximum number of words of a scope.
const MAX_WORDS: usize = 100;

/// The scope words that every client app may request, as discovery lists them (OpenID Connect Core 1.0, sections
/// 3.1.2.1, 5.4 and 11; `groups` is an extension of this server).
pub const STANDARD_SCOPES: [&str; 6] = [OPENID, "profile", "email", "phone", GROUPS, OFFLINE_ACCESS];
/// The word of OpenID Connect requests. Without it, a request is plain OAuth.
pub const OPENID: &str = "openid";
/// The word that requests the names of the user's groups.
pub const GROUPS: &str = "groups";
/// The word that requests a refresh token.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// A set of scope words in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Vec<String>);

impl Scope {
    /// Parses a scope: words with one space between them. Repeated words count once.
    ///
    /// # Errors
    /// `invalid_scope`: the grammar is violated, or there are too many words.
    pub fn parse(text: &str) -> Result<Self, ProtocolError> {
        if text.len() > MAX_LENGTH {
            return Err(refuse("The scope is longer than 4 KiB."));
        }
        let mut words: Vec<String> = Vec::new();
        for word in text.split(' ') {
            if !is_word(word) {
                return Err(refuse("A scope is words with one space between them."));
            }
            if !words.iter().any(|seen| seen == word) {
                words.push(word.to_owned());
            }
        }
        if words.len() > MAX_WORDS {
            Err(refuse("The scope has more than 100 words."))
        } else {
            Ok(Self(words))
        }
    }

    /// A scope of the first words, up to the maximum size.
    pub fn of_first<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut length = 0;
        let fits = |word: &&str| {
            length += word.len() + 1;
            length <= MAX_LENGTH
        };
        let mut unique: Vec<String> = Vec::new();
        for word in words.filter(|word| is_word(word)).take_while(fits).take(MAX_WORDS) {
            if !unique.iter().any(|seen| seen == word) {
                unique.push(word.to_owned());
            }
        }
        Self(unique)
    }

    /// The scope's words.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether the scope has a word.
    pub fn has(&self, word: &str) -> bool {
        self.0.iter().any(|own| own == word)
    }

    /// Whether the scope has no word.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The granted part of the scope. A response must name a scope that differs from the request's (RFC 6749, section 5.1).
    #[must_use]
    pub fn filter(&self, is_granted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|word| is_granted(word)).cloned().collect())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(" "))
    }
}

/// Whether a word is a `scope-token` (RFC 6749, section 3.3): `1*( %x21 / %x23-5B / %x5D-7E )`.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidScope, detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Scope;
    use crate::ErrorCode;

    #[test]
    fn a_scope_is_parsed_and_filtered() {
        let scope = Scope::parse("openid read:all openid https://api.example/x!").unwrap();
        assert_eq!(scope.to_string(), "openid read:all https://api.example/x!");
        assert_eq!(scope.filter(|word| word.starts_with("read")).words().collect::<Vec<_>>(), ["read:all"]);
        assert!(scope.filter(|_| false).is_empty());
    }

    #[test]
    fn a_scope_of_many_words_is_cut_at_the_maximum() {
        let words: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        assert_eq!(Scope::of_first(words.iter().map(String::as_str)).words().count(), 100);
        let long = ["a".repeat(2000), "b".repeat(2000), "c".repeat(2000)];
        let scope = Scope::of_first(long.iter().map(String::as_str));
        assert_eq!(scope.words().count(), 2);
        assert_eq!(Scope::parse(&scope.to_string()), Ok(scope));
        assert_eq!(Scope::of_first(["a", "b c", "a"].into_iter()).to_string(), "a");
    }

    #[test]
    fn violations_of_the_grammar_are_rejected() {
        let many = (0..101).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        let long = "a".repeat(4097);
        for wrong in ["", " ", "a  b", " a", "a ", "a\tb", "a\"b", "a\\b", "ä", "a\u{7f}", &many, &long] {
            assert_eq!(Scope::parse(wrong).unwrap_err().code, ErrorCode::InvalidScope, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_written_scope_parses_to_the_same_scope(text in "\\PC{0,60}") {
            if let Ok(scope) = Scope::parse(&text) {
                prop_assert_eq!(Scope::parse(&scope.to_string()).unwrap(), scope);
            }
        }
    }
}
