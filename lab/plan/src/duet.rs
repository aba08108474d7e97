//! Trials that run two at a time, each on one side of the machine.

use serde::{Deserialize, Serialize};

/// The side of a duet's trial, and its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duet {
    /// The trial of the plan that runs at the same time.
    pub partner: u32,
    /// Its half of the machine.
    pub side: Side,
}

/// The fewest blocks with which a duet can have a verdict.
pub const MIN_DUET_BLOCKS: usize = lab_stats::duet::LEAST_BLOCKS;

/// How the two variants of a study run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// True if `duet: auto` decided, false if the study sets it.
    pub auto: bool,
    /// The reason, as the end of a sentence that states how they run.
    pub why: String,
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
