//! The machine of a run: a study's changes to it and their restoration, the assignment of cores, and the processes that
//! must not outlive their trial. It knows trials only from plans.
//!
//! # Invariants
//! - The old value of a changed kernel setting is on disk before the change. It is restored after each trial, and by
//!   the next run if this one was killed. Settings that the kernel drops with their process are in no journal.
//! - A file system that is made for a trial is removed with it, or by the next run if this one was killed.
//! - Every process that a trial started is found, however it tries to escape, and ends with the trial.

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
