//! Counters of an object store.

/// The kinds of requests, in the order of [`Stats::asked`].
pub const OPERATIONS: [&str; 5] = ["put", "get", "head", "delete", "list"];

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of requests, retries not counted, by [`OPERATIONS`].
    pub asked: [u64; OPERATIONS.len()],
    /// The number of failed requests, likewise.
    pub failed: [u64; OPERATIONS.len()],
    /// The total duration of requests, in microseconds, likewise.
    pub took_us: [u64; OPERATIONS.len()],
    /// Bytes that were put.
    pub bytes_in: u64,
    /// Bytes that were read.
    pub bytes_out: u64,
    /// True if the store was unreachable at the last request.
    pub is_away: bool,
}
