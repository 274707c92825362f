//! Failures of sending a mail, and their texts.

use std::error::Error as _;

use lettre::transport::smtp::Error;

/// The most characters in the text of a failure.
const MAX_REASON: usize = 200;

/// Why a mail was not sent. The text contains no secret, and nothing that the server worded.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt may succeed.
    Transient(String),
    /// No further attempt can succeed.
    Permanent(String),
}

impl Failure {
    /// A failure that can be repaired.
    pub fn transient(error: &Error) -> Self {
        Self::Transient(printable(error))
    }

    /// A failure that no further attempt repairs.
    pub fn permanent(error: &Error) -> Self {
        Self::Permanent(printable(error))
    }
}

/// The text of a failure. Of a reply it has only the code and the enhanced code (RFC 3463): the rest is the server's
/// own text, and can repeat the sent content.
fn printable(error: &Error) -> String {
    let words = if let Some(status) = error.status() {
        let reply = error.source().map(ToString::to_string).unwrap_or_default();
        let first = reply.split_whitespace().next().filter(|word| is_enhanced(word));
        format!("the mail server answered {status} {}", first.unwrap_or_default()).trim_end().to_owned()
    } else if error.is_response() {
        "the mail server's answer ended early or was not understood".to_owned()
    } else {
        error.to_string()
    };
    words.chars().filter(|message| !message.is_control()).take(MAX_REASON).collect()
}

/// Whether a word is an enhanced code such as `5.7.1`.
fn is_enhanced(word: &str) -> bool {
    let mut parts = 0;
    let digits = |part: &str| {
        parts += 1;
        (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    word.split('.').all(digits) && parts == 3
}

#[cfg(test)]
mod tests {
    use super::is_enhanced;

    #[test]
    fn an_enhanced_code_is_three_numbers() {
        for code in ["5.7.1", "4.4.316"] {
            assert!(is_enhanced(code), "{code}");
        }
        for other in ["", "5.7", "5.7.1.2", "5..1", "5.7.x", "5.7.1234", "token"] {
            assert!(!is_enhanced(other), "{other}");
        }
    }
}
