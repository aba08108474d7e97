//! The results on the load that a system sustains: the load line, and how throughput scales.

use lab_plan::{Cell, SearchEnd};
use schemars::JsonSchema;
use serde::Serialize;

use super::figures::Estimate;

/// The maximum number of users with which a system stays within thresholds in at least half of the trials, and the safe
/// line below it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadLine {
    /// The level of each factor, of the cell that was searched.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The highest level tried that the system sustains; `null` if there is none, or no trial is valid.
    pub users: Option<u32>,
    /// The lower end of the interval; `null` if the trials don't bound the line from below.
    pub low: Option<u32>,
    /// The upper end of the interval; `null` if the trials don't bound the line from above.
    pub high: Option<u32>,
    /// The confidence of the interval.
    pub confidence: f64,
    /// The highest number of users for which the trials show that nearly all trials pass; absent if they don't show for
    /// any number that even half of the trials pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<SafeLine>,
    /// The resolution of the search: the levels beside the line differ by at most this part.
    pub resolution: f64,
    /// The thresholds that must hold, as the study has them.
    pub thresholds: Vec<String>,
    /// Why the line may be above every level tried: the limit of the generator, or the study's own maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<String>,
    /// How the search ended.
    pub search: SearchEnd,
    /// Whether the search is finished. The line of an unfinished search is the current estimate.
    pub finished: bool,
    /// Of an unfinished search: the levels that enclose the line so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<(Option<u32>, Option<u32>)>,
    /// A higher level that passed in trials disturbed from outside: a lower bound of the line, not a measurement.
    /// Intervals and verdicts ignore it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<LowerBound>,
    /// The levels that were tried, by number of users.
    pub levels: Vec<LineLevel>,
}

/// A number of users that passed in disturbed trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LowerBound {
    /// Always false: the bound is exploratory.
    pub measured: bool,
    /// The number of users.
    pub users: u32,
    /// Disturbed trials that passed.
    pub held: u32,
    /// All disturbed trials with this number of users.
    pub trials: u32,
}

/// A number of users with which nearly all trials stay within the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SafeLine {
    /// The number of users.
    pub users: u32,
    /// Trials that passed.
    pub held: u32,
    /// All measured trials with this number of users.
    pub trials: u32,
    /// A lower bound on the part of all trials that pass, at the confidence of the load line.
    pub part: f64,
    /// The part required for a safe line; `part` is smaller if the trials are too few to show it.
    pub wanted: f64,
    /// The number of trials needed to show the required part, if all of them pass.
    pub needed: u32,
}

/// The trials at one number of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineLevel {
    /// The number of users.
    pub users: u32,
    /// Trials in which the thresholds held.
    pub carried: u32,
    /// Trials in which the thresholds did not hold, or the system failed.
    pub not_carried: u32,
    /// Invalid trials.
    pub invalid: u32,
    /// Invalid trials that were disturbed from outside and still passed.
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

/// The load line of *b* compared with that of *a*.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LineDifference {
    /// The baseline.
    pub a: String,
    /// The cell or run that is compared with the baseline.
    pub b: String,
    /// Users of *b* minus users of *a*; `null` if one of them sustains none of the levels tried.
    pub difference: Option<f64>,
    /// The minimum and maximum that the two intervals allow; `null` if an end is open.
    pub interval: Option<(f64, f64)>,
    /// The verdict: `more`, `fewer`, `no difference shown`, or `no line` if a run has none.
    pub verdict: &'static str,
    /// Between runs: the minimum number of additional users that *b* sustains; if negative, the maximum loss. Absent if
    /// the trials don't bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Between runs: the equivalence margin, as a number of users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Both safe lines, if both exist. Each is a lower bound that depends on the number of trials, so there is no
    /// verdict on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<(SafeLine, SafeLine)>,
    /// Between runs: `true` if *b* is shown to sustain fewer users by a relevant difference; `false` if that is
    /// excluded (non-inferiority). Absent if neither is shown, and within a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_regression: Option<bool>,
}

/// The scaling of throughput with users, by the universal scalability law
/// X(N) = γN ÷ (1 + α(N − 1) + βN(N − 1)), with 95 % intervals.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// γ: the throughput of one user, per second.
    pub gamma_per_s: Estimate,
    /// α: contention.
    pub alpha: Estimate,
    /// β: coherence.
    pub beta: Estimate,
    /// The number of users at which throughput peaks; `null` if the interval of β contains 0.
    pub peak_users: Option<Estimate>,
    /// The peak throughput, per second.
    pub peak_per_s: Option<f64>,
    /// The standard deviation of throughput around the law, as a part of it.
    pub scatter: f64,
    /// The law over the measured range, and the measured values, for charts.
    pub points: Vec<UslPoint>,
}

/// A number of users with its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct UslPoint {
    /// The number of users.
    pub users: f64,
    /// The measured throughput of a trial, per second; `null` for a point of the law alone.
    pub measured_per_s: Option<f64>,
    /// The throughput by the law, per second, with its 95 % band.
    pub law_per_s: Estimate,
}
