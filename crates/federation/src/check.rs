//! The result of one check of a provider's response or configuration.

use chancery_record::{Json, shortened};

/// The result of one check, and the option to correct if it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The check's name.
    pub name: &'static str,
    /// Whether the check passed.
    pub passed: bool,
    /// The explanation for an administrator. Texts of the provider are shortened in it.
    pub detail: String,
    /// The option of the instance to correct, or `certStores`; none if only the provider can correct it.
    pub option: Option<&'static str>,
}

impl Check {
    /// A check with its result.
    pub fn new(name: &'static str, passed: bool, detail: impl Into<String>) -> Self {
        Self { name, passed, detail: detail.into(), option: None }
    }

    /// A check that failed.
    pub fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, false, detail)
    }

    /// Compares a received value with the expected one; `subject` names it in the explanation.
    pub fn equal(name: &'static str, subject: &str, received: &str, expected: &str) -> Self {
        if received == expected {
            return Self::new(name, true, format!("{subject} is {}.", quoted(received)));
        }
        Self::failed(name, format!("{subject} is {}, and must be {}.", quoted(received), quoted(expected)))
    }

    /// The same check, with the option to correct.
    #[must_use]
    pub const fn with_option(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }
}

/// Whether all checks passed.
pub fn has_passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed)
}

/// Quotes a provider's text for display: one line, shortened to a sentence.
pub fn quoted(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("\"{}\"", shortened(&line))
}

/// A member, if it is text.
pub fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text) } else { None }
}

/// The texts of a member, if it is an array.
pub fn texts(json: &Json, name: &str) -> Option<Vec<String>> {
    let Some(Json::Array(items)) = json.get(name) else { return None };
    let text = |item: &Json| if let Json::Text(text) = item { Some(text.clone()) } else { None };
    Some(items.iter().filter_map(text).collect())
}
