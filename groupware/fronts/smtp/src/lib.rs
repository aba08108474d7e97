//! Mail over SMTP: one listener takes in mail for local users, the other takes mail from local
//! users who sign in. Neither passes mail on to other servers.
//!
//! One thread serves all sessions; with a database, 16 threads do. Sessions mostly wait, and all writes go through the
//! store's writer.

mod session;
mod shared;
mod stop;
mod worker;

pub use shared::{Role, Smtp, SmtpLimits};
pub use worker::{THREADS, start};
