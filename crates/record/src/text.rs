//! Text types: a value that exists is valid.

use crate::{FieldType, Kind, Mismatch, Value, parse_timestamp};

/// What a text type accepts.
#[derive(Debug)]
pub struct TextRule {
    /// Its name in the OpenAPI document.
    pub name: &'static str,
    /// Fewest characters.
    pub min: usize,
    /// Most characters.
    pub max: usize,
    /// The `format` of the OpenAPI document, if there is one.
    pub format: Option<&'static str>,
    /// The same rule as a regular expression, for the OpenAPI document.
    pub pattern: Option<&'static str>,
    /// A value that fits, for the OpenAPI document.
    pub example: &'static str,
    /// Checks the shape and brings it into its stored form; `Err` says what it must be.
    pub shape: fn(&str) -> Result<Option<String>, &'static str>,
}

impl TextRule {
    /// Checks text against the rule; `Err` tells a person what to change.
    pub fn check(&self, text: String) -> Result<String, String> {
        let length = text.chars().count();
        if length < self.min {
            return Err(format!("needs at least {} characters", self.min));
        }
        if length > self.max {
            return Err(format!("takes at most {} characters, not {length}", self.max));
        }
        (self.shape)(&text)
            .map(|stored| stored.unwrap_or(text))
            .map_err(|problem| format!("must be {problem}"))
    }
}

/// Declares text types: a name, how long, its shape, an example.
macro_rules! text_types {
    ($($(#[doc = $doc:literal])* $name:ident($min:literal..=$max:literal,
        $format:expr, $pattern:expr, $shape:path, $example:literal);)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);
        impl $name {
            /// What it accepts.
            pub const RULE: TextRule = TextRule {
                name: stringify!($name), min: $min, max: $max, format: $format,
                pattern: $pattern, example: $example, shape: $shape,
            };
            /// Checks the text; `Err` says what it must be.
            pub fn new(text: impl Into<String>) -> Result<Self, String> {
                Self::RULE.check(text.into()).map(Self)
            }
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FieldType for $name {
            const KIND: Kind = Kind::Text(&Self::RULE);
            fn into_value(self) -> Value {
                Value::Text(self.0)
            }
            fn from_value(value: Value) -> Result<Self, Mismatch> {
                if let Value::Text(text) = value { Ok(Self(text)) } else { Err(Mismatch("")) }
            }
        }
    )*};
}

