//! The results on the load that a system sustains: the load line, and how throughput scales.

use lab_plan::{Cell, SearchEnd};
use schemars::JsonSchema;
use serde::Serialize;

use super::figures::Estimate;

/// The most users with which a system stays within thresholds in at least half of the trials, and the
/// safe line below it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadLine {
    /// Level by factor, of what was searched.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The highest level tried that is carried; `None` where none was, or no trial is valid.
    pub users: Option<u32>,
    /// The line is not lower; `None` where the trials don't bound it from below.
    pub low: Option<u32>,
    /// The line is not higher; `None` where the trials don't bound it from above.
    pub high: Option<u32>,
    /// Of the interval.
    pub confidence: f64,
    /// The highest number of users at which nearly all trials hold, as far as the trials tell; `None` where
    /// they don't tell of any that even half of them hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<SafeLine>,
    /// The levels beside the line differ by no more than this part: the search looks no closer.
    pub resolution: f64,
    /// What must hold, as the study writes it.
    pub thresholds: Vec<String>,
    /// Why the line may lie higher than any level tried: the generator, or the study's own end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<String>,
    /// How the search ended.
    pub search: SearchEnd,
    /// Whether the search has its answer. The line of one that has not is what is known so far.
    pub finished: bool,
    /// Of a search that is not finished: the levels that the line lies between so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<(Option<u32>, Option<u32>)>,
    /// A higher level that held although its trials were disturbed from outside: a lower bound of the line,
    /// and no measurement. No interval and no verdict reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<LowerBound>,
    /// What was tried, by number of users.
    pub levels: Vec<LineLevel>,
}

/// A number of users that held in disturbed trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LowerBound {
    /// Always false: it is exploratory.
    pub measured: bool,
    /// Users.
    pub users: u32,
    /// Disturbed trials that held.
    pub held: u32,
    /// All disturbed trials with so many users.
    pub trials: u32,
}

/// A number of users with which nearly all trials stay within the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SafeLine {
    /// Users.
    pub users: u32,
    /// Trials that held.
    pub held: u32,
    /// All that were measured with so many users.
    pub trials: u32,
    /// At least this part of all trials holds, at the confidence of the load line.
    pub part: f64,
    /// The part that makes it safe; `part` is less where the trials are too few to show it.
    pub wanted: f64,
    /// So many trials would have to hold, without one that doesn't, to show that.
    pub needed: u32,
}

/// The trials at one number of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineLevel {
    /// Users.
    pub users: u32,
    /// Trials in which the thresholds held.
    pub carried: u32,
    /// Trials in which they did not, or the system failed.
    pub not_carried: u32,
    /// Trials that are no measurement.
    pub invalid: u32,
    /// Those of them that were disturbed from outside, and held all the same.
    #[serde(skip_serializing_if = "is_zero")]
    pub held_while_disturbed: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if asks for it"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The load line of *b* beside that of *a*.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LineDifference {
    /// The baseline.
    pub a: String,
    /// What is compared with it.
    pub b: String,
    /// Users of *b* less users of *a*; `None` where one of them carries none of the numbers tried.
    pub difference: Option<f64>,
    /// Least and most that the two intervals allow; `None` where an end is open.
    pub interval: Option<(f64, f64)>,
    /// `more`, `fewer`, `no difference shown`, or `no line` of a run that has none.
    pub verdict: &'static str,
    /// Between runs: at least so many users more does *b* carry; a negative number is how many fewer it may be
    /// at worst. `None` where the trials don't bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Between runs: so many users fewer don't matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Both safe lines, where both have one. Each is a bound from below, as high as its trials show: two
    /// bounds have no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<(SafeLine, SafeLine)>,
    /// Between runs: `true` where *b* is shown to carry fewer users, by more than matters; `false` where that is
    /// shown not to be so (non-inferiority); `None` where neither is, and within a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_regression: Option<bool>,
}

/// How throughput scales with users, by the universal scalability law
/// X(N) = γN ÷ (1 + α(N − 1) + βN(N − 1)), with 95 % intervals.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// γ: throughput of one user.
    pub gamma_per_s: Estimate,
    /// α: contention.
    pub alpha: Estimate,
    /// β: coherence.
    pub beta: Estimate,
    /// Users at which throughput peaks; `None` where β's interval holds 0.
    pub peak_users: Option<Estimate>,
    /// Throughput there.
    pub peak_per_s: Option<f64>,
    /// Standard deviation of throughput around the law, as a part of it.
    pub scatter: f64,
    /// The law through the range that was measured, and what was measured, for charts.
    pub points: Vec<UslPoint>,
}

/// A number of users with its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct UslPoint {
    /// Users.
    pub users: f64,
    /// What a trial measured; `None` of a point of the law alone.
    pub measured_per_s: Option<f64>,
    /// By the law, with its 95 % band.
    pub law_per_s: Estimate,
}
