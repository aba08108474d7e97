//! Checks whether a message has the sender it claims: SPF, DKIM, and DMARC by `mail-auth`, with DNS queries.
//!
//! The cost is bounded: signatures that are checked, fields that they may name, DNS queries (`QUESTIONS`), and the
//! total time. Checks that take longer are reported as such.
//! *Absent: mailboxes, clients' sockets, and what is done about a message.*
//!
//! Without the feature `dns`, for small programs, there are no checks: [`MailAuth::new`] fails.

#[cfg(not(feature = "dns"))]
mod absent;
#[cfg(feature = "dns")]
mod asked;
#[cfg(feature = "dns")]
mod budget;
mod error;
#[cfg(feature = "dns")]
mod message;
#[cfg(feature = "dns")]
mod resolver;
mod transport;

#[cfg(not(feature = "dns"))]
pub use absent::{BodyHashes, MailAuth, body_hashes};
#[cfg(feature = "dns")]
pub use asked::{MailAuth, QUESTIONS};
pub use error::ResolverError;
#[cfg(feature = "dns")]
pub use message::{BodyHashes, body_hashes};
pub use transport::Transport;

/// True if the program was built with the checks.
pub const IS_THERE: bool = cfg!(feature = "dns");
