//! Data transferred by the sessions of a trial, compared with the disk's own rate.

use schemars::JsonSchema;
use serde::Serialize;

/// The data transfers of a trial's sessions. Sessions with a failed request are excluded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Transfer {
    /// The destination or the source of the data.
    pub place: String,
    /// Bytes per session.
    pub bytes: u64,
    /// Bytes per chunk.
    pub chunk_bytes: u64,
    /// The number of sessions.
    pub count: u64,
    /// The total time of all sessions, in ms.
    pub total_ms: Option<f64>,
    /// The time of the shortest session, in ms.
    pub min_ms: Option<f64>,
    /// The time of the longest session, in ms.
    pub max_ms: Option<f64>,
    /// The mean time of a session, in ms.
    pub mean_ms: Option<f64>,
    /// The rate in megabytes (10⁶ bytes) per second.
    pub mb_per_s: Option<f64>,
    /// The rate in KiB per ms, with the mean truncated to whole ms; some reports call it MB/s.
    pub kib_per_whole_ms: Option<f64>,
    /// The rate of the disk alone with the same chunks, in MB/s; `null` if not measured.
    pub raw_mb_per_s: Option<f64>,
    /// The measured rate as a part of the disk's own.
    pub of_raw: Option<f64>,
}
