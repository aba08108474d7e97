//! Abort conditions of a trial: they protect the system, and judge nothing.

use serde::{Deserialize, Serialize};

use crate::threshold::Threshold;

/// A limit that ends a trial once it has been exceeded for long enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Abort {
    /// The abort condition: it is written as a threshold, and the trial ends while it *holds*. It covers all steps
    /// together.
    pub when: Threshold,
    /// The uninterrupted duration, at the plan's speed.
    pub for_ms: u64,
}
