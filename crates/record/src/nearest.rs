//! What somebody who mistyped a name meant.

use strsim::levenshtein;

/// The known name that differs least from this one, without regard to case; `None` where none is like it.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name: String = name.to_lowercase().chars().take(LONGEST).collect();
    let measured = known.into_iter().map(|known| (levenshtein(&name, &known.to_lowercase()), known));
    let (least, found) = measured.min_by_key(|(distance, _)| *distance)?;
    (least <= found.chars().count() / 2).then_some(found)
}

/// The most letters of a name that are compared.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::nearest;

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
}
