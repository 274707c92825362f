//! Origins of URLs, as browsers write them.

/// The origin of a URL as a browser writes it (RFC 6454, section 6.2): scheme, host and any port that is not
/// the scheme's default. Text without a host (an app's `android:apk-key-hash:..`) stays as it is.
pub fn origin_of(url: &str) -> String {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let scheme = scheme.to_ascii_lowercase();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    format!("{scheme}://{}", host.strip_suffix(default_port).unwrap_or(&host))
}

/// The host of an origin, without its port; empty where it has none.
pub fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a URL is of the local machine, and so needs no TLS.
pub fn is_loopback_url(url: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].contains(&host_of(&origin_of(url)))
}

#[cfg(test)]
mod tests {
    use super::{host_of, is_loopback_url, origin_of};

    #[test]
    fn origins_and_hosts() {
        for (url, origin, host) in [
            ("http://localhost:80/x", "http://localhost", "localhost"),
            ("http://LocalHost:8080", "http://localhost:8080", "localhost"),
            ("HTTPS://Id.Example:443/A/b", "https://id.example", "id.example"),
            ("http://127.0.0.1:443", "http://127.0.0.1:443", "127.0.0.1"),
            ("https://a.example?q", "https://a.example", "a.example"),
            ("https://[::1]:8443/", "https://[::1]:8443", "[::1]"),
            ("nothing", "nothing", ""),
        ] {
            assert_eq!(origin_of(url), origin);
            assert_eq!(host_of(&origin_of(url)), host);
        }
    }

    #[test]
    fn this_machine_has_three_names() {
        for own in ["http://localhost", "http://LOCALHOST:1/a", "http://127.0.0.1:1", "https://[::1]/"] {
            assert!(is_loopback_url(own), "{own}");
        }
        for other in [
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://localhost@id.example/",
            "http://id.example:80@localhost/",
            "http://[::1].example",
            "localhost",
            "",
        ] {
            assert!(!is_loopback_url(other), "{other}");
        }
    }
}