const LINE: Option<&str> = Some(r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$");
const FREE: Option<&str> = Some(r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$");
const MAIL: Option<&str> = Some(r"^[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+$");
const PHONE: Option<&str> = Some(r"^\+?[0-9][0-9 ()./-]*$");
const LOCALE: Option<&str> = Some(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$");
const ZONE: Option<&str> = Some(r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$");
const KEY: Option<&str> = LINE;
const OPAQUE: Option<&str> = None;
const SIGNED: Option<&str> = Some(r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$");

text_types! {
    /// The name of something, on one line.
    Name(1..=256, None, LINE, line, "Sales");
    /// The name a user signs in with. Unique in a store without regard to case.
    LoginName(1..=256, None, LINE, line, "ada");
    /// An e-mail address: something, an `@`, something.
    Email(3..=256, Some("email"), MAIL, mail, "ada@example.com");
    /// A telephone number: digits, with spaces, dots, dashes, slashes and brackets between them.
    Phone(1..=64, None, PHONE, phone, "+49 30 123456");
    /// An address on the web.
    Url(1..=2048, None, LINE, line, "https://example.com/ada");
    /// A language tag of the shape of BCP 47.
    Locale(2..=64, None, LOCALE, locale, "en-GB");
    /// A time zone of the shape of the IANA names.
    Zone(1..=64, None, ZONE, zone, "Europe/Berlin");
    /// A gender, in the person's own words.
    Gender(1..=256, None, LINE, line, "female");
    /// A day of birth by OpenID Connect: `YYYY-MM-DD`, `YYYY` or `0000-MM-DD`; a full date-time
    /// is read and cut.
    Birthdate(4..=64, None, OPAQUE, birthdate, "1815-12-10");
    /// The key of an entry under its owner.
    Key(1..=128, None, KEY, key, "department");
    /// A value of an entry; may be empty.
    ShortText(0..=4000, None, FREE, free, "Research");
    /// The value of an option: text, whatever it stands for.
    OptionValue(0..=8000, None, FREE, free, "true");
    /// A longer text.
    Description(0..=2000, None, FREE, free, "The people who sell");
    /// The name of a file, a host or the like in a certificate or a client's registration.
    Identifier(1..=2048, None, LINE, line, "client.example.com");
    /// JSON, as text.
    JsonText(2..=262_144, None, FREE, free, "{}");
    /// A regular expression, or what it is replaced by; may be empty.
    PatternText(0..=2000, None, FREE, free, "^role$");
    /// A signed text: a compact JSON Web Signature (RFC 7515).
    SignedText(5..=10_485_760, None, SIGNED, signed, "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl");
    /// A page's template.
    ViewText(0..=1_048_576, None, FREE, free, "<p>{{ title }}</p>");
    /// A concurrency token: opaque, compared byte for byte, new on every write.
    Token(1..=64, None, OPAQUE, opaque, "6fGsnZkqRlW0m2yFvK1o7Q");
}

type Shaped = Result<Option<String>, &'static str>;

fn only(good: bool, wanted: &'static str) -> Shaped {
    if good { Ok(None) } else { Err(wanted) }
}

fn is_control(letter: char) -> bool {
    letter < ' ' || letter == '\u{7f}'
}

fn line(text: &str) -> Shaped {
    let trimmed = text.trim() == text && !text.is_empty();
    only(trimmed && !text.contains(is_control), "one line without blanks at its ends or control characters")
}

fn free(text: &str) -> Shaped {
    let bad = |letter| is_control(letter) && !matches!(letter, '\t' | '\n' | '\r');
    only(!text.contains(bad), "text without control characters")
}

fn opaque(text: &str) -> Shaped {
    only(!text.contains(is_control), "text without control characters")
}

fn signed(text: &str) -> Shaped {
    let is_encoded = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_encoded);
    let good = text.split('.').count() == 3 && text.split('.').all(is_part);
    only(good, "a compact JSON Web Signature: three parts in base64url, with dots between them")
}

fn mail(text: &str) -> Shaped {
    let bad = |letter: char| letter.is_whitespace() || is_control(letter) || letter == '@';
    let part = |part: &str| !part.is_empty() && !part.contains(bad);
    let good = text.split_once('@').is_some_and(|(local, domain)| part(local) && part(domain));
    only(good, "an e-mail address such as ada@example.com")
}

fn phone(text: &str) -> Shaped {
    let rest = text.strip_prefix('+').unwrap_or(text);
    let good = rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.chars().all(|letter| letter.is_ascii_digit() || " ()./-".contains(letter));
    only(good, "a telephone number such as +49 30 123456")
}

fn locale(text: &str) -> Shaped {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    let good = (2..=8).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    only(good, "a language tag such as en or de-AT (BCP 47)")
}

fn zone(text: &str) -> Shaped {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    let good = text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.split('/').all(word);
    only(good, "a time zone name such as Europe/Berlin (IANA)")
}

/// Words that are routes beside `{key}` and so cannot be keys.
const RESERVED_KEYS: [&str; 7] =
    ["batch", "createorupdate", "groupId", "userId", "idpInstanceId", "mimetypes", "create"];

fn key(text: &str) -> Shaped {
    line(text)?;
    only(!RESERVED_KEYS.contains(&text), "a key that is not a word of the paths (batch, groupId ...)")
}

fn birthdate(text: &str) -> Shaped {
    const WANTED: &str = "a day such as 1815-12-10, a year such as 1815, or 0000-12-10";
    let year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if year(text) {
        return Ok(None);
    }
    let day = if text.len() > 10 {
        parse_timestamp(text).ok_or(WANTED)?;
        text.get(..10).ok_or(WANTED)?
    } else {
        text
    };
    // a leap year stands in where the year is not told
    let leap = day.strip_prefix("0000-").map(|rest| format!("2000-{rest}"));
    let well_formed = day.len() == 10 && day.get(..4).is_some_and(year);
    let exists = leap.as_deref().unwrap_or(day).parse::<jiff::civil::Date>().is_ok();
    if well_formed && exists { Ok(Some(day.to_owned())) } else { Err(WANTED) }
}

#[cfg(test)]
mod tests {
    use super::{Birthdate, Email, Key, Locale, LoginName, Phone, ShortText, Zone};

    #[test]
    fn examples_fit_their_own_rules() {
        for rule in [
            LoginName::RULE,
            Email::RULE,
            Phone::RULE,
            Locale::RULE,
            Zone::RULE,
            Birthdate::RULE,
            Key::RULE,
            ShortText::RULE,
            super::Name::RULE,
            super::Url::RULE,
            super::Gender::RULE,
            super::Description::RULE,
            super::Token::RULE,
            super::SignedText::RULE,
        ] {
            assert!(rule.check(rule.example.to_owned()).is_ok(), "{}", rule.name);
        }
    }

    #[test]
    fn shapes() {
        assert!(LoginName::new("ada@example.com").is_ok());
        assert!(LoginName::new(" ada").is_err());
        assert!(LoginName::new("a\0b").is_err());
        assert!(LoginName::new("x".repeat(257)).is_err());
        assert!(Email::new("ada").is_err());
        assert!(Email::new("a@b@c").is_err());
        assert!(Locale::new("de_AT").is_err());
        assert!(Zone::new("Etc/GMT+1").is_ok());
        assert!(Phone::new("call me").is_err());
        assert!(Key::new("batch").is_err());
        assert!(ShortText::new("").is_ok());
        assert!(ShortText::new("two\nlines").is_ok());
    }

    #[test]
    fn birthdates_are_cut_and_checked() {
        let stored = |text: &str| Birthdate::new(text).map(|day| day.as_str().to_owned());
        assert_eq!(stored("1815-12-10T00:00:00Z").as_deref(), Ok("1815-12-10"));
        assert_eq!(stored("1815").as_deref(), Ok("1815"));
        assert_eq!(stored("0000-02-29").as_deref(), Ok("0000-02-29"));
        for wrong in ["1815-02-30", "10.12.1815", "181", "1815-1-1"] {
            assert!(stored(wrong).is_err(), "{wrong}");
        }
    }
}
