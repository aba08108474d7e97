//! An observer of the wire, to show every byte of a few requests.

use crate::time::Nanos;
use lab_units::BaseUrl;
use lab_units::Version;

/// Receives all traffic of a client's connections, after TLS decryption. It sees more than exchanges report: a request
/// sent again on a fresh connection appears twice. HTTP/2 traffic is shown as HTTP/1.1 would write it.
pub trait Tap {
    /// A connection is open; the attempt began at `began`.
    fn connected(&self, server: &BaseUrl, began: Nanos, at: Nanos);

    /// A message is sent, on a connection of this version.
    fn sent(&self, server: &BaseUrl, version: Version, at: Nanos, message: &[u8]);

    /// A part of the response was received.
    fn received(&self, at: Nanos, bytes: &[u8]);

    /// One side sends this, as readable text, in a protocol other than HTTP.
    fn spoke(&self, at: Nanos, side: Side, text: &str);
}

/// One side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The virtual user.
    User,
    /// The server.
    Server,
}
