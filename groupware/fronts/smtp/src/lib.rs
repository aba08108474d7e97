//! Mail over SMTP: one listener takes in mail for local users, the other takes mail from local
//! users who sign in. Neither passes mail on to other servers.
//!
//! All conversations share one thread, or sixteen with a database: most of their time is waiting, and what they store goes
//! through the same writer as everything else.

mod session;
mod shared;
mod stop;
mod worker;

pub use shared::{Role, Smtp, SmtpLimits};
pub use worker::{THREADS, start};
