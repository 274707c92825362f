//! The grammar of e-mail addresses: one for stored addresses and for recipients of mail.

use crate::text::{breaks_line, is_hidden};

/// The most bytes of an address: a path of SMTP has 256 with its brackets (RFC 5321, section 4.5.3.1.3).
const MAX_LENGTH: usize = 254;
/// The most bytes before the `@` (RFC 5321, section 4.5.3.1.1).
const MAX_LOCAL: usize = 64;
/// The most bytes of a domain, and of one of its labels (RFC 1035, section 2.3.4).
const MAX_DOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

/// An e-mail address at a domain (RFC 5321, RFC 6531).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailAddress<'a> {
    /// The local part, before the `@`.
    pub local: &'a str,
    /// The domain in ASCII (RFC 5891), because not every server accepts another form.
    pub domain: String,
}

impl<'a> MailAddress<'a> {
    /// Reads `a@example.com`; `None` where no mail can be sent to it.
    pub fn read(text: &'a str) -> Option<Self> {
        let (local, domain) = text.split_once('@')?;
        if !is_local(local) || !domain.chars().all(is_plain) {
            return None;
        }
        let domain = idna::domain_to_ascii(domain).ok()?;
        let fits = is_domain(&domain) && local.len() + 1 + domain.len() <= MAX_LENGTH;
        fits.then_some(Self { local, domain })
    }

    /// Reads a sender, `a@example.com` or `Name <a@example.com>`: the optional name, and the address. It has
    /// neither a quoted string nor letters that are no word characters, because not every program reads such a
    /// sender.
    pub fn read_named(text: &'a str) -> Option<(Option<&'a str>, Self)> {
        let (name, address) = if let Some(address) = Self::read(text.trim()) {
            (None, address)
        } else {
            let (name, rest) = text.rsplit_once('<')?;
            (Some(name), Self::read(rest.trim_end().strip_suffix('>')?.trim())?)
        };
        let name = name.map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty());
        let is_plain = !address.local.starts_with('"')
            && address.local.chars().all(|letter| letter.is_ascii() || letter.is_alphanumeric());
        (is_plain && name.is_none_or(|name| !name.contains(breaks_line))).then_some((name, address))
    }
}

fn is_plain(letter: char) -> bool {
    !letter.is_whitespace() && !breaks_line(letter) && !is_hidden(letter)
}

/// Whether a text is atoms with dots between them, or one quoted string (RFC 5321, section 4.1.2).
fn is_local(local: &str) -> bool {
    let is_atom = |atom: &str| {
        !atom.is_empty() && atom.chars().all(|letter| is_plain(letter) && !"()<>[]:;,\\\"".contains(letter))
    };
    let fits = match local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => is_quoted(quoted),
        None => local.split('.').all(is_atom),
    };
    fits && local.len() <= MAX_LOCAL
}

fn is_quoted(text: &str) -> bool {
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let fits = match letter {
            '"' => false,
            '\\' => letters.next().is_some_and(|escaped| escaped.is_ascii_graphic()),
            other => is_plain(other),
        };
        if !fits {
            return false;
        }
    }
    !text.is_empty()
}

fn is_domain(domain: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        label.len() <= MAX_LABEL
            && is_edge(bytes.first())
            && is_edge(bytes.last())
            && label.bytes().all(is_inner)
    };
    domain.len() <= MAX_DOMAIN && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::MailAddress;

    #[test]
    fn only_deliverable_addresses_are_read() {
        for (text, local, domain) in [
            ("ada@example.com", "ada", "example.com"),
            ("a.b+c=d/e@Example.COM", "a.b+c=d/e", "example.com"),
            ("jörg@bücher.example", "jörg", "xn--bcher-kva.example"),
            ("\"a..b\"@example.com", "\"a..b\"", "example.com"),
            ("\"a\\\\b\"@example.com", "\"a\\\\b\"", "example.com"),
            ("root@localhost", "root", "localhost"),
            ("a@a_b.example", "a", "a_b.example"),
        ] {
            let expected = MailAddress { local, domain: domain.to_owned() };
            assert_eq!(MailAddress::read(text), Some(expected), "{text}");
        }
        let long = [format!("{}@example.com", "a".repeat(65)), format!("a@{}.com", "b".repeat(64))];
        let many = format!("a@{}", vec!["b".repeat(60); 5].join("."));
        for wrong in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "<a@example.org>",
            "a@example.org.",
            ".a@example.org",
            "a.@example.org",
            "a..b@example.org",
            "a@-b.example",
            "a@b-.example",
            "a@b..example",
            "a b@example.org",
            "a@b, c@d",
            "a@b@c",
            "\"\"@example.org",
            "\"@example.org",
            "\"a\"b\"@example.org",
            "\"a\\\"@example.org",
            "a\r\nBcc: c@d",
            "a@b\u{85}c",
            "a\u{200b}@example.org",
            "a@exam\u{ad}ple.org",
            "a@[192.0.2.1]",
            &long[0],
            &long[1],
            &many,
        ] {
            assert_eq!(MailAddress::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_name_may_precede_an_address() {
        let named = |text| MailAddress::read_named(text).map(|(name, address)| (name, address.domain));
        let domain = || "example.com".to_owned();
        for bare in [" a@example.com ", "<a@example.com>"] {
            assert_eq!(named(bare), Some((None, domain())), "{bare}");
        }
        assert_eq!(
            named("\"Chancery, Identity\" <a@example.com>"),
            Some((Some("Chancery, Identity"), domain()))
        );
        assert_eq!(named("Bücherei < a@example.com > "), Some((Some("Bücherei"), domain())));
        for wrong in [
            "Name\r\nBcc: c@d <a@example.com>",
            "Name <a@example.com",
            "Name a@example.com>",
            "Name a@b",
            "😀@b.example",
            "\"a..b\"@b.example",
            "a\u{2028}b <a@b>",
        ] {
            assert_eq!(named(wrong), None, "{wrong:?}");
        }
    }
}
