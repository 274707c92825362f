//! Comparison of texts in constants, where `==` is not available.

/// Whether two texts are equal. The compiler interprets constants step by step: it compares the lengths first, and then from the end,
/// where the names of one module differ.
#[must_use]
pub const fn is_same_text(one: &str, other: &str) -> bool {
    one.len() == other.len() && ends_with(one, other)
}

/// Whether a text ends with another, compared from the end.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "within the shorter text")]
pub const fn ends_with(text: &str, end: &str) -> bool {
    let (text, end) = (text.as_bytes(), end.as_bytes());
    if end.len() > text.len() {
        return false;
    }
    let before = text.len() - end.len();
    let mut at = end.len();
    while at > 0 {
        at -= 1;
        if text[before + at] != end[at] {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{ends_with, is_same_text};

    #[test]
    fn texts_are_equal_as_a_whole() {
        assert!(is_same_text("GetUser", "GetUser") && is_same_text("", ""));
        assert!(!is_same_text("GetUser", "GetUsers") && !is_same_text("GetUsers", "GetUser"));
        assert!(!is_same_text("GetUser", "SetUser"));
    }

    #[test]
    fn an_end_is_compared_completely() {
        assert!(ends_with("user.created", ".created") && ends_with("user", "user") && ends_with("user", ""));
        assert!(!ends_with("user.created", "-created") && !ends_with("created", "user.created"));
    }
}
