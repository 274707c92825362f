//! Redirect URIs of client apps (RFC 6749, section 3.1.2.3; RFC 9700, section 2.1).

/// The kind of application behind a redirect URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    /// A web site with https.
    Web,
    /// A program on the user's device, with http on the loopback address or `localhost` (RFC 8252, section 7.3).
    Loopback,
    /// A program on the user's device with a private-use URI scheme (RFC 8252, section 7.1).
    PrivateScheme,
}

impl RedirectKind {
    /// The kind of a redirect URI; `None` if it is not allowed: it has no scheme, a reserved one, a fragment, or is http on
    /// another host.
    pub fn of(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once(':')?;
        if scheme.is_empty() || uri.contains('#') {
            None
        } else if scheme.eq_ignore_ascii_case("https") {
            Some(Self::Web)
        } else if scheme.eq_ignore_ascii_case("http") {
            is_loopback(rest).then_some(Self::Loopback)
        } else {
            is_claimable(scheme).then_some(Self::PrivateScheme)
        }
    }
}

/// Schemes of the browser, the system or a protocol, which no application can claim: their handlers display or run the
/// content of the URI, or pass it to another program.
const RESERVED: [&str; 65] = [
    "about",
    "android-app",
    "blob",
    "brave",
    "callto",
    "chrome",
    "chrome-search",
    "chrome-untrusted",
    "cid",
    "content",
    "data",
    "dav",
    "devtools",
    "edge",
    "facetime",
    "feed",
    "file",
    "filesystem",
    "ftp",
    "ftps",
    "geo",
    "gopher",
    "help",
    "imap",
    "intent",
    "itms",
    "itms-apps",
    "itms-services",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "mailto",
    "market",
    "mhtml",
    "microsoft-edge",
    "mid",
    "moz-icon",
    "news",
    "nfs",
    "nntp",
    "opera",
    "pop",
    "prefs",
    "res",
    "resource",
    "rtsp",
    "search",
    "search-ms",
    "settings",
    "sftp",
    "shell",
    "sip",
    "sips",
    "smb",
    "sms",
    "ssh",
    "tel",
    "telnet",
    "vbscript",
    "view-source",
    "vivaldi",
    "ws",
    "wss",
    "wyciwyg",
];

/// Whether an application can claim a scheme (RFC 8252, section 7.1). Schemes by domain name have a dot; those without,
/// such as `myapp`, are common and allowed, too.
pub fn is_claimable(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    // `ms-...` is reserved for Windows, except for these two of its store's applications
    let is_of_windows = scheme.starts_with("ms-")
        && !matches!(scheme.as_str(), "ms-app" | "ms-appx-web")
        && !scheme.contains('.');
    !is_of_windows && !RESERVED.contains(&scheme.as_str())
}

/// Whether a redirect URI is registered: an exact match. Only for a native application, the port of `http://127.0.0.1`
/// and `http://[::1]` may differ, because the system assigns it at the start (RFC 8252, section 7.3). Private-use
/// schemes are only for native applications.
pub fn is_registered_redirect(uri: &str, registered: &[&str], is_native_application: bool) -> bool {
    let is_exact_match = || registered.contains(&uri);
    match RedirectKind::of(uri) {
        None => false,
        Some(RedirectKind::Web) => is_exact_match(),
        Some(RedirectKind::PrivateScheme) => is_native_application && is_exact_match(),
        Some(RedirectKind::Loopback) => {
            let differs_in_port = |known: &&str| {
                split_port(uri).is_some_and(|parts| split_port(known).is_some_and(|other| parts == other))
            };
            is_exact_match() || (is_native_application && registered.iter().any(differs_in_port))
        }
    }
}

/// Whether the rest of a URI after `http:` is on this device.
fn is_loopback(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    ["127.0.0.1", "[::1]", "localhost"].iter().any(|host| {
        let port = authority.strip_prefix(host);
        port.is_some_and(|port| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
    })
}

/// The parts before and after the port of an http URI on a loopback address.
fn split_port(uri: &str) -> Option<(&str, &str)> {
    let origins = ["http://127.0.0.1", "http://[::1]"];
    let (origin, after) =
        origins.iter().find_map(|origin| uri.strip_prefix(origin).map(|after| (*origin, after)))?;
    let rest = match after.strip_prefix(':') {
        None => after,
        Some(after) => after.trim_start_matches(|letter: char| letter.is_ascii_digit()),
    };
    Some((origin, rest))
}

/// Whether a text is a port in canonical form: 1 to 65535, without leading zeros.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0') && text.parse::<u16>().is_ok()
}
