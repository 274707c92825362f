//! The forms of option values: text on the wire and in the database, typed where the values are used.

use chancery_record::{MailAddress, MailServerSettings};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use uuid::Uuid;

/// The form that the text of an option must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`, in any case.
    Flag,
    /// A whole number within bounds, both included.
    Number(i64, i64),
    /// A length of time, `[d.]hh:mm:ss` or ISO 8601; at least and at most this many milliseconds.
    Span(i64, i64),
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// The settings of a mail server, as a JSON object.
    MailServer,
    /// An e-mail address, perhaps with a name before it.
    Sender,
    /// E-mail addresses separated by commas.
    Recipients,
    /// An address of a page, with `{token}` for a token.
    LinkTemplate,
    /// A colour, `#rgb` or `#rrggbb`.
    Colour,
    /// An https address, or a path at this server.
    Address,
    /// An address of a page in the web, or a path at this server.
    Page,
    /// An https address, or an http one where the operator allows that.
    Endpoint,
    /// A path of this server, below none of its own.
    CallbackPath,
    /// A domain name, such as `example.com`.
    Domain,
    /// Origins of pages and apps as browsers write them, separated by commas.
    Origins,
    /// The ids of models of authenticators, separated by commas. What is wrong in part stays in effect: as a list of what is
    /// admitted it admits less, and as one of what is blocked it blocks the others.
    Aaguids,
    /// Names of links, each with its address behind a blank, separated by commas: at most [`MOST_LINKS`].
    Links,
}

/// The most links of an option.
pub const MOST_LINKS: usize = 10;

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
            | Self::Address => ("String", "Text"),
        }
    }

    /// Whether a text has this form. Empty text does: the default is in effect then.
    pub fn fits(self, text: &str) -> bool {
        match self {
            _ if text.is_empty() => true,
            Self::Flag => flag(text).is_some(),
            Self::Number(min, max) => number(text).is_some_and(|value| (min..=max).contains(&value)),
            Self::Span(min, max) => span(text).is_some_and(|value| (min..=max).contains(&value)),
            Self::Choice(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
            Self::MailServer => MailServerSettings::read(text).is_ok(),
            Self::Sender => MailAddress::read_named(text).is_some(),
            Self::Recipients => listed(text).all(|one| MailAddress::read(one).is_some()),
            Self::LinkTemplate => is_link_template(text),
            Self::Colour => is_colour(text),
            Self::Address => is_address(text),
            Self::Page => is_path(text) || is_of_web(text),
            Self::Links => links(text).is_some(),
            Self::Endpoint => is_of_web(text) && !text.contains('#'),
            Self::CallbackPath => is_callback_path(text),
            Self::Domain => is_domain(text),
            Self::Origins => listed(text).all(is_origin),
            Self::Aaguids => listed(text).all(|one| Uuid::try_parse(one).is_ok()),
            Self::Text => true,
        }
    }
}

/// The parts of a list, without blanks around them.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// The first segments of this server's own paths: no other page can be at one of them. A test of the web crate compares them with its
/// routes.
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
    let host = text.split_once("://").map_or("", |(_, rest)| rest.strip_suffix('/').unwrap_or(rest));
    is_of_web(text) && !host.is_empty() && !host.contains(['/', '?', '#', '@'])
}

fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Schemes whose addresses lead to no page and to no app.
const NO_PLACES: [&str; 4] = ["javascript", "data", "vbscript", "file"];

/// Whether a text is an address, in the web or of an app, that is told the token.
fn is_link_template(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
        && !NO_PLACES.contains(&scheme.to_ascii_lowercase().as_str());
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace();
    is_scheme && !rest.starts_with('/') && text.contains("{token}") && !text.contains(is_odd)
}

fn is_address(text: &str) -> bool {
    is_path(text) || (text.starts_with("https://") && is_of_web(text))
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && is_plain(text)
}

