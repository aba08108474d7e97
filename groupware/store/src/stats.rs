//! Counters of the writer, for metrics and benchmarks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of buckets of group sizes: 1, 2–3, 4–7, … and from 2048 up.
pub const GROUP_BUCKETS: usize = 12;
/// The upper bounds of the buckets of transaction times, in microseconds.
pub const COMMIT_BOUNDS_US: [u64; 11] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 50_000, 250_000, 1_000_000, 5_000_000,
];
/// The number of buckets of transaction times.
pub const COMMIT_BUCKETS: usize = COMMIT_BOUNDS_US.len() + 1;

/// Counters of the writer since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Batches that took effect.
    pub commits: u64,
    /// Batches whose assert failed.
    pub conflicts: u64,
    /// Batches that failed for lack of room or because of an engine error.
    pub failures: u64,
    /// Transactions, each made durable by one sync.
    pub groups: u64,
    /// Groups by their number of batches: bucket i counts those with 2^i up to 2^(i+1) − 1.
    pub group_sizes: [u64; GROUP_BUCKETS],
    /// Transactions by their duration, sync included: bucket i counts those up to bound i of [`COMMIT_BOUNDS_US`], the
    /// last bucket the rest.
    pub group_times: [u64; COMMIT_BUCKETS],
    /// The total duration of transactions, in microseconds.
    pub group_us: u64,
    /// Batches that wait for the writer now.
    pub waiting: u64,
    /// Bytes of committed changes that are held in memory until they reach their final place.
    pub pending_bytes: u64,
    /// Reads by [`Store::look`](crate::Store::look), if there is a cache.
    pub looks: u64,
    /// Those reads that the cache served entirely.
    pub looks_remembered: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    conflicts: AtomicU64,
    failures: AtomicU64,
    groups: AtomicU64,
    group_sizes: [AtomicU64; GROUP_BUCKETS],
    group_times: [AtomicU64; COMMIT_BUCKETS],
    group_us: AtomicU64,
}

impl Counters {
    pub(crate) fn group(&self, batches: usize) {
        let bucket = (batches.max(1).ilog2() as usize).min(GROUP_BUCKETS - 1);
        self.groups.fetch_add(1, Relaxed);
        self.group_sizes[bucket].fetch_add(1, Relaxed);
    }

    /// Records the duration of a transaction.
    pub(crate) fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = COMMIT_BOUNDS_US.partition_point(|bound| *bound < us);
        self.group_times[bucket].fetch_add(1, Relaxed);
        self.group_us.fetch_add(us, Relaxed);
    }

    pub(crate) fn outcomes(&self, commits: u64, conflicts: u64, failures: u64) {
        self.commits.fetch_add(commits, Relaxed);
        self.conflicts.fetch_add(conflicts, Relaxed);
        self.failures.fetch_add(failures, Relaxed);
    }

    /// Returns the counters, with `waiting` batches in the queue. Looks are counted elsewhere.
    pub(crate) fn read(&self, waiting: u64) -> StoreStats {
        StoreStats {
            commits: self.commits.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            failures: self.failures.load(Relaxed),
            groups: self.groups.load(Relaxed),
            group_sizes: std::array::from_fn(|i| self.group_sizes[i].load(Relaxed)),
            group_times: std::array::from_fn(|i| self.group_times[i].load(Relaxed)),
            group_us: self.group_us.load(Relaxed),
            waiting,
            ..StoreStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_sizes_fall_into_powers_of_two() {
        let counters = Counters::default();
        for batches in [1, 2, 3, 4, 2047, 2048, 100_000] {
            counters.group(batches);
        }
        let stats = counters.read(0);
        assert_eq!(stats.groups, 7);
        assert_eq!(stats.group_sizes[..3], [1, 2, 1]);
        assert_eq!(stats.group_sizes[GROUP_BUCKETS - 2..], [1, 2]);
    }
}
