//! What somebody who mistyped a name meant.

use strsim::levenshtein;

/// The known name that differs least from this one, without regard to case; `None` where none is like it.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (least, found) = measured(name, known)?;
    (least <= found.chars().count() / 2).then_some(found)
}

/// The known name that this one can only be a misspelling of: it differs in case alone, or in a letter or two. For names that
/// may be somebody's own.
pub fn misspelt<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (least, found) = measured(name, known)?;
    (least <= (found.chars().count() / 4).clamp(1, 2)).then_some(found)
}

/// The known name that differs least from this one, without regard to case, with the number of letters that differ.
fn measured<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<(usize, &'k str)> {
    let name: String = name.to_lowercase().chars().take(LONGEST).collect();
    let measured = known.into_iter().map(|known| (levenshtein(&name, &known.to_lowercase()), known));
    measured.min_by_key(|(distance, _)| *distance)
}

/// The most letters of a name that are compared.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::{misspelt, nearest};

    #[test]
    fn a_misspelling_differs_in_little() {
        let known = ["SignIn", "SecondFactor", "Style"];
        for (typed, meant) in [
            ("signin", Some("SignIn")),
            ("SignOn", Some("SignIn")),
            ("Sign-In", Some("SignIn")),
            ("SekondFaktor", Some("SecondFactor")),
            ("Tile", None),
            ("Login", None),
            ("Footer", None),
        ] {
            assert_eq!(misspelt(typed, known), meant, "{typed}");
        }
    }

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
