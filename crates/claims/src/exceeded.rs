//! Exceeded limits of an evaluation.

use std::fmt;

use uuid::Uuid;

use crate::{MAX_CLAIMS, MAX_PATHS, MAX_STEPS, MAX_TEXT_BYTES, MAX_TOTAL_BYTES};

/// The limit that the claims exceed, before or after the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// There are more than [`MAX_CLAIMS`].
    Claims,
    /// A claim's type or value has more than [`MAX_TEXT_BYTES`].
    Text,
    /// All types and values together have more than [`MAX_TOTAL_BYTES`].
    Total,
    /// The paths of all claims together have more than [`MAX_PATHS`] rules.
    Paths,
    /// A trace has more than [`MAX_STEPS`], or more than [`MAX_TOTAL_BYTES`].
    Steps,
    /// This rule would write a text of more than [`MAX_TEXT_BYTES`], or replace too many matches in one text.
    Rewriting(Uuid),
    /// A text is too long for the weight of this rule's patterns.
    Matching(Uuid),
    /// The evaluation took too long.
    Time,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claims => write!(formatter, "there are more than {MAX_CLAIMS} claims"),
            Self::Text => write!(formatter, "a claim has more than {MAX_TEXT_BYTES} bytes"),
            Self::Total => write!(formatter, "the claims have more than {MAX_TOTAL_BYTES} bytes together"),
            Self::Paths => {
                write!(formatter, "the claims pass more than {MAX_PATHS} rules, counted for each claim")
            }
            Self::Steps => {
                write!(
                    formatter,
                    "the claims take too many steps, more than {MAX_STEPS} or with much text: trace fewer"
                )
            }
            Self::Rewriting(rule) => {
                write!(formatter, "the rule {rule} would make a claim longer than {MAX_TEXT_BYTES} bytes")?;
                write!(formatter, " or replace too many places of one")
            }
            Self::Matching(rule) => {
                write!(formatter, "a claim is too long for the patterns of the rule {rule}: ")?;
                write!(formatter, "write them with fewer or smaller repetitions")
            }
            Self::Time => {
                write!(formatter, "the rules take too long: there are too many, or too many claims")
            }
        }
    }
}

impl std::error::Error for LimitExceeded {}
