//! Trusted proxies, and the address of their client.

use std::net::{IpAddr, SocketAddr};

use chancery_fetch::Networks;
use http::HeaderMap;

/// The clients of each proxy, the nearest last.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of a request's client: the last one that is no trusted proxy's. Other senders of the header are ignored,
/// and so are values that cannot be parsed.
pub fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> IpAddr {
    let lines = headers.get_all(FORWARDED_FOR).iter().map(|line| line.to_str().unwrap_or_default());
    let named: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    let mut caller = peer;
    for text in named.into_iter().rev() {
        if !trusted.holds(caller) {
            break;
        }
        let Some(address) = address_in(text.trim()) else { break };
        caller = address;
    }
    caller
}

/// An address, as proxies write it: alone, in brackets, with a port.
fn address_in(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::caller;

    fn seen(peer: &str, lines: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", HeaderValue::from_static(line));
        }
        caller(peer.parse().unwrap(), &headers, &"10.0.0.0/8, fd00::/8".parse().unwrap()).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_says_whom_it_speaks_for() {
        for (peer, lines, expected) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            // values that a caller wrote itself precede those that the proxy adds
            ("10.0.0.1", &["127.0.0.1, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["127.0.0.1", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.7, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("fd00::1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("fd00::1", &["[2001:db8::1]"], "2001:db8::1"),
            ("::ffff:10.0.0.1", &["::ffff:198.51.100.7"], "198.51.100.7"),
        ] {
            assert_eq!(seen(peer, lines), expected, "{peer} {lines:?}");
        }
    }
}
