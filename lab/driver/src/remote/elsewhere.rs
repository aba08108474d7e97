//! Generators on other machines, as a run has them: opened for each trial, and asked what was seen.

use std::fmt::Debug;

use super::peer::Peer;
use crate::error::DriverError;

/// Generators on other machines, for all trials of a run.
pub trait Elsewhere: Debug + Send + Sync {
    /// Those of the next trial: each waits for its part.
    ///
    /// # Errors
    /// When one is lost, or refuses.
    fn open(&self) -> Result<Vec<Peer>, DriverError>;

    /// What was seen of them since the last trial was opened.
    fn seen(&self) -> Vec<Seen>;
}

/// What is seen of a generator on another machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// What its owner calls it.
    pub name: String,
    /// Its machine's name.
    pub host: String,
    /// Its program's version.
    pub version: String,
    /// Drawn by its machine's kernel at each start.
    pub boot_id: String,
    /// Its part of the load, against the others' weights.
    pub weight: u32,
    /// How many workers it has.
    pub workers: u32,
    /// What its clock was known to be off, as time went on: one when another became the best known.
    pub offsets: Vec<SeenOffset>,
    /// CPU time of each worker so far and its wait for a core, ns; the wait where the kernel tells.
    pub times: Vec<(u64, Option<u64>)>,
    /// Its resident memory.
    pub rss_kb: u64,
}

/// What a generator's clock was known to be off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenOffset {
    /// When, in ns of this machine's monotonic clock.
    pub at: u64,
    /// How much more its clock read, ns.
    pub offset: i64,
    /// The offset was off by no more, ns.
    pub bound: u64,
}
