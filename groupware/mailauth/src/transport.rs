//! The transport of a message, as input of its checks.

use std::net::IpAddr;

/// The transport of a message.
#[derive(Debug, Clone, Copy)]
pub struct Transport<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The name that the client gave in `EHLO` or `HELO`.
    pub helo: &'a str,
    /// The envelope's sender; empty for a delivery status notification.
    pub sender: &'a str,
}
