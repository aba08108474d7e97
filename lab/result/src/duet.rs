//! The results of trials that ran at the same time.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Measure;
use crate::sample::Fate;

/// The duets of a run: pairs of trials that ran at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Duet {
    /// The measure of the figures in `blocks`: the first deciding measure that has windows.
    pub metric: Measure,
    /// The number of `blocks` with a disturbance that would make their trials invalid outside a duet. If it is more
    /// than one in ten, equality of times is not claimed.
    pub disturbed: usize,
    /// Whether both trials of a pair could use the same cores; otherwise each had half of them.
    pub together: bool,
    /// Whether both systems were on another machine than their generators.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// The number of `blocks` in which both trials together used most of the CPU of these cores. A system that needs
    /// more then takes it from the other. If it is more than one in ten, equality of times is not claimed.
    pub crowded: usize,
    /// The number of `blocks` in which the generators kept their cores because they could not be moved.
    #[serde(skip_serializing_if = "is_none")]
    pub stayed: usize,
    /// The pairs in which both trials are valid, in the order in which they ran.
    pub blocks: Vec<DuetBlock>,
    /// The planned pairs that are excluded on both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The difference between the two sides, for each deciding measure.
    pub sides: Vec<SideEffect>,
}

/// A planned pair that is excluded on both sides of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The block, from 0.
    pub block: u32,
    /// The cell of its left trial, in words.
    pub label: String,
    /// The result of the trial that is the reason.
    pub fate: Fate,
    /// The trial that is the reason, and what is wrong with it.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A pair of trials that ran at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DuetBlock {
    /// The block, from 0.
    pub block: u32,
    /// The trial of the first variant.
    pub a: u32,
    /// The trial of the second variant.
    pub b: u32,
    /// Both cells in words.
    #[serde(skip)]
    pub labels: (String, String),
    /// Whether *a* had the left place.
    pub a_is_left: bool,
    /// The delay of the ramp of *b* after the ramp of *a*, in ms.
    pub b_later_ms: Option<f64>,
    /// The number of windows in which both trials have a figure.
    pub windows: usize,
    /// The number of windows in which only one trial has a figure.
    pub unpaired: usize,
    /// The geometric mean of *b* ÷ *a* over the paired windows; of a rate, 1 and the difference.
    pub ratio: Option<f64>,
}

/// The difference between the two halves of the machine; no comparison includes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SideEffect {
    /// The measure.
    pub metric: Measure,
    /// The ratio left ÷ right; of a rate, 1 and the difference.
    pub ratio: f64,
}
