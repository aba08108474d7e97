//! Data transferred by the sessions of a trial, compared with the disk's own rate.

use schemars::JsonSchema;
use serde::Serialize;

/// What the sessions of a trial carried. Sessions in which a request failed count nowhere here.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Transfer {
    /// Where to, or where from.
    pub place: String,
    /// Bytes of a session.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Sessions.
    pub count: u64,
    /// How long they took together.
    pub total_ms: Option<f64>,
    /// The shortest.
    pub min_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// Their mean.
    pub mean_ms: Option<f64>,
    /// Megabytes (10⁶ bytes) per second.
    pub mb_per_s: Option<f64>,
    /// KiB per ms, of the mean cut to whole ms, which some reports call MB/s.
    pub kib_per_whole_ms: Option<f64>,
    /// What the disk alone does with the same chunks, MB/s; `None` where it wasn't measured.
    pub raw_mb_per_s: Option<f64>,
    /// Ours as a part of that.
    pub of_raw: Option<f64>,
}
