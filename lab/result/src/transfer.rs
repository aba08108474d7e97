//! Transfers of sessions in `result.json`, beside the same transfers by the disk alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::figures::Estimate;

/// The data transfers of sessions, over the valid trials of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferSummary {
    /// The destination or the source of the data.
    pub place: String,
    /// Bytes per session.
    pub bytes: u64,
    /// Bytes per chunk.
    pub chunk_bytes: u64,
    /// Sessions per trial, the mean over trials.
    pub count: f64,
    /// The total time of a trial's sessions, in ms.
    pub total_ms: Option<Estimate>,
    /// The time of the shortest session of all trials, in ms.
    pub min_ms: Option<f64>,
    /// The time of the longest session of all trials, in ms.
    pub max_ms: Option<f64>,
    /// The mean of the trials' mean session times, in ms.
    pub mean_ms: Option<Estimate>,
    /// The rate in megabytes (10⁶ bytes) per second.
    pub mb_per_s: Option<Estimate>,
    /// The rate in KiB per ms, with `mean_ms` truncated to whole ms.
    pub kib_per_whole_ms: Option<f64>,
    /// The rate of the disk alone, in MB/s.
    pub raw_mb_per_s: Option<Estimate>,
    /// The measured rate as a part of the disk's own, the mean over trials.
    pub of_raw: Option<Estimate>,
}

/// A published row of the same figures, as published.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedTransfer {
    /// The settings: the columns before the figures, with their values.
    pub label: String,
    /// The column `count`.
    pub count: String,
    /// The column `total_ms`.
    pub total_ms: String,
    /// The column `minimum_ms`.
    pub minimum_ms: String,
    /// The column `maximum_ms`.
    pub maximum_ms: String,
    /// The column `average_ms`.
    pub average_ms: String,
    /// The column `mb_per_s`, from the average truncated to whole ms.
    pub mb_per_s: String,
}
