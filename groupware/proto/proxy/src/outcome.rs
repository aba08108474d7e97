//! The result of parsing a header.

use std::net::IpAddr;

/// Largest accepted header. Version 1 has at most 107 bytes; version 2 may carry details of a
/// client's certificate, which are not used here.
pub const MAX_BYTES: usize = 4096;

/// The client of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxiedClient {
    /// A client at this address.
    Client(IpAddr),
    /// The proxy itself, such as for a health check, or a client with an unsupported kind of
    /// address.
    Nobody,
}

/// A partial or whole header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// The start of a header: more bytes are needed.
    Partial,
    /// A whole header.
    Whole {
        /// Its length; the bytes behind it are the client's.
        bytes: usize,
        /// Its content.
        client: ProxiedClient,
    },
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHeader {
    /// The connection begins with something else.
    #[error("no PROXY header comes first")]
    Missing,
    /// It begins like a header, but is not valid.
    #[error("the PROXY header can't be read")]
    Malformed,
    /// The announced length exceeds the bound.
    #[error("the PROXY header is larger than {MAX_BYTES} bytes")]
    Large,
}
