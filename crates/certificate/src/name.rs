//! Distinguished names: read from DER and from the text of RFC 4514, written as that text, and compared by
//! meaning.

use std::fmt::Write as _;

use crate::der::{DerReader, OBJECT_IDENTIFIER, SEQUENCE, SET};

/// A name's relative distinguished names, the most specific first, as in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinguishedName(Vec<Vec<Attribute>>);

/// One attribute of a part. Those of one part are a set, and are sorted here so that parts compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attribute {
    /// The type's object identifier, in digits and dots.
    kind: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Text(String),
    /// A value that is no text, in DER.
    Encoded(Vec<u8>),
}

/// The types with keywords, of which the first is written and all are read.
const WORDS: [(&str, &[&str]); 24] = [
    ("2.5.4.3", &["CN", "commonName"]),
    ("2.5.4.4", &["SN", "surname"]),
    ("2.5.4.5", &["serialNumber"]),
    ("2.5.4.6", &["C", "countryName"]),
    ("2.5.4.7", &["L", "localityName"]),
    ("2.5.4.8", &["ST", "stateOrProvinceName", "S"]),
    ("2.5.4.9", &["STREET", "streetAddress"]),
    ("2.5.4.10", &["O", "organizationName"]),
    ("2.5.4.11", &["OU", "organizationalUnitName"]),
    ("2.5.4.12", &["title", "T"]),
    ("2.5.4.13", &["description"]),
    ("2.5.4.15", &["businessCategory"]),
    ("2.5.4.17", &["postalCode"]),
    ("2.5.4.20", &["telephoneNumber"]),
    ("2.5.4.41", &["name"]),
    ("2.5.4.42", &["givenName", "GN", "G"]),
    ("2.5.4.43", &["initials"]),
    ("2.5.4.44", &["generationQualifier"]),
    ("2.5.4.46", &["dnQualifier"]),
    ("2.5.4.65", &["pseudonym"]),
    ("2.5.4.97", &["organizationIdentifier"]),
    ("0.9.2342.19200300.100.1.1", &["UID", "userId"]),
    ("0.9.2342.19200300.100.1.25", &["DC", "domainComponent"]),
    ("1.2.840.113549.1.9.1", &["emailAddress", "email", "E"]),
];

/// Normalises a name in the text of RFC 4514 to the form that this crate writes: keywords for known types, no
/// space around parts, as few escapes as possible. `None` when it is no such text.
pub fn normalised_name(text: &str) -> Option<String> {
    DistinguishedName::from_text(text).map(|name| name.to_text())
}

impl DistinguishedName {
    /// Whether the name has no part at all.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a name from DER.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let mut reader = DerReader::only(der, SEQUENCE)?;
        let mut parts = Vec::new();
        while !reader.is_done() {
            let mut set = reader.enter(SET)?;
            let mut part = Vec::new();
            while !set.is_done() {
                let mut pair = set.enter(SEQUENCE)?;
                let kind = dotted(pair.take(OBJECT_IDENTIFIER)?)?;
                part.push(Attribute { kind, value: Value::from_der(pair)? });
            }
            if part.is_empty() {
                return None;
            }
            part.sort();
            parts.push(part);
        }
        parts.reverse();
        Some(Self(parts))
    }

    /// Reads a name from the text of RFC 4514; there may be spaces around its parts.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut rest = text.trim_start_matches(' ');
        let mut parts = Vec::new();
        let mut part = Vec::new();
        if rest.is_empty() {
            return Some(Self(parts));
        }
        loop {
            let (word, after) = rest.split_once('=')?;
            let (value, after) = Value::from_text(after)?;
            part.push(Attribute { kind: kind_of(word.trim_matches(' '))?, value });
            let mut after = after.chars();
            let separator = after.next();
            if separator != Some('+') {
                part.sort();
                parts.push(std::mem::take(&mut part));
            }
            if separator.is_none() {
                return Some(Self(parts));
            }
            rest = after.as_str();
        }
    }

    /// The name in the text of RFC 4514, but for one thing: where a type has no keyword, its value is text
    /// all the same.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (index, part) in self.0.iter().enumerate() {
            for (inner, attribute) in part.iter().enumerate() {
                match (index, inner) {
                    (0, 0) => {}
                    (_, 0) => text.push(','),
                    _ => text.push('+'),
                }
                let known = WORDS.iter().find(|(kind, _)| *kind == attribute.kind);
                let word = known.and_then(|(_, words)| words.first().copied());
                text.push_str(word.unwrap_or(&attribute.kind));
                text.push('=');
                attribute.value.write(&mut text);
            }
        }
        text
    }
}

/// An object identifier's digits and dots.
fn dotted(identifier: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut number = 0_u64;
    for byte in identifier {
        if number >> 57 != 0 {
            return None;
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if text.is_empty() {
                // the first two arcs are encoded as one number
                let first = (number / 40).min(2);
                write!(text, "{first}.{}", number - 40 * first).ok()?;
            } else {
                write!(text, ".{number}").ok()?;
            }
            number = 0;
        }
    }
    let ends = identifier.last()? & 0x80 == 0;
    ends.then_some(text)
}

