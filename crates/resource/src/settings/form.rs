//! The forms of option values: text on the wire and in the database, typed where the values are used.

use chancery_record::{MailAddress, MailServerSettings};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use uuid::Uuid;

/// The required form of an option's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`, in any case.
    Flag,
    /// A whole number within bounds, both included.
    Number(i64, i64),
    /// A duration, `[d.]hh:mm:ss` or ISO 8601; at least and at most this many milliseconds.
    Span(i64, i64),
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// The settings of a mail server, as a JSON object.
    MailServer,
    /// An e-mail address, optionally with a name before it.
    Sender,
    /// E-mail addresses separated by commas.
    Recipients,
    /// A URL of a page, with `{token}` for a token.
    LinkTemplate,
    /// A colour, `#rgb` or `#rrggbb`.
    Colour,
    /// An https URL, or a path at this server.
    Address,
    /// A URL of a page in the web, or a path at this server.
    Page,
    /// An https URL, or an http one where the operator allows that.
    Endpoint,
    /// A path of this server, outside of its own paths.
    CallbackPath,
    /// A domain name, such as `example.com`.
    Domain,
    /// Origins of pages and apps as browsers write them, separated by commas. A path after an origin has no effect.
    Origins,
    /// The ids of authenticator models, separated by commas. A list that is invalid in part stays in effect: an
    /// allow list then admits less, and a block list still blocks the others.
    Aaguids,
    /// Names of links, each followed by a blank and its URL, separated by commas: at most [`MAX_LINKS`].
    Links,
    /// Scopes (RFC 6749, section 3.3), separated by blanks or commas.
    Scopes,
    /// Absolute URIs of resources without fragments (RFC 8707, section 2), separated by blanks or commas.
    Resources,
    /// Identifiers, separated by blanks or commas.
    Identifiers,
    /// A name without control characters, without blanks around it, of at most [`MAX_NAME`] bytes. An invalid
    /// one stays in effect.
    Name,
    /// Such a name without a colon, which would end the name in the `otpauth` URI of an authenticator's secret.
    AuthenticatorIssuer,
}

/// The most links of an option.
pub const MAX_LINKS: usize = 10;
/// The most bytes of a name. One of an authenticator must fit into a QR code, twice and encoded.
const MAX_NAME: usize = 200;
/// The placeholders of a link template: the token, and the login name of the person.
const PLACEHOLDERS: [&str; 2] = ["{token}", "{loginName}"];

impl Form {
    /// The option's `dataType` and `editorType`, hints for editors.
    pub const fn hints(self) -> (&'static str, &'static str) {
        match self {
            Self::Flag => ("Boolean", "Checkbox"),
            Self::Number(..) => ("Integer", "Number"),
            Self::Span(..) => ("TimeSpan", "Duration"),
            Self::Links | Self::Recipients | Self::Origins | Self::Aaguids => {
                ("CommaSeparatedString", "Tags")
            }
            Self::Choice(_)
            | Self::Text
            | Self::MailServer
            | Self::Sender
            | Self::LinkTemplate
            | Self::Colour
            | Self::Page
            | Self::Endpoint
            | Self::CallbackPath
            | Self::Domain
            | Self::Address
            | Self::Scopes
            | Self::Resources
            | Self::Identifiers
            | Self::Name
            | Self::AuthenticatorIssuer => ("String", "Text"),
        }
    }

    /// Whether a text has this form. Empty text does: then the default is in effect.
    pub fn fits(self, text: &str) -> bool {
        match self {
            _ if text.is_empty() => true,
            Self::Flag => flag(text).is_some(),
            Self::Number(min, max) => number(text).is_some_and(|value| (min..=max).contains(&value)),
            Self::Span(min, max) => span(text).is_some_and(|value| (min..=max).contains(&value)),
            Self::Choice(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
            Self::MailServer => MailServerSettings::read(text).is_ok(),
            Self::Sender => MailAddress::read_named(text).is_some(),
            Self::Recipients => list_items(text).all(|one| MailAddress::read(one).is_some()),
            Self::LinkTemplate => is_link_template(text),
            Self::Colour => is_colour(text),
            Self::Address => is_address(text),
            Self::Page => is_path(text) || is_web_url(text),
            Self::Links => links(text).is_some(),
            Self::Endpoint => is_web_url(text) && !text.contains('#'),
            Self::CallbackPath => is_callback_path(text),
            Self::Domain => is_domain(text),
            Self::Origins => list_items(text).all(is_origin),
            Self::Aaguids => list_items(text).all(|one| Uuid::try_parse(one).is_ok()),
            Self::Scopes => words(text).all(is_scope),
            Self::Resources => words(text).all(is_resource),
            Self::Identifiers => words(text).all(|one| is_scope(one) && !one.contains(';')),
            Self::Name => is_name(text),
            Self::AuthenticatorIssuer => is_name(text) && !text.contains(':'),
            Self::Text => true,
        }
    }
}

/// The items of a list, without blanks around them.
fn list_items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// The words of a list whose items have no blanks: they are separated by blanks or commas.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty())
}

