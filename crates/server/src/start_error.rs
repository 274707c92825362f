//! Why a server, or a command, does not start.

use std::fmt;

use chancery_resource::Problem;

use crate::ConfigError;

/// Why a server does not start.
#[derive(Debug)]
pub struct StartError(pub(crate) String);

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

impl StartError {
    pub(crate) fn from_config(error: ConfigError) -> Self {
        Self(error.0)
    }

    pub(crate) fn new(what: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// A problem's cause, for the log.
pub fn cause_of(problem: Problem) -> String {
    problem.cause.map_or(problem.detail, |cause| cause.to_string())
}