/// The object identifier of a keyword, or of digits and dots.
fn kind_of(word: &str) -> Option<String> {
    let fits = |(_, words): &&(&str, &[&str])| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if let Some((kind, _)) = WORDS.iter().find(fits) {
        return Some((*kind).to_owned());
    }
    let prefixed = word.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("OID."));
    let digits = if prefixed { word.get(4..)? } else { word };
    let is_number = |number: &str| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (number == "0" || !number.starts_with('0'))
    };
    (digits.contains('.') && digits.split('.').all(is_number)).then(|| digits.to_owned())
}

impl Value {
    /// Reads the one remaining value; text in any of the string types that names have.
    fn from_der(mut reader: DerReader<'_>) -> Option<Self> {
        let element = reader.element()?;
        if !reader.is_done() {
            return None;
        }
        let content = element.content;
        let text = match element.tag {
            // UTF8String, and the string types that are ASCII
            12 | 18 | 19 | 22 | 26 => str::from_utf8(content).ok().map(str::to_owned),
            // TeletexString, where tools have written Latin-1
            20 => Some(content.iter().copied().map(char::from).collect()),
            28 => {
                let (units, rest) = content.as_chunks();
                let text: Option<String> =
                    units.iter().map(|unit| char::from_u32(u32::from_be_bytes(*unit))).collect();
                text.filter(|_| rest.is_empty())
            }
            30 => {
                let (units, rest) = content.as_chunks();
                let units: Vec<_> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
                String::from_utf16(&units).ok().filter(|_| rest.is_empty())
            }
            _ => None,
        };
        Some(text.map_or_else(|| Self::Encoded(encoded(element.tag, content)), Self::Text))
    }

    /// Reads the value that the text begins with; returns the rest, too: nothing, or a separator and more.
    fn from_text(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start_matches(' ');
        if let Some(digits) = text.strip_prefix('#') {
            let end = digits.find([',', '+']).unwrap_or(digits.len());
            let (digits, rest) = digits.split_at_checked(end)?;
            let bytes = from_hex(digits.trim_end_matches(' '))?;
            return Some((Self::from_der(DerReader::over(&bytes))?, rest));
        }
        let mut bytes = Vec::new();
        // trailing spaces belong to the value only when they are escaped
        let mut trimmed_length = 0;
        let mut chars = text.chars();
        loop {
            let rest = chars.as_str();
            match chars.next() {
                None | Some(',' | '+') => {
                    bytes.truncate(trimmed_length);
                    let text = String::from_utf8(bytes).ok()?;
                    return Some((Self::Text(text), rest));
                }
                Some('"' | ';' | '<' | '>' | '\0') => return None,
                Some('\\') => {
                    let special = chars.next()?;
                    if "\"+,;<>\\ #=".contains(special) {
                        bytes.push(u8::try_from(special).ok()?);
                    } else {
                        let (high, low) = (special.to_digit(16)?, chars.next()?.to_digit(16)?);
                        bytes.push(u8::try_from(high << 4 | low).ok()?);
                    }
                    trimmed_length = bytes.len();
                }
                Some(letter) => {
                    bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                    if letter != ' ' {
                        trimmed_length = bytes.len();
                    }
                }
            }
        }
    }

    fn write(&self, out: &mut String) {
        let text = match self {
            Self::Text(text) => text,
            Self::Encoded(bytes) => {
                out.push('#');
                for byte in bytes {
                    push_hex(*byte, out);
                }
                return;
            }
        };
        let last = text.chars().count().saturating_sub(1);
        for (index, letter) in text.chars().enumerate() {
            let at_the_edge = index == 0 && letter == '#' || (index == 0 || index == last) && letter == ' ';
            if at_the_edge || "\"+,;<>\\".contains(letter) {
                out.push('\\');
                out.push(letter);
            } else if letter.is_control() {
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    out.push('\\');
                    push_hex(byte, out);
                }
            } else {
                out.push(letter);
            }
        }
    }
}

/// An element of DER with its tag and length.
fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut whole = vec![tag];
    if let Ok(length @ 0..=0x7f) = u8::try_from(content.len()) {
        whole.push(length);
    } else {
        let length = content.len().to_be_bytes();
        let digits = crate::der::without_zeros(&length);
        whole.extend(u8::try_from(digits.len()).map(|count| 0x80 | count));
        whole.extend(digits);
    }
    whole.extend(content);
    whole
}

