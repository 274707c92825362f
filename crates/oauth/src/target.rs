//! Whether two URLs name the same target (RFC 9449, section 4.3, item 9).

/// Whether both URLs are the same but for query and fragment, after the normalization by syntax and scheme of
/// RFC 3986, sections 6.2.2 and 6.2.3 (dot segments stay: no client writes them).
pub fn is_same(one: &str, other: &str) -> bool {
    normal(one).is_some_and(|one| normal(other).is_some_and(|other| one == other))
}

fn normal(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next()?;
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let usual = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = match authority.rsplit_once(':') {
        // the last colon of [::1] begins no port
        Some((host, port)) if !port.ends_with(']') => (host, read_port(port, usual)?),
        _ => (authority, usual),
    };
    if host.is_empty() || host.contains('@') {
        return None;
    }
    let path = if path.is_empty() { "/".to_owned() } else { normal_path(path)? };
    Some(format!("{scheme}://{}:{port}{path}", host.to_ascii_lowercase()))
}

fn read_port(port: &str, usual: u16) -> Option<u16> {
    if port.is_empty() {
        return Some(usual);
    }
    port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?
}

/// The path with escapes in upper case, and none where none is needed.
fn normal_path(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut normal = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| hex)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            normal.push(char::from(byte));
        } else {
            normal.push('%');
            normal.push_str(&digits.to_ascii_uppercase());
        }
        normal.push_str(rest);
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn urls_of_the_same_target() {
        for (one, other) in [
            ("https://server.example.com/token", "https://server.example.com/token?a=b#c"),
            ("https://Server.Example.com/token", "HTTPS://server.example.COM:443/token"),
            ("http://server.example.com", "http://server.example.com:80/"),
            ("https://server.example.com:/t", "https://server.example.com/t"),
            ("https://[::1]/t", "https://[::1]:443/t"),
            ("https://a.example/%7euser/%c3%a4", "https://a.example/~user/%C3%A4"),
            ("https://a.example:08443/", "https://a.example:8443/"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn urls_of_different_targets() {
        for (one, other) in [
            ("https://server.example.com/token", "https://server.example.com/Token"),
            ("https://server.example.com/token", "https://server.example.com/token/"),
            ("https://server.example.com/token", "http://server.example.com/token"),
            ("https://server.example.com/token", "https://server.example.com:8443/token"),
            ("https://server.example.com/token", "https://server.example.com.evil.example/token"),
            ("https://server.example.com/token", "https://a@server.example.com/token"),
            ("https://a.example/a%2Fb", "https://a.example/a/b"),
            ("https://a.example/%zz", "https://a.example/%zz"),
            ("https://a.example/%+1", "https://a.example/%+1"),
            ("https://a.example/%4", "https://a.example/%4"),
            ("https://a.example:+443/", "https://a.example/"),
            ("https://a.example:70000/", "https://a.example:70000/"),
            ("https:///token", "https:///token"),
            ("https://a@b.example/", "https://a@b.example/"),
            ("ftp://a.example/", "ftp://a.example/"),
            ("a.example", "a.example"),
            ("https://ä.example/", "https://ä.example/"),
            ("", ""),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
