//! Mail over SMTP: one listener receives mail for local users, the other accepts mail from local
//! users who sign in. Neither relays mail to other servers.
//!
//! One thread serves all sessions; with a database, 16 threads do. Sessions mostly wait, and the
//! store's writer does all writes.

mod session;
mod shared;
mod stop;
mod worker;

pub use shared::{Role, Smtp, SmtpLimits};
pub use worker::{THREADS, start};
