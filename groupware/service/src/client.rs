//! Where something comes from, as limits per client count it.

use std::net::{IpAddr, Ipv6Addr};

/// Who something comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// An address, or the network of one where a client has a whole network for itself.
    pub address: IpAddr,
    /// The address is a proxy's, which many clients share.
    pub is_shared: bool,
}

impl Client {
    /// The client at an address that no proxy handed on.
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: network(address.to_canonical()),
            is_shared: false,
        }
    }
}

/// Everybody has 2^64 addresses of IPv6 to choose from.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::from(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let check = |address: &str, expected: &str| {
            let client = Client::at(address.parse().unwrap());
            assert_eq!(client.address, expected.parse::<IpAddr>().unwrap());
        };
        check("192.0.2.1", "192.0.2.1");
        check("::ffff:192.0.2.1", "192.0.2.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
    }
}
