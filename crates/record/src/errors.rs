//! What is wrong with a body, bounded: a body can be wrong in a million places.

use std::ops::{Deref, DerefMut};

use serde::Serialize;

/// The most errors that are told. The others are counted.
pub const MOST_ERRORS: usize = 100;
/// The longest name of a member that is told whole, in bytes.
const LONGEST_NAME: usize = 256;

/// One thing wrong with a body: where (RFC 6901) and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON Pointer into the body.
    pub pointer: String,
    /// What is wrong, for people.
    pub detail: String,
}

impl FieldError {
    /// An error at a pointer.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// A member's pointer below `base`, escaped by RFC 6901. A name that no member of ours can have is cut.
pub fn pointer(base: &str, member: &str) -> String {
    format!("{base}/{}", shortened(member).replace('~', "~0").replace('/', "~1"))
}

/// A name as it is told: cut where it is too long.
pub fn shortened(name: &str) -> std::borrow::Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    let end = (0..=LONGEST_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", name.get(..end).unwrap_or_default()).into()
}

/// The errors of a body: the first [`MOST_ERRORS`] of them, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors {
    told: Vec<FieldError>,
    more: usize,
}

impl FieldErrors {
    /// Adds one, made only if it is told.
    pub fn note(&mut self, error: impl FnOnce() -> FieldError) {
        if self.told.len() < MOST_ERRORS {
            self.told.push(error());
        } else {
            self.more += 1;
        }
    }

    /// Adds those of another body.
    pub fn absorb(&mut self, others: Self) {
        self.more += others.more;
        others.told.into_iter().for_each(|error| self.note(|| error));
    }

    /// Counts errors that are not told.
    pub const fn count_more(&mut self, more: usize) {
        self.more += more;
    }

    /// How many there are that are not told.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// How many there are, told or not.
    pub fn all(&self) -> usize {
        self.told.len() + self.more
    }

    /// Takes the last of those that are told.
    pub fn pop(&mut self) -> Option<FieldError> {
        self.told.pop()
    }

    /// Those that are told.
    pub fn as_slice(&self) -> &[FieldError] {
        &self.told
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];
    fn deref(&self) -> &[FieldError] {
        &self.told
    }
}

impl DerefMut for FieldErrors {
    fn deref_mut(&mut self) -> &mut [FieldError] {
        &mut self.told
    }
}

impl From<Vec<FieldError>> for FieldErrors {
    fn from(mut told: Vec<FieldError>) -> Self {
        let more = told.len().saturating_sub(MOST_ERRORS);
        told.truncate(MOST_ERRORS);
        Self { told, more }
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
        self.told.into_iter()
    }
}

impl<'a> IntoIterator for &'a mut FieldErrors {
    type Item = &'a mut FieldError;
    type IntoIter = std::slice::IterMut<'a, FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.told.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldError, FieldErrors, MOST_ERRORS, pointer};

    /// A1: what is kept of a million mistakes is bounded, and so is what one of them says.
    #[test]
    fn errors_are_told_up_to_a_bound() {
        let errors: FieldErrors = (0..1_000_000).map(|n| FieldError::new(n.to_string(), "wrong")).collect();
        assert_eq!((errors.len(), errors.more(), errors.all()), (MOST_ERRORS, 999_900, 1_000_000));
        assert_eq!(errors[99].pointer, "99");
        let many = vec![FieldError::new("", ""); 101];
        assert_eq!(FieldErrors::from(many).more(), 1);
        assert_eq!(pointer("", &"\u{e4}".repeat(1000)).len(), 1 + 256 + 3);
        assert_eq!(pointer("/1", "a/b~"), "/1/a~1b~0");
    }
}
