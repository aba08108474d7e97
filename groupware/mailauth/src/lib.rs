//! Whether a message comes from whom it says: SPF, DKIM, and DMARC by `mail-auth`, which asks the DNS.
//!
//! What it costs is bounded: signatures that are looked at, fields that they may name, questions to the DNS
//! (`QUESTIONS`), and the time of all of it. What is not found out in time is told as such.
//! *Absent: mailboxes, clients' sockets, and what is done about a message.*
//!
//! Without the feature `dns`, for programs that are to be small, nothing is asked: [`MailAuth::new`] says so.

#[cfg(not(feature = "dns"))]
mod absent;
#[cfg(feature = "dns")]
mod asked;
#[cfg(feature = "dns")]
mod budget;
mod came;
mod error;
#[cfg(feature = "dns")]
mod message;
#[cfg(feature = "dns")]
mod resolver;

#[cfg(not(feature = "dns"))]
pub use absent::{BodyHashes, MailAuth, body_hashes};
#[cfg(feature = "dns")]
pub use asked::{MailAuth, QUESTIONS};
pub use came::Came;
pub use error::ResolverError;
#[cfg(feature = "dns")]
pub use message::{BodyHashes, body_hashes};

/// Whether anything can be asked at all.
pub const IS_THERE: bool = cfg!(feature = "dns");
