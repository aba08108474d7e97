//! What users share: counters, by their names. It knows no workers and no threads.

use serde::{Deserialize, Serialize};

/// Something that all users of a generator share, whatever population they are of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedState {
    /// As templates and steps name it; unique in its workload. Populations whose workloads name it alike share it.
    pub name: String,
    /// What it is.
    pub kind: SharedKind,
}

/// What users share.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// Numbers, each of which one request gets: `next('order_no')`.
    Counter {
        /// The least of them.
        from: u64,
    },
}
