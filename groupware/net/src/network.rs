//! Addresses as the server counts them, and lists of networks in text form: `192.0.2.1`, `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The client at an address, for counting its use: an IPv6 client counts as its /64 network, since
/// it can choose among 2^64 addresses.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    }
}

/// An address, or all addresses with the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// A set of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

/// The text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("addresses or ADDRESS/BITS are needed, such as 192.0.2.1,10.0.0.0/8, or none")]
pub struct NoNetwork;

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let address = || Some(IpNet::from(text.parse::<IpAddr>().ok()?.to_canonical()));
        let network = text.parse().ok().or_else(address);
        network.map(Self).ok_or(NoNetwork)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Networks {
    /// The loopback networks.
    pub fn loopback() -> Self {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8);
        let v6 = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
        Self(vec![Network(v4.into()), Network(v6.into())])
    }

    /// Returns true if one of the networks contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.0.contains(&address))
    }
}

impl FromStr for Networks {
    type Err = NoNetwork;

    /// Parses networks separated by commas, or `none`.
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        match text {
            "none" => Ok(Self::default()),
            _ => text
                .split(',')
                .map(|one| one.trim().parse())
                .collect::<Result<_, _>>()
                .map(Self),
        }
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (place, network) in self.0.iter().enumerate() {
            let between = if place > 0 { "," } else { "" };
            write!(f, "{between}{network}")?;
        }
        Ok(())
    }
}

impl FromIterator<Network> for Networks {
    fn from_iter<T: IntoIterator<Item = Network>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let check =
            |one: &str, counted: &str| assert_eq!(client_of(address(one)), address(counted));
        check("192.0.2.1", "192.0.2.1");
        check("::ffff:192.0.2.1", "192.0.2.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
    }

    #[test]
    fn addresses_are_in_the_networks_that_are_named() {
        let named = ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"];
        let networks: Networks = named.iter().map(|text| text.parse().unwrap()).collect();
        for inside in [
            "10.255.0.1",
            "192.0.2.1",
            "::ffff:10.1.2.3",
            "2001:db8:ffff::1",
            "::1",
        ] {
            assert!(networks.contains(address(inside)), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.2", "2001:db9::", "::2"] {
            assert!(!networks.contains(address(outside)), "{outside}");
        }
        assert!(Networks::loopback().contains(address("127.255.1.2")));
        assert!(!Networks::default().contains(address("127.0.0.1")));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let listed: Networks = "10.0.0.0/8, 192.0.2.1".parse().unwrap();
        assert_eq!(listed.to_string(), "10.0.0.0/8,192.0.2.1/32");
        let none: Networks = "none".parse().unwrap();
        assert!(none.to_string() == "none" && !none.contains(address("127.0.0.1")));
        assert!("10.0.0.0/8,".parse::<Networks>().is_err());
        for text in [
            "",
            "10",
            "10.0.0.0/33",
            "example.com",
            "10.0.0.0/8/8",
            "::/129",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NoNetwork), "{text}");
        }
    }
}
