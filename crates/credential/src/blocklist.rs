//! The blocklist of common passwords; see `data/README.md`.

use std::sync::LazyLock;

static COMMON: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../data/blocklist.txt").lines().collect());

/// Whether a folded password is on the blocklist.
pub fn is_common(folded: &str) -> bool {
    COMMON.binary_search(&folded).is_ok()
}

#[cfg(test)]
mod tests {
    use chancery_record::fold;

    use super::{COMMON, is_common};

    #[test]
    fn the_list_is_folded_sorted_and_without_repetition() {
        assert!(COMMON.len() >= 10_000);
        for entry in COMMON.iter() {
            assert_eq!(*entry, fold(entry));
            assert_eq!(*entry, entry.trim());
            assert!(!entry.is_empty());
        }
        for pair in COMMON.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn common_passwords_are_on_the_list() {
        for common in
            ["password", "123456", "qwerty", "password1", "пароль", COMMON[0], COMMON[COMMON.len() - 1]]
        {
            assert!(is_common(common), "{common}");
        }
        assert!(!is_common("grüne ameise 7"));
        assert!(!is_common(""));
    }
}
