//! Refusals of a view, each with its position.

use minijinja::{Error, ErrorKind};

/// The reason why a view is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line, from 1.
    pub line: usize,
    /// The column in the line, in characters, from 1.
    pub column: usize,
    /// The mistake at this position.
    pub detail: String,
}

impl Refusal {
    /// A refusal at a byte of the source.
    pub(super) fn at(offset: usize, source: &str, detail: impl Into<String>) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            detail: detail.into(),
        }
    }

    pub(super) fn of(error: &Error, source: &str) -> Self {
        let detail = match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => "the view takes too many steps".to_owned(),
            // the only writer, `Page`, refuses only pages that are too long
            (ErrorKind::WriteFailure, _) => "the page becomes too long".to_owned(),
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        };
        match (error.range(), error.line()) {
            (Some(range), _) => Self::at(range.start, source, detail),
            (None, line) => Self { line: line.unwrap_or(1), column: 1, detail },
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {}, column {}: {}", self.line, self.column, self.detail)
    }
}

impl std::error::Error for Refusal {}

/// The reason why a page cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the view that fails: the requested one or one that it includes.
    pub view: String,
    /// The mistake in the view; it has names, no values.
    pub refusal: Refusal,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}", self.view, self.refusal)
    }
}

impl std::error::Error for Failure {}
