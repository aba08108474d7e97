//! The machine that a run is on: what a study changes of it and what is put back, which cores are whose,
//! and the processes that must not outlive their trial. Knows trials only as a plan has them.
//!
//! # Invariants
//! - The old value of a changed kernel setting is on disk before the change. It is put back after each
//!   trial, and by the next run where this one was killed. What the kernel itself forgets with whoever asked for it
//!   is in no journal.
//! - A file system that is made for a trial goes with it, and where a run was killed, with the next one.
//! - What a trial started is found again, whatever it does to get away, and ends with it.

mod changes;
pub mod clock;
pub mod cores;
pub mod disk;
mod error;
pub mod held;
pub mod journal;
pub mod kernel;
mod latency;
pub mod machine;
pub mod sysctl;

pub use error::HostError;
