//! Comparing names without regard to case.

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;

/// Folds text for comparison: Unicode NFKC, then full case folding, then NFKC again, so that text that looks
/// the same is the same. Stable under repetition.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let compose = const { ComposingNormalizer::new_nfkc() };
    let case = CaseMapper::new();
    compose.normalize(&case.fold_string(&compose.normalize(text))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn folds_case_width_and_composition() {
        assert_eq!(fold("Ada@Example"), "ada@example");
        assert_eq!(fold("STRASSE"), fold("straße"));
        assert_eq!(fold("ＡＤＡ"), "ada");
        assert_eq!(fold("e\u{301}"), fold("É"));
        assert_eq!(fold(&fold("ΌΣΟΣ")), fold("όσος"));
    }
}
