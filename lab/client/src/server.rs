//! Where requests go, and what they may take. Data only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::resolve::Resolve;
use crate::sources::Sources;
use crate::tls::Tls;
use crate::version::Protocol;
use lab_units::BaseUrl;

/// Where requests go, and within which bounds.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its scheme, host, and port.
    pub base: BaseUrl,
    /// All that its name stands for.
    pub addresses: Arc<[SocketAddr]>,
    /// How it is trusted if it is `https`, and any other that the workload names.
    pub tls: Tls,
    /// Where other hosts are that the workload names.
    pub resolve: Resolve,
    /// Addresses that connections come from.
    pub sources: Sources,
    /// Which version of HTTP it is asked to speak, and on whose connections. `tls` must offer the same.
    pub protocol: Protocol,
    /// Bounds.
    pub limits: Limits,
}

/// Bounds on what a request may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the send to the last byte of the answer.
    pub request_timeout: Duration,
    /// For a new connection, TLS included. The request timeout goes on meanwhile.
    pub connect_timeout: Duration,
    /// Largest response body.
    pub max_response_bytes: u64,
    /// Largest response head, and largest trailer section.
    pub max_header_bytes: usize,
    /// A connection idle for longer is closed before its next use.
    pub keep_alive_idle: Duration,
}
