//! The results of trials that ran at the same time.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::Measure;
use crate::sample::Fate;

/// The duets of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Duet {
    /// The measure that `blocks` tell of: the first that decides and has windows.
    pub metric: Measure,
    /// How many of `blocks` were disturbed so much that their trials would be no measurements by themselves.
    /// Where that is more than one in ten, equality of times is not claimed.
    pub disturbed: usize,
    /// Whether both trials of a pair could use the same cores; otherwise each had its half.
    pub together: bool,
    /// Whether both systems were on another machine than their generators.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// In how many of `blocks` both together took most of the CPU of these cores: then one that needs more
    /// takes it from the other. Where that is more than one in ten, equality of times is not claimed.
    pub crowded: usize,
    /// In how many of `blocks` the generators kept their places on these cores: they could not be moved.
    #[serde(skip_serializing_if = "is_none")]
    pub stayed: usize,
    /// Pairs of trials that are both measurements, in the order they ran.
    pub blocks: Vec<DuetBlock>,
    /// Pairs of the plan that count on neither side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// By measure that decides, what the sides differ in.
    pub sides: Vec<SideEffect>,
}

/// A pair of the plan that counts on neither side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// From 0.
    pub block: u32,
    /// The cell of its left trial, in words.
    pub label: String,
    /// The fate of the trial that is the reason.
    pub fate: Fate,
    /// That trial and what is wrong with it.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A pair of trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DuetBlock {
    /// From 0.
    pub block: u32,
    /// The trial of the first variant.
    pub a: u32,
    /// That of the second.
    pub b: u32,
    /// Both cells in words.
    #[serde(skip)]
    pub labels: (String, String),
    /// Whether *a* had the left place.
    pub a_is_left: bool,
    /// How much later the ramp of *b* began.
    pub b_later_ms: Option<f64>,
    /// Windows in which both have a figure.
    pub windows: usize,
    /// Windows in which only one has.
    pub unpaired: usize,
    /// b ÷ a, the geometric mean over these windows.
    pub ratio: Option<f64>,
}

/// By how much one half of the machine differs from the other: it is in no comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SideEffect {
    /// In what.
    pub metric: Measure,
    /// Left ÷ right; of a rate, 1 and the difference.
    pub ratio: f64,
}
