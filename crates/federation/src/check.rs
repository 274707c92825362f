//! One thing that was looked at.

use chancery_record::{Json, shortened};

/// One thing that was looked at: whether it is as it must be, and where that is set right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether it is right.
    pub passed: bool,
    /// What was found, for an administrator. What the provider said is shortened in it.
    pub detail: String,
    /// The option of the instance by which it is set right, or `certStores`; none where that is up to the provider.
    pub option: Option<&'static str>,
}

impl Check {
    /// A check of this name with what was found.
    pub fn new(name: &'static str, passed: bool, detail: impl Into<String>) -> Self {
        Self { name, passed, detail: detail.into(), option: None }
    }

    /// A check that failed.
    pub fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, false, detail)
    }

    /// Whether two texts are the same, and which they are.
    pub fn same(name: &'static str, what: &str, found: &str, wanted: &str) -> Self {
        if found == wanted {
            return Self::new(name, true, format!("{what} is {}.", told(found)));
        }
        Self::failed(name, format!("{what} is {}, and must be {}.", told(found), told(wanted)))
    }

    /// The same check, set right by this option.
    #[must_use]
    pub const fn by(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }
}

/// Whether all checks passed.
pub fn has_passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed)
}

/// What a provider said, fit to be shown: in quotes, of one line, and not longer than a sentence.
pub fn told(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("\"{}\"", shortened(&line))
}

/// A member that is text.
pub fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    if let Some(Json::Text(text)) = json.get(name) { Some(text) } else { None }
}

/// The texts of a member that is an array; none where it is absent or something else.
pub fn texts(json: &Json, name: &str) -> Option<Vec<String>> {
    let Some(Json::Array(items)) = json.get(name) else { return None };
    let text = |item: &Json| if let Json::Text(text) = item { Some(text.clone()) } else { None };
    Some(items.iter().filter_map(text).collect())
}
