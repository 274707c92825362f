//! Normalization of typed codes: other digits, other widths, blanks and dashes.

use chancery_record::is_hidden;

/// The zeros of the decimal digits of scripts in use (Unicode, general category Nd): nine digits follow each.
const ZEROS: [u32; 22] = [
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
    0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0xFF10,
];
/// The offset of full-width letters from those of ASCII.
const FULL_WIDTH: u32 = 0xFEE0;

/// The normalized form of a code: digits of any script as those of ASCII, full-width letters as plain ones, in capitals, and
/// without blanks, dashes, dots, and invisible characters. Any other character remains, and makes it wrong.
pub fn read_code(typed: &str) -> String {
    typed.chars().filter(|letter| !is_separator(*letter)).map(read_letter).collect()
}

/// Whether a character separates the parts of a code.
fn is_separator(letter: char) -> bool {
    let is_dash = matches!(
        letter,
        '-' | '\u{58A}' | '\u{2010}'
            ..='\u{2015}'
                | '\u{2043}'
                | '\u{207B}'
                | '\u{2212}'
                | '\u{30FC}'
                | '\u{FE58}'
                | '\u{FE63}'
                | '\u{FF0D}'
                | '_'
                | '\u{FF3F}'
    );
    let is_dot = matches!(letter, '.' | '\u{B7}' | '\u{2022}' | '\u{2027}' | '\u{30FB}' | '\u{FF0E}');
    letter.is_whitespace() || letter.is_control() || is_dash || is_dot || is_hidden(letter)
}

fn read_letter(letter: char) -> char {
    let number = u32::from(letter);
    let digit = ZEROS.iter().find_map(|zero| number.checked_sub(*zero).filter(|digit| *digit < 10));
    if let Some(digit) = digit.and_then(|digit| char::from_digit(digit, 10)) {
        return digit;
    }
    let is_wide = matches!(letter, '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}');
    let plain = if is_wide { char::from_u32(number - FULL_WIDTH).unwrap_or(letter) } else { letter };
    plain.to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ZEROS, read_code};

    #[test]
    fn typed_codes_are_normalized() {
        for (typed, code) in [
            ("123 456", "123456"),
            ("123-456", "123456"),
            (" １２３４５６\n", "123456"),
            ("١٢٣٤٥٦", "123456"),
            ("۱۲۳–۴۵۶", "123456"),
            ("१२३४५६", "123456"),
            ("\u{202A}123456\u{202C}", "123456"),
            ("ｂｃｄｆ－ｇｈｊｋ", "BCDFGHJK"),
            ("bcdf\u{2011}ghjk", "BCDFGHJK"),
        ] {
            assert_eq!(read_code(typed), code, "{typed}");
        }
        for wrong in ["123456?", "12345б", "½23456", "²23456", "Ⅻ"] {
            assert_ne!(read_code(wrong), "123456", "{wrong}");
            assert_ne!(read_code(wrong), "23456", "{wrong}");
        }
    }

    /// A typed character of a code: in some width or script, followed by a separator.
    fn typed() -> impl Strategy<Value = (char, String)> {
        let between = prop::sample::select(vec![
            "", "", "", " ", "-", "–", "\u{a0}", "\u{3000}", "\u{200b}", "·", " - ",
        ]);
        let letter = prop::sample::select("0123456789BCDFGHJKLMNPQRSTVWXZAE".chars().collect::<Vec<_>>());
        (letter, prop::sample::select(ZEROS.to_vec()), 0..3_u8, between).prop_map(
            |(letter, zero, width, between)| {
                let shown = match (letter.to_digit(10), width) {
                    (Some(digit), _) => char::from_u32(zero + digit).unwrap(),
                    (None, 0) => letter,
                    (None, 1) => letter.to_ascii_lowercase(),
                    (None, _) => char::from_u32(u32::from(letter) + 0xFEE0).unwrap(),
                };
                (letter, format!("{shown}{between}"))
            },
        )
    }

    proptest! {
        #[test]
        fn every_typed_form_of_a_code_is_normalized(letters in prop::collection::vec(typed(), 0..16)) {
            let code: String = letters.iter().map(|(letter, _)| *letter).collect();
            let typed: String = letters.iter().map(|(_, typed)| typed.as_str()).collect();
            prop_assert_eq!(read_code(&typed), code);
        }

        #[test]
        fn normalization_is_idempotent(text in ".{0,40}") {
            let once = read_code(&text);
            prop_assert_eq!(read_code(&once), once);
        }
    }
}