/// Whether a text is an http or https address: as a link, it runs nothing.
fn is_of_web(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_scheme = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    is_scheme && !rest.is_empty() && is_plain(text)
}

fn is_plain(text: &str) -> bool {
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || "\\\"'<>".contains(letter);
    text.len() <= 2048 && !text.contains(is_odd)
}

/// Names of links with their addresses: `Privacy https://example.com/privacy, Imprint /imprint`.
pub fn links(text: &str) -> Option<Vec<(&str, &str)>> {
    let links: Option<Vec<_>> = listed(text)
        .map(|link| {
            let (name, address) = link.rsplit_once(char::is_whitespace)?;
            let name = name.trim_end();
            (!name.is_empty() && name.len() <= 200 && is_address(address)).then_some((name, address))
        })
        .collect();
    links.filter(|links| links.len() <= MOST_LINKS)
}

/// A truth value, in any case.
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

/// A length of time in milliseconds: `[d.]hh:mm:ss`, perhaps with a fraction of a second, or ISO 8601, where
/// a day has 24 hours.
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
mod tests {
    use proptest::prelude::*;

    use super::{Form, flag, links, span};

    #[test]
    fn lengths_of_time() {
        for (text, expected) in [
            ("00:05:00", Some(300_000)),
            ("7.00:00:00", Some(604_800_000)),
            ("1.02:03:04.5", Some(93_784_500)),
            ("PT1H", Some(3_600_000)),
            ("P7D", Some(604_800_000)),
            ("P1DT12H", Some(129_600_000)),
            ("24:00:00", None),
            ("00:60:00", None),
            ("5", None),
            ("-00:01:00", None),
            ("-PT1H", None),
            ("00:01:00:00", None),
            ("", None),
            ("P1M", None),
        ] {
            assert_eq!(span(text), expected, "{text}");
        }
    }

    #[test]
    fn flags_in_any_case() {
        assert_eq!((flag("True"), flag("FALSE"), flag("yes")), (Some(true), Some(false), None));
        assert!(Form::Number(1, 3).fits("3") && !Form::Number(1, 3).fits("4"));
        assert!(Form::Choice(&["none"]).fits("None") && !Form::Choice(&["none"]).fits("some"));
    }

    #[test]
    fn what_mail_needs() {
        for (form, good, wrong) in [
            (
                Form::Sender,
                &["a@example.com", "Bücherei <a@example.com>"][..],
                &["nope", "Name a@example.com"][..],
            ),
            (
                Form::Recipients,
                &["a@example.com", "a@example.com, b@example.com,"],
                &["a@example.com, b", "a b@c"],
            ),
            (
                Form::MailServer,
                &["{\"Host\":\"mail.example.com\"}"],
                &["{}", "[]", "{\"Host\":\"a b\"}", "mail"],
            ),
            (
                Form::LinkTemplate,
                &[
                    "https://id.example.com/?u={loginName}#{token}",
                    "http://localhost:3000/{token}",
                    "com.example.app://reset?t={token}",
                ],
                &[
                    "https://id.example.com/",
                    "javascript://x%0a({token})",
                    "/new?t={token}",
                    "https://a b/{token}",
                    "{token}",
                ],
            ),
        ] {
            assert!(form.fits("") && good.iter().all(|text| form.fits(text)), "{form:?}");
            assert!(!wrong.iter().any(|text| form.fits(text)), "{form:?}");
        }
    }

