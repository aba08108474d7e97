//! On whose behalf something is done, and what it is done with: the caller, whose permit and turns it takes, threads
//! apart from the event loops, one limiter, one clock, one source of random bits. The executor is tokio's. It
//! names no store and no protocol.

pub mod aside;
mod caller;
mod client;
pub mod clock;
mod limit;
pub mod random;

pub use caller::{Caller, Permits, Via};
pub use client::Client;
pub use limit::Limiter;
