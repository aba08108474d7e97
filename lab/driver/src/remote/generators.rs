//! Remote generators of a run: opened for each trial, and observed.

use std::fmt::Debug;

use super::peer::Peer;
use crate::error::DriverError;

/// Remote generators, for all trials of a run.
pub trait RemoteGenerators: Debug + Send + Sync {
    /// Opens those of the next trial: each waits for its part.
    ///
    /// # Errors
    /// When a generator is lost, or refuses.
    fn open(&self) -> Result<Vec<Peer>, DriverError>;

    /// Returns the observations since the last trial was opened.
    fn seen(&self) -> Vec<Seen>;
}

/// The observations of a remote generator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The name that its owner gave it.
    pub name: String,
    /// Its machine's name.
    pub host: String,
    /// Its program's version.
    pub version: String,
    /// A random id that the machine's kernel sets at each start.
    pub boot_id: String,
    /// Its part of the load, relative to the others' weights.
    pub weight: u32,
    /// The number of workers.
    pub workers: u32,
    /// The known clock offsets over time: one whenever another became the best known.
    pub offsets: Vec<SeenOffset>,
    /// CPU time of each worker so far and its wait for a core, ns; the wait if the kernel reports it.
    pub times: Vec<(u64, Option<u64>)>,
    /// Its resident memory.
    pub rss_kb: u64,
}

/// The known clock offset of a generator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenOffset {
    /// The time, in ns of this machine's monotonic clock.
    pub at: u64,
    /// How far its clock is ahead, ns.
    pub offset: i64,
    /// The maximum error of the offset, ns.
    pub bound: u64,
}
