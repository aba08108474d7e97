//! The target of requests, and its limits. Data only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::resolve::Resolve;
use crate::tls::Tls;
use lab_units::BaseUrl;
use lab_units::Protocol;
use lab_units::Sources;

/// The target of requests, and its limits.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its scheme, host, and port.
    pub base: BaseUrl,
    /// All addresses of its name.
    pub addresses: Arc<[SocketAddr]>,
    /// The TLS settings for the server if it is `https`, and for any other server that the workload names.
    pub tls: Tls,
    /// Addresses of other hosts that the workload names.
    pub resolve: Resolve,
    /// Local addresses of connections.
    pub sources: Sources,
    /// The HTTP version to request, and the sharing of connections. `tls` must offer the same version.
    pub protocol: Protocol,
    /// The limits of requests.
    pub limits: Limits,
}

/// Limits of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the send to the last byte of the response.
    pub request_timeout: Duration,
    /// For a new connection, TLS included. The request timeout runs meanwhile.
    pub connect_timeout: Duration,
    /// The maximum size of a response body.
    pub max_response_bytes: u64,
    /// The maximum size of a response head, and of a trailer section.
    pub max_header_bytes: usize,
    /// A connection idle for longer is closed before its next use.
    pub keep_alive_idle: Duration,
}