/// Writes a byte as two digits of upper-case hex.
pub fn push_hex(byte: u8, out: &mut String) {
    for digit in [byte >> 4, byte & 15] {
        out.extend(char::from_digit(digit.into(), 16).map(|digit| digit.to_ascii_uppercase()));
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Attribute, DistinguishedName, Value, dotted, normalised_name};

    fn same(one: &str, other: &str) -> bool {
        let read = |text| DistinguishedName::from_text(text).unwrap_or_else(|| panic!("{text}"));
        read(one) == read(other)
    }

    #[test]
    fn different_notations_are_the_same_name() {
        for (one, other) in [
            ("CN=a,O=b", " cn = a , o=b "),
            ("CN=a,O=b", "2.5.4.3=a,OID.2.5.4.10=b"),
            ("CN=a\\, b", "CN=a\\2C b"),
            ("CN=a\\2c b", "CN=a\\2C b"),
            ("CN=\\C3\\A4", "CN=ä"),
            ("CN=a", "CN=#0c0161"),
            ("CN=a", "CN=#130161"),
            ("CN=ä", "CN=#1401E4"),
            ("CN=ä", "CN=#1E0200E4"),
            ("CN=ä", "CN=#1C04000000e4"),
            ("CN=a+OU=b,C=DE", "OU=b+CN=a,C=DE"),
            ("CN=\\ a\\ ", "CN=\\20a\\20"),
            ("E=a@b", "emailAddress=a@b"),
            ("CN=a=b", "CN=a\\=b"),
        ] {
            assert!(same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn different_names_differ() {
        for (one, other) in [
            ("CN=a,O=b", "O=b,CN=a"),
            ("CN=a", "CN=A"),
            ("CN=a", "CN=a,O=b"),
            ("CN=a+O=b", "CN=a,O=b"),
            ("CN=a", "OU=a"),
            ("CN=a b", "CN=a  b"),
            ("CN=a\\ ", "CN=a"),
            ("CN=a\\,O=b", "CN=a,O=b"),
            ("CN=a", "CN=#040161"),
            ("CN=a", ""),
        ] {
            assert!(!same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "a",
            "CN",
            "=a",
            "CN=a,",
            "CN=a,,O=b",
            "CN=a+",
            "who=a",
            "1=a",
            "1..2=a",
            "01.2=a",
            "CN=a;O=b",
            "CN=\"a\"",
            "CN=<a",
            "CN=\\",
            "CN=\\4",
            "CN=\\zz",
            "CN=\\FF",
            "CN=#",
            "CN=#0c",
            "CN=#0c0161ff",
            "CN=#xy",
        ] {
            assert_eq!(normalised_name(text), None, "{text}");
        }
    }

    #[test]
    fn text_is_escaped() {
        for (text, normalised) in [
            ("cn = \\#a\\22\\2b\\3B\\\\ , c=DE", "CN=\\#a\\\"\\+\\;\\\\,C=DE"),
            ("cn=\\ ", "CN=\\ "),
            ("cn=\\ \\ ", "CN=\\ \\ "),
            ("cn=a\\0Ab", "CN=a\\0Ab"),
            ("1.2.3=x", "1.2.3=x"),
            ("1.2.3=#040161", "1.2.3=#040161"),
            ("CN=", "CN="),
            ("", ""),
        ] {
            assert_eq!(normalised_name(text).as_deref(), Some(normalised), "{text}");
        }
    }

    #[test]
    fn object_identifiers_are_decoded() {
        assert_eq!(dotted(&[0x55, 4, 3]).as_deref(), Some("2.5.4.3"));
        assert_eq!(dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]).as_deref(), Some("1.2.840.113549"));
        assert_eq!(dotted(&[0x88, 0x37]).as_deref(), Some("2.999"));
        for broken in [&[][..], &[0x88], &[0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]]
        {
            assert_eq!(dotted(broken), None);
        }
    }

    proptest! {
        #[test]
        fn every_name_round_trips_through_text(
            parts in proptest::collection::vec(
                proptest::collection::vec(("[a-z#]", any::<String>()), 1..3), 0..4)
        ) {
            let attribute = |(letter, text): &(String, String)| Attribute {
                kind: if letter < &"m".to_owned() { "2.5.4.3".into() } else { "1.2.3".into() },
                value: Value::Text(text.clone()),
            };
            let part = |part: &Vec<(String, String)>| {
                let mut part: Vec<_> = part.iter().map(attribute).collect();
                part.sort();
                part
            };
            let name = DistinguishedName(parts.iter().map(part).collect());
            prop_assert_eq!(DistinguishedName::from_text(&name.to_text()), Some(name));
        }

        #[test]
        fn any_text_is_normalized_or_rejected(text in "[CNou=,+\\\\#0-9a-f \"ä]{0,24}") {
            if let Some(normalised) = normalised_name(&text) {
                let again = normalised_name(&normalised);
                prop_assert_eq!(again.as_deref(), Some(normalised.as_str()));
            }
        }

        #[test]
        fn any_bytes_are_a_name_or_none(bytes in any::<Vec<u8>>()) {
            let _ = DistinguishedName::from_der(&bytes);
        }
    }
}