/// Whether a word is a scope: printable ASCII without quotes and backslashes.
fn is_scope(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
}

/// Whether a word is an absolute URI without a fragment.
fn is_resource(word: &str) -> bool {
    let (scheme, rest) = word.split_once(':').unwrap_or_default();
    is_scheme(scheme) && !rest.is_empty() && is_plain(word) && !word.contains('#')
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && text == text.trim() && !text.contains(char::is_control)
}

/// The first segments of this server's own paths: no other page can be at one of them. A test of the web crate
/// compares them with its routes.
pub const OWN_PATHS: [&str; 15] = [
    ".well-known",
    "api",
    "connect",
    "console",
    "content",
    "device",
    "external",
    "health",
    "metrics",
    "openapi",
    "password",
    "problems",
    "schemas",
    "signin",
    "t",
];

fn is_callback_path(text: &str) -> bool {
    let first = text.split('/').nth(1).unwrap_or_default();
    let is_own = OWN_PATHS.iter().any(|own| own.eq_ignore_ascii_case(first));
    is_path(text) && text.len() > 1 && text.is_ascii() && !text.contains(['?', '#']) && !is_own
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Whether a text is the origin of a page, or of an app on Android or iOS (WebAuthn Level 3, section 5.8.1).
fn is_origin(text: &str) -> bool {
    let app = ["android:apk-key-hash:", "ios:bundle-id:"].iter().find_map(|scheme| text.strip_prefix(scheme));
    if let Some(id) = app {
        return !id.is_empty()
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    }
    let host = text.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    is_web_url(text) && !host.is_empty() && !text.contains(['?', '#', '@'])
}

fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Schemes that lead to no page and to no app.
const NON_NAVIGABLE_SCHEMES: [&str; 4] = ["javascript", "data", "vbscript", "file"];

/// Whether a text is a URL, in the web or of an app, that contains the token and no unknown placeholder.
fn is_link_template(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_navigable =
        is_scheme(scheme) && !NON_NAVIGABLE_SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    let is_forbidden = |letter: char| letter.is_control() || letter.is_whitespace();
    let plain = PLACEHOLDERS.iter().fold(text.to_owned(), |text, known| text.replace(known, ""));
    is_navigable
        && !rest.starts_with('/')
        && text.contains("{token}")
        && !text.contains(is_forbidden)
        && !plain.contains(['{', '}'])
}

fn is_address(text: &str) -> bool {
    is_path(text) || (text.starts_with("https://") && is_web_url(text))
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && is_plain(text)
}

/// Whether a text is an http or https URL: as a link, it executes nothing.
fn is_web_url(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_scheme = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    is_scheme && !rest.is_empty() && is_plain(text)
}

fn is_plain(text: &str) -> bool {
    let is_forbidden =
        |letter: char| letter.is_control() || letter.is_whitespace() || "\\\"'<>".contains(letter);
    text.len() <= 2048 && !text.contains(is_forbidden)
}

/// Names of links with their URLs: `Privacy https://example.com/privacy, Imprint /imprint`.
pub fn links(text: &str) -> Option<Vec<(&str, &str)>> {
    let links: Option<Vec<_>> = list_items(text)
        .map(|link| {
            let (name, address) = link.rsplit_once(char::is_whitespace)?;
            let name = name.trim_end();
            (!name.is_empty() && name.len() <= 200 && is_address(address)).then_some((name, address))
        })
        .collect();
    links.filter(|links| links.len() <= MAX_LINKS)
}

/// A Boolean, in any case.
pub fn flag(text: &str) -> Option<bool> {
    [("true", true), ("false", false)]
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text.trim()))
        .map(|(_, value)| value)
}

/// A whole number.
pub fn number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// A duration as options store it: `[d.]hh:mm:ss`.
pub fn clock(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days == 0 { clock } else { format!("{days}.{clock}") }
}

/// A duration in milliseconds: `[d.]hh:mm:ss`, optionally with a fraction of a second, or ISO 8601, where a day
/// has 24 hours.
pub fn span(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.starts_with(['P', 'p']) {
        let span: Span = text.parse().ok()?;
        let exact: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        return i64::try_from(exact.as_millis()).ok().filter(|length| *length >= 0);
    }
    let (days, clock) = match text.split_once('.') {
        // the dot before the clock ends the days; one after it begins a fraction
        Some((days, clock)) if !days.contains(':') => (digits(days, u32::MAX.into())?, clock),
        _ => (0, text),
    };
    let mut parts = clock.split(':');
    let hours = digits(parts.next()?, 23)?;
    let minutes = digits(parts.next()?, 59)?;
    let (seconds, fraction) = parts.next().map(|part| part.split_once('.').unwrap_or((part, "")))?;
    let seconds = digits(seconds, 59)?;
    if parts.next().is_some() || fraction.len() > 7 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + thousandths)
}

fn digits(text: &str, max: i64) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|value| plain && *value <= max)
}

#[cfg(test)]
mod tests;
