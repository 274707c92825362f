//! The errors of a body, bounded in number and size: a body can contain a million of them.

use std::ops::{Deref, DerefMut};

use serde::Serialize;

/// The most errors that are reported one by one. Further ones are only counted.
pub const MAX_ERRORS: usize = 100;
/// The longest name of a member that is reported in full, in bytes.
const MAX_NAME: usize = 256;

/// One error of a body: its position (JSON Pointer, RFC 6901) and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON Pointer into the body.
    pub pointer: String,
    /// The reason, for people.
    pub detail: String,
}

impl FieldError {
    /// An error at a pointer.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// The JSON Pointer (RFC 6901) of a member below `base`. A name longer than any real member's is shortened.
pub fn pointer(base: &str, member: &str) -> String {
    format!("{base}/{}", shortened(member).replace('~', "~0").replace('/', "~1"))
}

/// A name for error messages: shortened where it is too long.
pub fn shortened(name: &str) -> std::borrow::Cow<'_, str> {
    if name.len() <= MAX_NAME {
        return name.into();
    }
    let end = (0..=MAX_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", name.get(..end).unwrap_or_default()).into()
}

/// The errors of a body: the first [`MAX_ERRORS`] of them, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors {
    reported: Vec<FieldError>,
    more: usize,
}

impl FieldErrors {
    /// Adds an error, which is built only if it is reported.
    pub fn note(&mut self, error: impl FnOnce() -> FieldError) {
        if self.reported.len() < MAX_ERRORS {
            self.reported.push(error());
        } else {
            self.more += 1;
        }
    }

    /// Adds the errors of another body.
    pub fn absorb(&mut self, others: Self) {
        self.more += others.more;
        others.reported.into_iter().for_each(|error| self.note(|| error));
    }

    /// Counts errors that are not reported.
    pub const fn count_more(&mut self, more: usize) {
        self.more += more;
    }

    /// The number of errors that are not reported.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// The number of all errors, reported or not.
    pub fn all(&self) -> usize {
        self.reported.len() + self.more
    }

    /// Removes and returns the last reported error.
    pub fn pop(&mut self) -> Option<FieldError> {
        self.reported.pop()
    }

    /// The reported errors.
    pub fn as_slice(&self) -> &[FieldError] {
        &self.reported
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];
    fn deref(&self) -> &[FieldError] {
        &self.reported
    }
}

impl DerefMut for FieldErrors {
    fn deref_mut(&mut self) -> &mut [FieldError] {
        &mut self.reported
    }
}

impl From<Vec<FieldError>> for FieldErrors {
    fn from(mut reported: Vec<FieldError>) -> Self {
        let more = reported.len().saturating_sub(MAX_ERRORS);
        reported.truncate(MAX_ERRORS);
        Self { reported, more }
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut all = Self::default();
        errors.into_iter().for_each(|error| all.note(|| error));
        all
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.reported.into_iter()
    }
}

impl<'a> IntoIterator for &'a mut FieldErrors {
    type Item = &'a mut FieldError;
    type IntoIter = std::slice::IterMut<'a, FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.reported.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldError, FieldErrors, MAX_ERRORS, pointer};

    /// A1: of a million errors a bounded number is stored, each of bounded size.
    #[test]
    fn errors_are_reported_up_to_a_bound() {
        let errors: FieldErrors = (0..1_000_000).map(|n| FieldError::new(n.to_string(), "wrong")).collect();
        assert_eq!((errors.len(), errors.more(), errors.all()), (MAX_ERRORS, 999_900, 1_000_000));
        assert_eq!(errors[99].pointer, "99");
        let many = vec![FieldError::new("", ""); 101];
        assert_eq!(FieldErrors::from(many).more(), 1);
        assert_eq!(pointer("", &"\u{e4}".repeat(1000)).len(), 1 + 256 + 3);
        assert_eq!(pointer("/1", "a/b~"), "/1/a~1b~0");
    }
}
