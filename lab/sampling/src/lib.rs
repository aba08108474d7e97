//! Samples the call stacks of the processes of a system, by the performance events of the Linux kernel, and names them.
//!
//! Events are on whole cores, and samples are sorted by control group and process: an event of a group would start and
//! stop a timer at each switch. The time between samples is random, to avoid a beat with requests. No other
//! crate of the lab uses `perf_event_open`.
#![cfg(target_os = "linux")]

mod assemble;
mod blocks;
mod cores;
mod cost;
mod elf;
mod error;
mod events;
mod files;
mod kernel;
mod names;
mod perfmap;
mod sampler;
mod schedule;
mod spaces;
mod stacks;
mod threads;
mod unwind;
mod waits;
mod walk;

pub use error::Refused;
pub use sampler::{Recorded, Sampler, Spec};
pub use waits::RecordedWaits;

/// Parsers of files that others wrote, for fuzzing.
pub mod parsers {
    pub use crate::elf::Elf;
    pub use crate::perfmap::parse as perf_map;
}
