//! What is counted of an object store.

/// What is asked of one, as [`Stats::asked`] counts it.
pub const OPERATIONS: [&str; 5] = ["put", "get", "head", "delete", "list"];

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests, retries not counted, by [`OPERATIONS`].
    pub asked: [u64; OPERATIONS.len()],
    /// Those that failed, by the same.
    pub failed: [u64; OPERATIONS.len()],
    /// Time that they took, in microseconds, by the same.
    pub took_us: [u64; OPERATIONS.len()],
    /// Bytes that were put.
    pub bytes_in: u64,
    /// Bytes that were read.
    pub bytes_out: u64,
    /// Whether it was away when it was last asked.
    pub is_away: bool,
}
