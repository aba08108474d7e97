//! Where something comes from, as limits per client count it.

use std::net::IpAddr;

use groupware_net::client_of;

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
            address: client_of(address),
            is_shared: false,
        }
    }
}
