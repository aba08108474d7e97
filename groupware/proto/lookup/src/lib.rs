//! The XML protocol of the older lookup services: SOAP 1.1 with NM-WG messages, parsed and written.
//! Bytes in, messages out, and back: no store, no leases, no sockets.

mod canonical;
pub mod limits;
mod message;
mod names;
mod reader;
mod reply;
mod xquery;

pub use canonical::canonical;
pub use message::{Data, Kind, Message, Metadata};
pub use names::{NMWG, XQUERY_EVENT};
pub use reader::{Raw, XmlError};
pub use reply::{LsError, Outcome, failure, fault, response};
pub use xquery::{Wanted, parse_query};
