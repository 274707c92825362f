//! The intended name of a misspelt one.

use strsim::levenshtein;

/// The known name that differs least from this one, without regard to case; `None` where none is similar.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (least, candidate) = closest(name, known)?;
    (least <= candidate.chars().count() / 2).then_some(candidate)
}

/// The known name of which this one is a misspelling: it differs in case alone, or in a letter or two. For
/// names that may also be user-defined.
pub fn misspelt<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (least, candidate) = closest(name, known)?;
    (least <= (candidate.chars().count() / 4).clamp(1, 2)).then_some(candidate)
}

/// The known name that differs least from this one, without regard to case, with the edit distance.
fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<(usize, &'k str)> {
    let name: String = name.to_lowercase().chars().take(MAX_COMPARED).collect();
    let closest = known.into_iter().map(|known| (levenshtein(&name, &known.to_lowercase()), known));
    closest.min_by_key(|(distance, _)| *distance)
}

/// The most letters of a name that are compared.
const MAX_COMPARED: usize = 256;

#[cfg(test)]
mod tests {
    use super::{misspelt, nearest};

    #[test]
    fn a_misspelling_differs_in_few_letters() {
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
