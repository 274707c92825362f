//! Comparison of target URLs (RFC 9449, section 4.3, item 9) and of resources (RFC 8707).

/// Compares two URLs without query and fragment, after syntax-based and scheme-based normalization (RFC 3986, sections
/// 6.2.2 and 6.2.3). Dot segments remain, because clients do not send them.
pub fn is_same(one: &str, other: &str) -> bool {
    normalize(one).is_some_and(|one| normalize(other).is_some_and(|other| one == other))
}

/// The normalized name of a resource: http and https URLs by RFC 3986, sections 6.2.2 and 6.2.3, other names unchanged.
pub fn normalize_resource(name: &str) -> String {
    let (address, query) =
        name.split_once('?').map_or((name, None), |(address, query)| (address, Some(query)));
    let query = query.map(normalize_path);
    let normalized = normalize(address).filter(|_| !name.contains('#'));
    match (normalized, query) {
        (Some(address), None) => remove_dot_segments(&address),
        (Some(address), Some(Some(query))) => format!("{}?{query}", remove_dot_segments(&address)),
        _ => name.to_owned(),
    }
}

/// Whether two names denote the same resource.
pub fn is_same_resource(one: &str, other: &str) -> bool {
    one == other || normalize_resource(one) == normalize_resource(other)
}

/// Removes the segments `.` and `..` (RFC 3986, section 5.2.4).
fn remove_dot_segments(address: &str) -> String {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let path = address.get(begin..).and_then(|rest| rest.find('/')).map_or(address.len(), |at| begin + at);
    let (origin, path) = address.split_at_checked(path).unwrap_or((address, ""));
    let mut output: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    output.pop();
                }
                if is_last {
                    output.push("");
                }
            }
            other => output.push(other),
        }
    }
    format!("{origin}/{}", output.join("/"))
}

/// Normalizes an http or https URL without its query and fragment.
fn normalize(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next()?;
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = match authority.rsplit_once(':') {
        // the last colon of [::1] does not begin a port
        Some((host, port)) if !port.ends_with(']') => (host, read_port(port, default_port)?),
        _ => (authority, default_port),
    };
    if host.is_empty() || host.contains('@') {
        return None;
    }
    let path = if path.is_empty() { "/".to_owned() } else { normalize_path(path)? };
    Some(format!("{scheme}://{}:{port}{path}", host.to_ascii_lowercase()))
}

fn read_port(port: &str, default_port: u16) -> Option<u16> {
    if port.is_empty() {
        return Some(default_port);
    }
    port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?
}

/// Decodes unreserved characters of a path, and writes other escapes in upper case.
fn normalize_path(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut normalized = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| hex)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            normalized.push(char::from(byte));
        } else {
            normalized.push('%');
            normalized.push_str(&digits.to_ascii_uppercase());
        }
        normalized.push_str(rest);
    }
    Some(normalized)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_same, is_same_resource, normalize_resource};

    #[test]
    fn spellings_of_a_resource_are_equal() {
        for (one, other) in [
            ("https://mcp.example.com", "https://mcp.example.com/"),
            ("https://mcp.example.com", "HTTPS://MCP.example.com:443/"),
            ("http://mcp.example.com:80/a", "http://mcp.example.com/a"),
            ("https://a.example/%7euser/%c3%a4", "https://a.example/~user/%C3%A4"),
            ("https://a.example/x/../y/./z", "https://a.example/y/z"),
            ("https://a.example/x/..", "https://a.example/"),
            ("https://a.example/?a=%7e", "https://a.example?a=~"),
            ("urn:orders", "urn:orders"),
        ] {
            assert!(is_same_resource(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("https://a.example/mcp", "https://a.example/mcp/"),
            ("https://a.example/mcp", "https://a.example/MCP"),
            ("https://a.example/", "http://a.example/"),
            ("https://a.example/", "https://a.example:8443/"),
            ("https://a.example/", "https://b.example/"),
            ("https://a.example/?a", "https://a.example/"),
            ("https://a.example/?a", "https://a.example/?b"),
            ("https://a.example/a%2Fb", "https://a.example/a/b"),
            ("urn:orders", "URN:orders"),
            ("orders", "orders/"),
            ("https://a.example#x", "https://a.example"),
            ("https://u@a.example", "https://u@a.example/"),
        ] {
            assert!(!is_same_resource(one, other), "{one} {other}");
        }
    }

    /// A URL and another spelling of it.
    fn url_with_spelling() -> impl Strategy<Value = (String, String)> {
        let scheme = prop::sample::select(vec![("https", 443), ("http", 80)]);
        let host = "[a-z]{1,8}(\\.[a-z]{1,8}){0,2}";
        let segments = prop::collection::vec("[a-z0-9~-]{1,6}", 0..4);
        let query = prop::option::of("[a-z]{1,4}=[a-z0-9]{0,4}");
        let variations = (any::<bool>(), any::<bool>(), any::<bool>(), 0..4_usize);
        (scheme, host, segments, query, variations).prop_map(
            |((scheme, port), host, segments, query, variations)| {
                let (is_upper_case, has_port, is_escaped, dots) = variations;
                let path = segments.iter().map(|segment| format!("/{segment}")).collect::<Vec<_>>().concat();
                let tail = query.map(|query| format!("?{query}")).unwrap_or_default();
                let one = format!("{scheme}://{host}{path}{tail}");
                let (scheme, host) = if is_upper_case {
                    (scheme.to_uppercase(), host.to_uppercase())
                } else {
                    (scheme.to_owned(), host)
                };
                let port = if has_port { format!(":{port}") } else { String::new() };
                let mut path = segments
                    .iter()
                    .enumerate()
                    .map(|(at, segment)| {
                        let dotted = if at == dots { "/./x/.." } else { "" };
                        format!("{dotted}/{segment}")
                    })
                    .collect::<Vec<_>>()
                    .concat();
                if path.is_empty() {
                    path.push('/');
                }
                if is_escaped {
                    path = path.replace('a', "%61").replace('~', "%7e");
                }
                (one, format!("{scheme}://{host}{port}{path}{tail}"))
            },
        )
    }

    proptest! {
        #[test]
        fn another_spelling_is_the_same_resource((one, other) in url_with_spelling()) {
            prop_assert!(is_same_resource(&one, &other), "{one} {other}");
        }

        #[test]
        fn normalization_is_idempotent(name in "(https?://)?[!-~]{0,30}") {
            let once = normalize_resource(&name);
            prop_assert_eq!(normalize_resource(&once), once);
        }
    }

    #[test]
    fn spellings_of_a_target_url_are_equal() {
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
    fn different_target_urls_are_not_equal() {
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
