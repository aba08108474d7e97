//! What ends a trial before its time: it protects the system, and judges nothing.

use serde::{Deserialize, Serialize};

use crate::threshold::Threshold;

/// A limit beyond which a trial is ended, once it has been beyond it for long enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Abort {
    /// What must not be: it is written as a threshold, and the trial ends while it *holds*. It is about all
    /// steps together.
    pub when: Threshold,
    /// For how long without a break, at the plan's speed.
    pub for_ms: u64,
}
