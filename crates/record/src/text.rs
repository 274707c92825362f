//! Text types: a value that exists is valid.

#[macro_use]
mod pattern;
#[cfg(test)]
mod tests;

use pattern::{FREE, KEY, LINE, LOCALE, MAIL, OPAQUE, PERSONAL, PHONE, SIGNED, TYPED, VISIBLE, WEB, ZONE};

use crate::{FieldType, Kind, MailAddress, Mismatch, Value, parse_day, parse_timestamp};

/// The rule of a text type.
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
    /// A valid value, for the OpenAPI document.
    pub example: &'static str,
    /// Whether it is typed by people, so that white space at its ends is insignificant.
    pub is_trimmed: bool,
    /// Whether a field that may be empty stores empty text as a value, instead of no value.
    pub stores_empty: bool,
    /// Whether a body may also contain it as a JSON object.
    pub takes_object: bool,
    /// Checks the text and returns its stored form where that differs; `Err` states the requirement.
    pub shape: fn(&str) -> Result<Option<String>, &'static str>,
}

impl TextRule {
    /// Any text on one line, unchanged.
    pub const PLAIN: Self = Self {
        name: "",
        min: 0,
        max: 0,
        format: None,
        pattern: None,
        example: "",
        is_trimmed: false,
        stores_empty: false,
        takes_object: false,
        shape: opaque,
    };

    /// Checks text against the rule; `Err` states what to change, for people.
    pub fn check(&self, text: String) -> Result<String, String> {
        let text = match self.trimmed(&text) {
            trimmed if trimmed.len() < text.len() => trimmed.to_owned(),
            _ => text,
        };
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

    /// The text without white space at its ends, where the rule trims.
    pub fn trimmed<'a>(&self, text: &'a str) -> &'a str {
        if self.is_trimmed { text.trim() } else { text }
    }
}

/// Whether a text type is trimmed.
const TRIMMED: bool = true;
/// Not trimmed: unchanged.
const UNTRIMMED: bool = false;

