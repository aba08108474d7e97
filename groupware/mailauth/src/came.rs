//! How a message came, for whoever finds out about it.

use std::net::IpAddr;

/// How a message came.
#[derive(Debug, Clone, Copy)]
pub struct Came<'a> {
    /// From which address.
    pub client: IpAddr,
    /// What the client called itself.
    pub helo: &'a str,
    /// The envelope's sender; empty for a message about another that could not be delivered.
    pub sender: &'a str,
}