    #[test]
    fn what_passkeys_and_providers_need() {
        let model = "8446ccb9-ab1d-b374-750b-2367ff6f3a1f";
        let plain = model.replace('-', "");
        for (form, good, wrong) in [
            (
                Form::Aaguids,
                vec![
                    model,
                    plain.as_str(),
                    "8446CCB9-AB1D-B374-750B-2367FF6F3A1F, 00000000-0000-0000-0000-000000000000,",
                ],
                vec!["8446ccb9", "a security key", "8446ccb9-ab1d-b374-750b-2367ff6f3a1f; 8446ccb9"],
            ),
            (
                Form::Domain,
                vec!["example.com", "localhost", "Login.Example.COM", "xn--bcher-kva.example"],
                vec![
                    "https://example.com",
                    "example.com:8443",
                    "exa mple.com",
                    ".example.com",
                    "-a.example",
                    "a..b",
                ],
            ),
            (
                Form::Origins,
                vec![
                    "https://example.com, http://localhost:3000/",
                    "android:apk-key-hash:sYUC8p5I9SxqFernBPHmDxz_YVZXmVJdW8s-m3RTTqE",
                    "ios:bundle-id:com.example.app",
                ],
                vec![
                    "example.com",
                    "https://example.com/login",
                    "https://",
                    "https://a@b",
                    "android:apk-key-hash:",
                ],
            ),
            (
                Form::Endpoint,
                vec!["https://sms.example.com/send?x=1", "http://127.0.0.1:8080/"],
                vec![
                    "sms.example.com",
                    "/send",
                    "ftp://sms.example.com",
                    "https://",
                    "https://a b",
                    "https://a/#b",
                ],
            ),
            (
                Form::CallbackPath,
                vec!["/signin-oidc", "/callback/partner"],
                vec![
                    "signin-oidc",
                    "/",
                    "//evil.example",
                    "/a?b",
                    "/connect/token",
                    "/API/x",
                    "/console",
                    "/device",
                    "https://a",
                ],
            ),
        ] {
            assert!(form.fits(""), "{form:?}");
            for text in good {
                assert!(form.fits(text), "{form:?} {text}");
            }
            for text in wrong {
                assert!(!form.fits(text), "{form:?} {text}");
            }
        }
    }

    #[test]
    fn colours_addresses_and_links() {
        for good in ["#fff", "#22406B"] {
            assert!(Form::Colour.fits(good), "{good}");
        }
        for bad in ["fff", "#ffff", "#ggg", "red", "#fff;"] {
            assert!(!Form::Colour.fits(bad), "{bad}");
        }
        assert!(Form::Page.fits("http://example.com/terms") && Form::Page.fits("/terms"));
        assert!(!Form::Page.fits("javascript:alert(1)") && !Form::Page.fits("terms"));
        for good in ["https://example.com/logo.svg", "/assets/global/logo.png"] {
            assert!(Form::Address.fits(good), "{good}");
        }
        for bad in [
            "http://example.com/x",
            "//example.com",
            "javascript:alert(1)",
            "https://",
            "/a b",
            "https://a/\"x",
        ] {
            assert!(!Form::Address.fits(bad), "{bad}");
        }
        for good in ["https://example.com/terms", "HTTP://intranet/terms", "/terms"] {
            assert!(Form::Page.fits(good), "{good}");
        }
        for good in ["https://example.com/reset?u={loginName}#{token}", "http://localhost:3000/{token}"] {
            assert!(Form::LinkTemplate.fits(good), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            " javascript://x",
            "data:text/html,x",
            "//example.com",
            "https://",
            "terms",
        ] {
            assert!(!Form::Page.fits(bad) && !Form::LinkTemplate.fits(bad), "{bad}");
        }
        let text = "Privacy notice https://example.com/p, Imprint /imprint,";
        assert_eq!(
            links(text),
            Some(vec![("Privacy notice", "https://example.com/p"), ("Imprint", "/imprint")])
        );
        for bad in ["https://example.com/p", "Privacy http://example.com", "a /x,".repeat(11).as_str()] {
            assert!(!Form::Links.fits(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,40}") {
            let _ = (span(&text), links(&text));
        }

        #[test]
        fn a_clock_is_read_as_written(days in 0i64..9999, seconds in 0i64..86_400) {
            let clock = format!("{days}.{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
            prop_assert_eq!(span(&clock), Some((days * 86_400 + seconds) * 1000));
        }
    }
}
