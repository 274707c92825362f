//! The form in which passwords are hashed: the profile OpaqueString of PRECIS (RFC 8265, section 4.2).

use std::borrow::Cow;

use chancery_record::Secret;
use icu_normalizer::ComposingNormalizer;

use crate::MAX_PASSWORD_BYTES;

/// The password with composed letters (NFC) and ASCII spaces: keyboards and systems compose the same letters
/// differently. Bytes that are no text, or longer than a password can be, are unchanged.
pub fn normalized(password: &Secret) -> Cow<'_, Secret> {
    let bytes = password.expose();
    if bytes.is_ascii() || bytes.len() > MAX_PASSWORD_BYTES {
        return Cow::Borrowed(password);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Cow::Borrowed(password) };
    let compose = const { ComposingNormalizer::new_nfc() };
    // the first copy is a secret, too, and is wiped
    let spaced = Secret::new(
        text.chars().map(|letter| if is_space(letter) { ' ' } else { letter }).collect::<String>(),
    );
    let composed = Secret::new(compose.normalize_utf8(spaced.expose()).into_owned());
    if composed.expose() == bytes { Cow::Borrowed(password) } else { Cow::Owned(composed) }
}

/// Whether a letter is a space separator (general category Zs).
const fn is_space(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

#[cfg(test)]
mod tests {
    use chancery_record::Secret;
    use proptest::prelude::*;

    use super::normalized;

    fn normalized_text(text: &str) -> String {
        String::from_utf8(normalized(&Secret::new(text)).expose().to_vec()).unwrap()
    }

    #[test]
    fn letters_are_composed_and_spaces_are_replaced_by_ascii() {
        assert_eq!(normalized_text("Gro\u{308}ße"), "Größe");
        assert_eq!(normalized_text("a\u{a0}b\u{3000}c d"), "a b c d");
        // neither case nor width changes, and nothing is trimmed
        for same in [" Ada ", "Größe", "ＡＤＡ", "ﬁ", "\u{1f469}\u{200d}\u{1f680}"] {
            assert_eq!(normalized_text(same), same);
        }
        let bytes = [0xff; 9];
        assert_eq!(normalized(&Secret::new(bytes)).expose(), bytes);
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(text in "\\PC{0,24}") {
            let once = normalized_text(&text);
            prop_assert_eq!(normalized_text(&once), once);
        }
    }
}
