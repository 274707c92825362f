//! The harness's only error: a sentence that says why it stopped.

use std::{error::Error, fmt};

/// The reason why a benchmark stopped.
#[derive(Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Fault {}

/// Any error, reported to the person who started the benchmark.
pub type AnyError = Box<dyn Error + Send + Sync>;

/// A result of the harness.
pub type Result<T> = std::result::Result<T, AnyError>;

/// An error with this text.
pub fn fault(text: impl Into<String>) -> AnyError {
    Box::new(Fault(text.into()))
}

/// Adds to an error what was being done.
pub trait Context<T> {
    /// Puts `what` before the error's own text.
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| fault(format!("{what}: {error}")))
    }
}
