//! The caller of an operation, and its resources: the caller with its permits and slots, background threads, a rate
//! limiter, a clock, and a source of random bits. The executor is tokio's. This crate knows no store and no protocol.

pub mod blocking;
mod caller;
mod client;
pub mod clock;
mod limit;
pub mod random;

pub use caller::{Caller, Forwarding, Permits};
pub use client::Client;
pub use limit::Limiter;
