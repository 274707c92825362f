//! What somebody who mistyped a name meant.

/// The known name that differs least from this one, without regard to case; `None` where none is like it.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters: Vec<char> = name.to_lowercase().chars().take(LONGEST).collect();
    let measured = known.into_iter().map(|known| (distance(&letters, known), known));
    let (least, found) = measured.min_by_key(|(distance, _)| *distance)?;
    (least <= found.chars().count() / 2).then_some(found)
}

/// The most letters of a name that are compared.
const LONGEST: usize = 256;

/// The letters to be added, taken away or exchanged until one is the other (Levenshtein).
fn distance(letters: &[char], known: &str) -> usize {
    let mut row: Vec<usize> = (0..=letters.len()).collect();
    for (number, other) in known.to_lowercase().chars().enumerate() {
        let (mut left, mut above_left) = (number + 1, number);
        for (slot, letter) in row.iter_mut().skip(1).zip(letters) {
            let above = *slot;
            *slot = (above_left + usize::from(*letter != other)).min(left + 1).min(above + 1);
            (left, above_left) = (*slot, above);
        }
        if let Some(first) = row.first_mut() {
            *first = number + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["PasswordMinLength", "PasswordMaxLength", "ClaimIssuer"];
        for (typed, meant) in [
            ("PasswordMinLenght", Some("PasswordMinLength")),
            ("passwordmaxlength", Some("PasswordMaxLength")),
            ("Issuer", Some("ClaimIssuer")),
            ("Nothing like it", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (one, other, wanted) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(&letters(one), other), wanted, "{one} {other}");
        }
    }
}
