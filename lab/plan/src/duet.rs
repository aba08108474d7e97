//! Trials that run two at a time, each on one side of the machine.

use serde::{Deserialize, Serialize};

/// Where a trial of a duet runs, and beside which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duet {
    /// The trial of the plan that runs at the same time.
    pub partner: u32,
    /// Its half of the machine.
    pub side: Side,
}

/// A half of the machine's cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The first half. Of the two trials, this one comes first in the plan.
    Left,
    /// The second half.
    Right,
}
