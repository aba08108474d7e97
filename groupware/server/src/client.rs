//! Where a request comes from, as far as that can be told behind proxies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderMap;
use http::header::FORWARDED;

use crate::turn;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Who a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    /// An address, or the network of one where a client has a whole network for itself.
    pub(crate) address: IpAddr,
    /// The address is a proxy's, which many clients share.
    pub(crate) is_shared: bool,
}

impl Client {
    /// The client of the request that is worked on, which has these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let nowhere = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        Self::behind(turn::peer().unwrap_or(nowhere), headers)
    }

    /// The client at the other end of a connection that no proxy handed on.
    pub(crate) fn at(peer: IpAddr) -> Self {
        Self {
            address: network(peer.to_canonical()),
            is_shared: false,
        }
    }

    /// Only a proxy on this machine is believed when it says for whom it asks: others could say
    /// whatever suits them. The last address is the one that the proxy itself has seen.
    fn behind(peer: IpAddr, headers: &HeaderMap) -> Self {
        let peer = peer.to_canonical();
        if !is_forwarded(headers) {
            return Self {
                address: network(peer),
                is_shared: false,
            };
        }
        let told = headers.get_all(X_FORWARDED_FOR).iter().next_back();
        let told = told
            .and_then(|list| list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok())
            .filter(|_: &IpAddr| peer.is_loopback());
        Self {
            address: network(told.unwrap_or(peer).to_canonical()),
            is_shared: told.is_none(),
        }
    }
}

/// Whether a proxy, or somebody who plays one, handed the request on.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED)
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
    fn only_proxies_on_this_machine_are_believed() {
        let check = |peer: &str, header: Option<(&'static str, &str)>, address: &str, is_shared| {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = header {
                headers.append(name, value.parse().unwrap());
            }
            let found = Client::behind(peer.parse().unwrap(), &headers);
            let address = address.parse().unwrap();
            assert_eq!(found, Client { address, is_shared }, "{peer} {header:?}");
        };
        check("192.0.2.1", None, "192.0.2.1", false);
        check("::ffff:192.0.2.1", None, "192.0.2.1", false);
        check("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::", false);
        let told = Some(("x-forwarded-for", "203.0.113.5, 198.51.100.7"));
        check("127.0.0.1", told, "198.51.100.7", false);
        check("::1", told, "198.51.100.7", false);
        check("192.0.2.1", told, "192.0.2.1", true);
        check(
            "127.0.0.1",
            Some(("x-forwarded-for", "me")),
            "127.0.0.1",
            true,
        );
        check(
            "127.0.0.1",
            Some(("forwarded", "for=_x")),
            "127.0.0.1",
            true,
        );
    }
}
