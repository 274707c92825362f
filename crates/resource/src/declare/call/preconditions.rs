//! The conditions of a request's headers (RFC 9110, section 13).

use std::borrow::Cow;

use crate::{Problem, ProblemKind};

/// The conditions of RFC 9110, section 13.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    /// `If-Match`
    pub if_match: Option<String>,
    /// `If-None-Match`
    pub if_none_match: Option<String>,
}

impl Preconditions {
    /// Whether `If-Match` holds: it contains the item's `ETag` or its quoted token.
    pub fn matches(&self, tag: &str, token: Option<&str>) -> bool {
        let Some(expected) = &self.if_match else { return true };
        let is_token = |one: &str| token.is_some_and(|token| one == format!("\"{token}\""));
        expected.split(',').map(uncoded).any(|one| one == "*" || one == tag || is_token(&one))
    }

    /// Checks `If-Match`.
    ///
    /// # Errors
    /// It does not hold.
    pub fn check(&self, tag: &str, token: Option<&str>) -> Result<(), Problem> {
        if self.matches(tag, token) {
            return Ok(());
        }
        let detail = "If-Match names another state of the item. Read it again and send its present ETag.";
        Err(Problem::new(ProblemKind::PreconditionFailed, detail).with_header("etag", tag))
    }

    /// Evaluates the conditions for reading an existing item; returns the response status.
    ///
    /// # Errors
    /// `If-Match` does not hold.
    pub fn evaluate(&self, tag: &str, token: Option<&str>) -> Result<u16, Problem> {
        self.check(tag, token)?;
        // by weak comparison
        let known = self.if_none_match.as_ref().is_some_and(|known| {
            let tag = tag.trim_start_matches("W/");
            known.split(',').map(uncoded).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
        });
        Ok(if known { 304 } else { 200 })
    }
}

/// The tag without the suffix of the content coding of the body.
fn uncoded(tag: &str) -> Cow<'_, str> {
    let tag = tag.trim();
    let coded = [".zstd\"", ".br\"", ".gzip\""].iter().find_map(|coding| tag.strip_suffix(coding));
    coded.map_or(Cow::Borrowed(tag), |tag| Cow::Owned(format!("{tag}\"")))
}
