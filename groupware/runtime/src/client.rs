//! The origin of a request, as counted by the limits per client.

use std::net::IpAddr;

use groupware_net::client_of;

/// The client that a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// The client's address, or its network where a client has a whole network for itself.
    pub address: IpAddr,
    /// True if the address is a proxy's, which many clients share.
    pub is_shared: bool,
}

impl Client {
    /// Returns the client at an address that isn't a proxy's.
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: client_of(address),
            is_shared: false,
        }
    }
}
