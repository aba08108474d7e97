//! What listens on the wire, for who wants to see every byte of a few requests.

use crate::time::Nanos;
use crate::url::BaseUrl;

/// Hears what goes over a client's connections, TLS already taken off. It hears more than exchanges
/// tell: a request that is sent again on a fresh connection goes out twice.
pub trait Tap {
    /// A connection is open; the attempt began at `began`.
    fn connected(&self, server: &BaseUrl, began: Nanos, at: Nanos);

    /// A message goes out.
    fn sent(&self, server: &BaseUrl, at: Nanos, message: &[u8]);

    /// A part of its answer came in.
    fn received(&self, at: Nanos, bytes: &[u8]);
}