/// Declares text types: name, length, `format`, pattern, check, example, whether it is trimmed, further flags.
macro_rules! text_types {
    ($($(#[doc = $doc:literal])* $name:ident($min:literal..=$max:literal,
        $format:expr, $pattern:expr, $shape:path, $example:literal, $trimmed:expr) $($other:ident)*;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);
        impl $name {
            /// The rule that the text follows.
            pub const RULE: TextRule = TextRule {
                name: stringify!($name), min: $min, max: $max, format: $format,
                pattern: $pattern, example: $example, shape: $shape, is_trimmed: $trimmed,
                $($other: true,)*
                ..TextRule::PLAIN
            };
            /// Checks the text; `Err` states the requirement.
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

text_types! {
    /// The name of something, on one line.
    Name(1..=256, None, TYPED, line, "Sales", TRIMMED);
    /// The name a user signs in with. Unique in a store without regard to case.
    LoginName(1..=256, None, VISIBLE, visible_line, "ada", TRIMMED);
    /// The name of a group. No two look alike by invisible letters.
    GroupName(1..=256, None, VISIBLE, visible_line, "Sales", TRIMMED);
    /// An e-mail address that mail can be sent to.
    Email(3..=256, Some("email"), MAIL, mail, "ada@example.com", TRIMMED);
    /// A telephone number as directories store it: at least three digits, with spaces, plus signs, dots,
    /// dashes, slashes and brackets between them, and optionally an extension (`ext.`, `x`, `;ext=`).
    Phone(3..=64, None, PHONE, phone, "+49 30 123456", TRIMMED);
    /// A URL, checked only to be one line.
    Url(1..=2048, None, TYPED, line, "https://example.com/ada", TRIMMED);
    /// A page or a picture of a person, which others open: http, https, or text without a scheme, such as
    /// `example.com`.
    PersonalUrl(1..=2048, None, PERSONAL, personal_url, "https://example.com/ada", TRIMMED);
    /// A URL to which a server or a browser is sent: https, or http on loopback.
    WebAddress(1..=2048, None, WEB, web_address, "https://app.example.com/", TRIMMED);
    /// A language tag of the shape of BCP 47.
    Locale(2..=64, None, LOCALE, locale, "en-GB", UNTRIMMED);
    /// A time zone of the shape of the IANA names.
    Zone(1..=64, None, ZONE, zone, "Europe/Berlin", UNTRIMMED);
    /// A gender, in the person's own words.
    Gender(1..=256, None, TYPED, line, "female", TRIMMED);
    /// A date of birth as in OpenID Connect: `YYYY-MM-DD`, `YYYY` or `0000-MM-DD`; a full date-time is read
    /// and cut.
    Birthdate(4..=64, None, OPAQUE, birthdate, "1815-12-10", UNTRIMMED);
    /// The key of an entry under its owner.
    Key(1..=128, None, KEY, key, "department", UNTRIMMED);
    /// A text that may be empty.
    ShortText(0..=4000, None, FREE, free, "Research", UNTRIMMED);
    /// The value of an entry under a key: empty text is a value.
    EntryValue(0..=4000, None, FREE, free, "Research", UNTRIMMED) stores_empty;
    /// A name that may be empty.
    Label(0..=256, None, FREE, free, "for the nightly run", TRIMMED);
    /// The value of an option, as text.
    OptionValue(0..=8000, None, FREE, free, "true", UNTRIMMED);
    /// A longer text.
    Description(0..=2000, None, FREE, free, "The people who sell", TRIMMED);
    /// The name of a file, a host or the like in a certificate or a client's registration.
    Identifier(1..=2048, None, LINE, line, "client.example.com", UNTRIMMED);
    /// A name in a certificate.
    CertificateName(1..=2048, None, TYPED, line, "client.example.com", TRIMMED);
    /// Attributes of a person from SCIM beyond the fields, as JSON.
    ScimExtra(2..=16384, None, FREE, free, "{}", UNTRIMMED);
    /// JSON, as text.
    JsonText(2..=262_144, None, FREE, free, "{}", UNTRIMMED);
    /// A JWK set (RFC 7517), as text or as the object itself.
    JwksText(2..=262_144, None, FREE, free, "{\"keys\":[]}", UNTRIMMED) takes_object;
    /// A regular expression or its replacement; may be empty.
    PatternText(0..=2000, None, FREE, free, "^role$", UNTRIMMED);
    /// A signed text: a compact JSON Web Signature (RFC 7515).
    SignedText(5..=10_485_760, None, SIGNED, signed, "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl", UNTRIMMED);
    /// A page's template.
    ViewText(0..=1_048_576, None, FREE, free, "<p>{{ title }}</p>", UNTRIMMED);
    /// A concurrency token: opaque, compared byte for byte, new on every write.
    Token(1..=64, None, OPAQUE, opaque, "6fGsnZkqRlW0m2yFvK1o7Q", UNTRIMMED);
}

type Shaped = Result<Option<String>, &'static str>;

fn require(good: bool, requirement: &'static str) -> Shaped {
    if good { Ok(None) } else { Err(requirement) }
}

/// Whether a letter ends a line or is a control character: no single line contains it.
pub fn breaks_line(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Whether a letter is invisible: Unicode's `Default_Ignorable_Code_Point`, by which names look alike (UTS 39).
pub const fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn line(text: &str) -> Shaped {
    let trimmed = text.trim() == text && !text.is_empty();
    require(
        trimmed && !text.contains(breaks_line),
        "one line without blanks at its ends or control characters",
    )
}

fn visible_line(text: &str) -> Shaped {
    line(text)?;
    require(!text.contains(is_hidden), "one line without letters that nobody sees, such as U+200B")
}

fn free(text: &str) -> Shaped {
    let is_forbidden = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r');
    require(!text.contains(is_forbidden), "text without control characters")
}

fn opaque(text: &str) -> Shaped {
    require(!text.contains(char::is_control), "text without control characters")
}

fn signed(text: &str) -> Shaped {
    let is_encoded = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_encoded);
    let good = text.split('.').count() == 3 && text.split('.').all(is_part);
    require(good, "a compact JSON Web Signature: three parts in base64url, with dots between them")
}

fn mail(text: &str) -> Shaped {
    require(MailAddress::read(text).is_some(), "an e-mail address such as ada@example.com")
}

/// The marks of an extension, the longest first.
const EXTENSIONS: [&str; 4] = [";ext=", "ext.", "ext", "x"];

fn phone(text: &str) -> Shaped {
    let text = text.to_ascii_lowercase();
    let (number, extension) = EXTENSIONS.iter().find_map(|word| text.split_once(word)).unwrap_or((&text, ""));
    let is_part = |letter: char| letter.is_ascii_digit() || " +()./-".contains(letter);
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let good = digits >= 3 && number.chars().chain(extension.chars()).all(is_part);
    require(good, "a telephone number such as +49 30 123456 or 030/123-45 ext. 6, with at least three digits")
}

fn personal_url(text: &str) -> Shaped {
    line(text)?;
    let is_safe = scheme_of(text).is_none_or(is_web_scheme);
    require(is_safe, "an address of a page, such as https://example.com/ada or example.com")
}

/// The scheme of a URL (RFC 3986, section 3.1); `None` where the text begins with none.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

/// Whether a scheme is that of web pages. Others can run a script, as `javascript` and `data` do.
fn is_web_scheme(scheme: &str) -> bool {
    ["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Whether a text is a URL of a web page with a host.
pub fn is_web_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_web_scheme(scheme)
        && !host.is_empty()
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

fn web_address(text: &str) -> Shaped {
    require(
        is_web_address(text).unwrap_or(false),
        "an https address such as https://app.example.com/, or http on localhost, 127.0.0.1 or [::1]",
    )
}

fn is_web_address(text: &str) -> Option<bool> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let (host, port) = match authority.split_once(']') {
        Some((address, port)) => (address.strip_prefix('['), port),
        None => (None, authority.find(':').and_then(|at| authority.get(at..)).unwrap_or_default()),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| {
            digits.len() <= 5
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u16>().is_ok()
        });
    let name = authority.split(':').next()?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_host = match host {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(is_name),
    };
    let is_local = host == Some("::1") || ["localhost", "127.0.0.1"].contains(&name);
    let is_scheme = scheme.eq_ignore_ascii_case("https") || (scheme.eq_ignore_ascii_case("http") && is_local);
    let is_path = !path.contains(|letter: char| letter.is_whitespace() || breaks_line(letter));
    Some(is_scheme && is_host && is_port && is_path)
}

fn locale(text: &str) -> Shaped {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    let good = (2..=8).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    require(good, "a language tag such as en or de-AT (BCP 47)")
}

fn zone(text: &str) -> Shaped {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    let good = text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.split('/').all(word);
    require(good, "a time zone name such as Europe/Berlin (IANA)")
}

/// Words that cannot be keys, because they are routes next to `{key}`.
const RESERVED_KEYS: [&str; 7] =
    ["batch", "createorupdate", "groupId", "userId", "idpInstanceId", "mimetypes", "create"];

fn key(text: &str) -> Shaped {
    line(text)?;
    require(!RESERVED_KEYS.contains(&text), "a key that is not a word of the paths (batch, groupId ...)")
}

fn birthdate(text: &str) -> Shaped {
    const REQUIREMENT: &str = "a day such as 1815-12-10, a year such as 1815, or 0000-12-10";
    let year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if year(text) {
        return Ok(None);
    }
    let day = if text.len() > 10 {
        parse_timestamp(text).ok_or(REQUIREMENT)?;
        text.get(..10).ok_or(REQUIREMENT)?
    } else {
        text
    };
    // a leap year replaces a missing year
    let leap = day.strip_prefix("0000-").map(|rest| format!("2000-{rest}"));
    if parse_day(leap.as_deref().unwrap_or(day)).is_some() {
        Ok(Some(day.to_owned()))
    } else {
        Err(REQUIREMENT)
    }
}
