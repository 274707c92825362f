//! Whether an IP address is of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not of the public internet (IANA's special-purpose address registry), as first
/// address and length of the prefix.
const SPECIAL_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10), // carriers (RFC 6598)
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local; clouds serve secrets there
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),   // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24), // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, broadcast
];

/// A block of IPv6 addresses.
#[derive(Clone, Copy)]
struct BlockV6 {
    first: Ipv6Addr,
    prefix_length: u32,
}

impl BlockV6 {
    /// The block with this length of the prefix, whose first address begins with these segments.
    const fn new(first: u16, second: u16, prefix_length: u32) -> Self {
        Self { first: Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix_length }
    }

    fn contains(self, address: Ipv6Addr) -> bool {
        let shift = 128 - self.prefix_length;
        address.to_bits() >> shift == self.first.to_bits() >> shift
    }
}

/// IPv6 blocks that are not public within `2000::/3`, outside of which none is.
const SPECIAL_V6: [BlockV6; 4] = [
    BlockV6::new(0x2001, 0, 23),     // protocols, e.g. Teredo
    BlockV6::new(0x2001, 0xdb8, 32), // documentation
    BlockV6::new(0x2002, 0, 16),     // 6to4, which holds any IPv4 address
    BlockV6::new(0x3fff, 0, 20),     // documentation
];
const GLOBAL_V6: BlockV6 = BlockV6::new(0x2000, 0, 3);
/// NAT64's prefix (RFC 6052): the last 32 bits are the IPv4 address that is reached.
const TRANSLATED_V6: BlockV6 = BlockV6::new(0x64, 0xff9b, 96);

/// Whether an address is of the public internet: not private, loopback, link-local, multicast, for
/// documentation or of a tunnel, and no IPv4 address mapped to IPv6.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if TRANSLATED_V6.contains(address) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(address) && !SPECIAL_V6.into_iter().any(|block| block.contains(address))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.into_iter().any(|(first, length)| {
        let shift = 32 - length;
        address.to_bits() >> shift == first.to_bits() >> shift
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn addresses_that_are_not_public() {
        for inner in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(inner.parse().unwrap()), "{inner}");
        }
    }
}
