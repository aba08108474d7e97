//! What listens on the wire, for who wants to see every byte of a few requests.

use crate::time::Nanos;
use crate::version::Version;
use lab_units::BaseUrl;

/// Hears what goes over a client's connections, TLS already taken off. It hears more than exchanges
/// tell: a request that is sent again on a fresh connection goes out twice. What goes over HTTP/2 it hears
/// as HTTP/1.1 would write it.
pub trait Tap {
    /// A connection is open; the attempt began at `began`.
    fn connected(&self, server: &BaseUrl, began: Nanos, at: Nanos);

    /// A message goes out, on a connection of this version.
    fn sent(&self, server: &BaseUrl, version: Version, at: Nanos, message: &[u8]);

    /// A part of its answer came in.
    fn received(&self, at: Nanos, bytes: &[u8]);

    /// In a protocol other than HTTP, one side says this, as a person reads it.
    fn spoke(&self, at: Nanos, side: Side, text: &str);
}

/// One of two that talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The virtual user.
    User,
    /// The server.
    Server,
}
