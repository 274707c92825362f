//! Why a server, or a command, does not start.

use std::{error::Error, fmt};

use chancery_resource::Problem;

/// Why a command or a background job fails: the error of what it called, or a sentence for people.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a server does not start: what cannot be done, and the error behind it.
#[derive(Debug)]
pub struct StartError {
    what: Option<String>,
    source: BoxError,
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Some(what) => write!(formatter, "{what}: {}", self.source),
            None => self.source.fmt(formatter),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

impl StartError {
    /// An error that says by itself what cannot be done, such as that of an option.
    pub(crate) fn of(source: impl Into<BoxError>) -> Self {
        Self { what: None, source: source.into() }
    }

    pub(crate) fn new(what: impl fmt::Display, why: impl Into<BoxError>) -> Self {
        Self { what: Some(what.to_string()), source: why.into() }
    }
}

/// A problem's cause, for the log.
pub fn cause_of(problem: Problem) -> BoxError {
    problem.cause.map_or_else(|| problem.detail.into(), Into::into)
}
