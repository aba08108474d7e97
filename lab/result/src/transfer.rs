//! Transfers of sessions in `result.json`, beside the same transfers by the disk alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::figures::Estimate;

/// What the sessions of a trial carried, over the valid trials of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferSummary {
    /// Where to, or where from.
    pub place: String,
    /// Bytes of a session.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Sessions of a trial, mean over trials.
    pub count: f64,
    /// How long those of a trial took together.
    pub total_ms: Option<Estimate>,
    /// The shortest of all.
    pub min_ms: Option<f64>,
    /// The longest of all.
    pub max_ms: Option<f64>,
    /// Mean of the trials' means.
    pub mean_ms: Option<Estimate>,
    /// Megabytes (10⁶ bytes) per second.
    pub mb_per_s: Option<Estimate>,
    /// KiB per ms, of `mean_ms` cut to whole ms.
    pub kib_per_whole_ms: Option<f64>,
    /// What the disk alone does, MB/s.
    pub raw_mb_per_s: Option<Estimate>,
    /// Ours as a part of that, mean over trials.
    pub of_raw: Option<Estimate>,
}

/// A published row of the same figures, as published.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedTransfer {
    /// The columns before the figures with their values: what was set.
    pub label: String,
    /// `count`.
    pub count: String,
    /// `total_ms`.
    pub total_ms: String,
    /// `minimum_ms`.
    pub minimum_ms: String,
    /// `maximum_ms`.
    pub maximum_ms: String,
    /// `average_ms`.
    pub average_ms: String,
    /// `mb_per_s`, of the average cut to whole ms.
    pub mb_per_s: String,
}
