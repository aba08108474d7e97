//! What comes of reading a header.

use std::net::IpAddr;

/// Largest header that is read. Version 1 has at most 107 bytes; version 2 may carry what a proxy knows
/// of a client's certificate, which is not used here.
pub const MAX_BYTES: usize = 4096;

/// For whom a connection was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// For a client at this address.
    Client(IpAddr),
    /// For the proxy itself, such as to see whether the server lives, or for somebody whose address is of
    /// a kind that isn't known here.
    Nobody,
}

/// How much of a header there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Its start: more has to come.
    Partial,
    /// All of it.
    Whole {
        /// Its length; what comes behind is the client's.
        bytes: usize,
        /// What it says.
        told: Told,
    },
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHeader {
    /// The connection begins with something else.
    #[error("no PROXY header comes first")]
    Missing,
    /// It begins as a header does, and doesn't go on so.
    #[error("the PROXY header can't be read")]
    Malformed,
    /// It announces more bytes than are read.
    #[error("the PROXY header is larger than {MAX_BYTES} bytes")]
    Large,
}
