//! Networks outside of the public internet that may be connected to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::is_public;

/// The operator's networks that this server may connect to. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

/// A block of addresses: the first, and the length of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network(IpAddr, u32);

impl Networks {
    /// All networks: for destinations that the operator configures.
    pub fn all() -> Self {
        Self(vec![Network([0, 0, 0, 0].into(), 0), Network([0_u16; 8].into(), 0)])
    }

    /// Whether an address may be connected to: it is of the public internet or of these networks.
    pub fn admit(&self, address: IpAddr) -> bool {
        is_public(address) || self.holds(address)
    }

    /// Whether some of these are loopback.
    pub fn hold_loopback(&self) -> bool {
        let local = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let is_local =
            |network: &Network| network.0.is_loopback() || local.iter().any(|one| network.holds(*one));
        self.0.iter().any(is_local)
    }

    /// Whether an address is of these networks.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.holds(address.to_canonical()))
    }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        // a prefix of no bits shifts all out, and holds every address
        let same = |one: u128, other: u128, bits: u32| {
            one.checked_shr(bits).unwrap_or(0) == other.checked_shr(bits).unwrap_or(0)
        };
        match (self.0, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same(first.to_bits().into(), address.to_bits().into(), 32 - self.1)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                same(first.to_bits(), address.to_bits(), 128 - self.1)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is no network such as 10.0.0.0/8 or fd00::/8, and no address");
        let (address, length) = text.split_once('/').map_or((text, None), |(one, two)| (one, Some(two)));
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(bits), |length| length.parse().map_err(|_| invalid()))?;
        if length > bits { Err(invalid()) } else { Ok(Self(address, length)) }
    }
}

/// Reads networks separated by commas.
impl FromStr for Networks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let listed = text.split(',').map(str::trim).filter(|network| !network.is_empty());
        listed.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Network(first, length)) in self.0.iter().enumerate() {
            write!(formatter, "{}{first}/{length}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Networks;

    #[test]
    fn networks_admit_their_addresses() {
        let networks: Networks = "10.0.0.0/8, 192.168.1.7,fd00::/8, ::1".parse().unwrap();
        for (address, is_admitted) in [
            ("10.255.0.1", true),
            ("11.0.0.1", true),
            ("172.16.0.1", false),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("127.0.0.1", false),
            ("::ffff:10.0.0.1", true),
            ("::ffff:127.0.0.1", false),
            ("fd00::1", true),
            ("fe80::1", false),
            ("::1", true),
            ("1.1.1.1", true),
        ] {
            assert_eq!(networks.admit(address.parse().unwrap()), is_admitted, "{address}");
        }
        assert_eq!(networks.to_string().parse(), Ok(networks));
        assert!(!Networks::default().admit("10.0.0.1".parse().unwrap()));
        for all in ["0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "fe80::1"] {
            assert!(Networks::all().admit(all.parse().unwrap()), "{all}");
        }
    }

    #[test]
    fn loopback_networks_are_recognized() {
        for (networks, holds) in [
            ("", false),
            ("10.0.0.0/8,fd00::/8", false),
            ("127.0.0.0/8", true),
            ("127.0.0.53", true),
            ("::1", true),
            ("0.0.0.0/0", true),
        ] {
            assert_eq!(networks.parse::<Networks>().unwrap().hold_loopback(), holds, "{networks}");
        }
        assert!(Networks::all().hold_loopback());
    }

    #[test]
    fn malformed_networks_are_refused() {
        for wrong in ["10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0", "host", "10.0.0.0/8/8"] {
            assert!(wrong.parse::<Networks>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
