//! Refuses two listeners on one address: the error of the second bind would not name the setting.

use std::net::{IpAddr, SocketAddr};

use crate::ConfigError;

/// Refuses two listeners on one address.
pub fn check_distinct(
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    console: Option<SocketAddr>,
) -> Result<(), ConfigError> {
    let named = [("listen", Some(listen)), ("metrics_listen", metrics), ("console_listen", console)];
    let named: Vec<_> = named.iter().filter_map(|(name, address)| Some((*name, (*address)?))).collect();
    for (number, (name, address)) in named.iter().enumerate() {
        for (other, theirs) in named.iter().skip(number + 1) {
            if overlap(*address, *theirs) {
                return Err(ConfigError(format!(
                    "{name} is {address} and {other} is {theirs}, which is the same address: give each its own port"
                )));
            }
        }
    }
    Ok(())
}

/// Whether no two sockets can listen on these addresses. Port 0 is a free port each time.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() != 0
        && one.port() == other.port()
        && (includes(one.ip(), other.ip()) || includes(other.ip(), one.ip()))
}

/// Whether a listener on `all` also accepts connections to `one`. `[::]` accepts IPv4 connections, too.
fn includes(all: IpAddr, one: IpAddr) -> bool {
    let (all, one) = (all.to_canonical(), one.to_canonical());
    all == one || (all.is_unspecified() && (all.is_ipv6() || one.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn two_listeners_on_one_address_are_found() {
        let overlap = |one: &str, other: &str| {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        };
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::]:80", "0.0.0.0:80"),
            ("[::]:80", "[::1]:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert!(overlap(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:81"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("0.0.0.0:80", "[::1]:80"),
        ] {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }
}
