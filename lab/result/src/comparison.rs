//! The comparison of two cells, or of two levels of a factor: one measure of *b* beside that of *a*.

use lab_counts::{ErrorClass, Metric};
use lab_plan::{Decides, Named};
use lab_stats::paired::Bounds;
use lab_stats::verdict::Better;
use lab_trial::as_f64;
use lab_trial::model::{Attempt, TrialAnalysis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules by which differences are judged.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Inference {
    /// The equivalence margin: ratios within this part of 1 are irrelevant.
    pub smallest_relevant: f64,
    /// Whether the study asks for comparisons: it repeats trials, has variants, or has a control.
    pub asked: bool,
    /// The smallest difference that the study can claim, for each measure that the control bounds.
    pub claims: Vec<Claim>,
    /// The confidence of the intervals of ratios.
    pub confidence: f64,
    /// The minimum number of blocks for a verdict.
    pub least_blocks: usize,
    /// The number of comparisons with a verdict.
    pub judged: usize,
    /// The number of judged comparisons that decide. These are tested together; so are the others.
    pub deciding: usize,
    /// The number of pairs of cells beyond the maximum that are compared.
    pub pairs_left_out: usize,
}

/// The smallest difference that a study can claim in a measure. It is the study's own margin, or the difference between
/// the same system under two labels (the control), whichever is larger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// The measure that is compared.
    pub metric: Measure,
    /// The difference as a part: 0.02 means ratios above 1.02 or below 1 ÷ 1.02.
    pub smallest_difference: f64,
}

/// A measure of *b* compared with that of *a*, paired by block, over valid trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The baseline: the label of a cell, or a level of the factor.
    pub a: String,
    /// The cell or the level that is compared with the baseline.
    pub b: String,
    /// The factor in which they differ.
    pub factor: String,
    /// The measure that is compared.
    pub metric: Measure,
    /// The number of blocks with a valid trial of both.
    pub blocks: usize,
    /// The mean of *a* over these blocks.
    pub mean_a: f64,
    /// The mean of *b* over these blocks.
    pub mean_b: f64,
    /// The mean of *b* minus the mean of *a*.
    pub difference: f64,
    /// The geometric mean of *b* ÷ *a* over these blocks; of a rate, 1 and the mean difference: 1.01 is one percentage
    /// point more.
    pub ratio: f64,
    /// The interval of the ratio; `null` if too few blocks bound it.
    pub interval: Option<(f64, f64)>,
    /// The smallest difference that is claimed here, as a part.
    pub smallest_difference: f64,
    /// The equivalence margin, as a part: a difference shown to be within it means equal.
    pub matters: f64,
    /// Whether the answer depends on this comparison; all others are exploratory.
    pub decides: bool,
    /// Between runs: the spread between runs of one build, which the interval includes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_spread: Option<RunSpread>,
    /// The p-value over all deciding comparisons, or over all others; `null` without a verdict.
    pub p: Option<f64>,
    /// The p-value of this comparison alone; `null` without a verdict.
    pub p_single: Option<f64>,
    /// The verdict; `null` with too few blocks.
    pub verdict: Option<Difference>,
    /// The one-sided bound: for "not worse", and under interference for every verdict that shows no difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worse_at_most: Option<WorseAtMost>,
    /// The reason for a missing verdict, or for one that is open despite the figures.
    pub reason: Option<String>,
}

/// The maximum by which *b* may be worse than *a*: a one-sided bound of 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct WorseAtMost {
    /// The bound as a part: 0.03 is 3 % slower, or 3 % less throughput. 0 or less if *b* is better.
    pub part: f64,
    /// The mean factor by which differences were stretched for what interference hides; 1 without interference.
    pub stretch: f64,
}

impl WorseAtMost {
    /// The bound from an interval of differences as measured, if it shows that *b* is not worse.
    #[must_use]
    pub fn of(verdict: Option<Difference>, measure: Measure, one_sided: Bounds) -> Option<Self> {
        let part = measure.ratio(measure.worse_end(one_sided)) - 1.0;
        let is_shown = verdict == Some(Difference::NotWorse) && part.is_finite();
        is_shown.then_some(Self { part, stretch: 1.0 })
    }
}

/// The spread between runs of one build.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RunSpread {
    /// The standard deviation over runs: of the logarithm, or of a rate as a part of all requests. 0.02 is about 2 %.
    pub deviation: f64,
    /// The source of the deviation.
    pub told_by: SpreadBasis,
    /// The number of runs with another run of the same build.
    pub runs: usize,
}

/// The source of the spread between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadBasis {
    /// Measured between runs of one build.
    Runs,
    /// Assumed: runs spread as much as their blocks.
    Assumed,
}

impl Comparison {
    /// Returns true if the verdict is a difference.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.verdict.is_some_and(Difference::is_shown)
    }

    /// Removes a verdict that is good for *b*, because trials or figures are missing (`why`). A verdict against *b*
    /// stays.
    pub fn bar(&mut self, why: &str) {
        self.worse_at_most = None;
        if self.verdict.is_some_and(Difference::is_good) {
            self.verdict = Some(Difference::CouldNotTell);
            self.reason = Some(why.to_owned());
        }
    }
}

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// *b* is better: less time, more throughput, less cost.
    Faster,
    /// *b* is worse.
    Slower,
    /// Any difference is shown to be within the equivalence margin.
    Equal,
    /// *b* is shown not to be worse by a relevant difference; it may be better.
    #[serde(rename = "not worse")]
    NotWorse,
    /// Inconclusive: the noise leaves room for a relevant difference.
    #[serde(rename = "could not tell")]
    CouldNotTell,
    /// Of a cost (CPU, memory): *b* needs less.
    #[serde(rename = "uses less")]
    UsesLess,
    /// Of a cost (CPU, memory): *b* needs more.
    #[serde(rename = "uses more")]
    UsesMore,
    /// Of a rate of failures: *b* has fewer.
    #[serde(rename = "fails less")]
    FailsLess,
    /// Of a rate of failures: *b* has more.
    #[serde(rename = "fails more")]
    FailsMore,
}

impl Difference {
    /// The name of a verdict on a measure.
    #[must_use]
    pub fn of(verdict: lab_stats::Verdict, measure: Measure) -> Self {
        match (verdict, measure.is_cost()) {
            (lab_stats::Verdict::Faster, _) if measure.is_rate() => Self::FailsLess,
            (lab_stats::Verdict::Slower, _) if measure.is_rate() => Self::FailsMore,
            (lab_stats::Verdict::Faster, false) => Self::Faster,
            (lab_stats::Verdict::Faster, true) => Self::UsesLess,
            (lab_stats::Verdict::Slower, false) => Self::Slower,
            (lab_stats::Verdict::Slower, true) => Self::UsesMore,
            (lab_stats::Verdict::Equal, _) => Self::Equal,
            (lab_stats::Verdict::NoWorse, _) => Self::NotWorse,
            (lab_stats::Verdict::Unclear, _) => Self::CouldNotTell,
        }
    }

    /// Returns true if the verdict is a difference.
    #[must_use]
    pub fn is_shown(self) -> bool {
        self.is_better() || self.is_worse()
    }

    /// Returns true if *b* is better.
    #[must_use]
    pub fn is_better(self) -> bool {
        matches!(self, Self::Faster | Self::UsesLess | Self::FailsLess)
    }

    /// Returns true if *b* is worse.
    #[must_use]
    pub fn is_worse(self) -> bool {
        matches!(self, Self::Slower | Self::UsesMore | Self::FailsMore)
    }

    /// Returns true if neither a difference nor noise is evidence against *b*.
    #[must_use]
    pub fn is_good(self) -> bool {
        self.is_better() || matches!(self, Self::Equal | Self::NotWorse)
    }

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::UsesLess => "uses less",
            Self::UsesMore => "uses more",
            Self::FailsLess => "fails less",
            Self::FailsMore => "fails more",
            Self::Equal => "equal",
            Self::NotWorse => "not worse",
            Self::CouldNotTell => "could not tell",
        }
    }
}

/// The measure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Measure {
    /// Transactions per second.
    #[serde(rename = "throughput_per_s")]
    Throughput,
    /// The mean response time, in ms.
    #[serde(rename = "response_mean_ms")]
    Mean,
    /// The median response time, in ms.
    #[serde(rename = "response_p50_ms")]
    P50,
    /// The 95th percentile of response times, in ms.
    #[serde(rename = "response_p95_ms")]
    P95,
    /// The 99th percentile of response times, in ms.
    #[serde(rename = "response_p99_ms")]
    P99,
    /// The data that sessions transferred per second, in MB/s (10⁶ bytes).
    #[serde(rename = "transfer_mb_per_s")]
    Transfer,
    /// The mean response time of the probe, in ms.
    #[serde(rename = "probe_mean_ms")]
    Probe,
    /// The CPU time of the system per transaction, in ms.
    #[serde(rename = "cpu_ms_per_transaction")]
    Cpu,
    /// The peak resident memory of the system, in MB (2²⁰ bytes).
    #[serde(rename = "rss_mb_max")]
    Memory,
    /// Failed requests, in % of all.
    #[serde(rename = "error_rate_percent")]
    ErrorRate,
    /// Requests without a complete response in time, in % of all.
    #[serde(rename = "timeouts_percent")]
    Timeouts,
    /// Requests sent again because the server had closed the connection, in % of all.
    #[serde(rename = "resends_percent")]
    Resends,
    /// A measure that the study names with its parts.
    #[serde(untagged)]
    Named(Named),
}

impl From<Decides> for Measure {
    fn from(named: Decides) -> Self {
        match named {
            Decides::ResponseMean => Self::Mean,
            Decides::ResponseP50 => Self::P50,
            Decides::ResponseP95 => Self::P95,
            Decides::ResponseP99 => Self::P99,
            Decides::Throughput => Self::Throughput,
            Decides::TransferRate => Self::Transfer,
            Decides::ProbeMean => Self::Probe,
            Decides::CpuPerTransaction => Self::Cpu,
            Decides::PeakMemory => Self::Memory,
            Decides::ErrorRate => Self::ErrorRate,
            Decides::Timeouts => Self::Timeouts,
            Decides::Resends => Self::Resends,
            Decides::Named(named) => Self::Named(named),
        }
    }
}

/// Error rates that differ by less, as a part of all requests, are equal: a tenth of a percentage point, which is also
/// the error rate that a search allows.
const RATE_MATTERS: f64 = 0.001;

impl Measure {
    /// All measures without parts, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Throughput,
        Self::Mean,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Transfer,
        Self::Probe,
        Self::Cpu,
        Self::Memory,
        Self::ErrorRate,
        Self::Timeouts,
        Self::Resends,
    ];

    /// The deciding measures unless a study names one: those that users feel, and the throughput. Others, such as p99
    /// or the memory, decide nothing without a request.
    pub const DECIDING: [Self; 2] = [Self::P95, Self::Throughput];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Mean => "mean response",
            Self::P50 => "p50 response",
            Self::P95 => "p95 response",
            Self::P99 => "p99 response",
            Self::Transfer => "transfer rate",
            Self::Probe => "mean probe response",
            Self::Cpu => "CPU per transaction",
            Self::Memory => "peak memory",
            Self::ErrorRate => "error rate",
            Self::Timeouts => "timeouts",
            Self::Resends => "resends",
            Self::Named(named) => named.words(),
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "per s",
            Self::Named(named) => match named.metric() {
                Metric::Throughput => "per s",
                Metric::ErrorRate | Metric::Resends => "%",
                _ => "ms",
            },
            Self::Mean | Self::P50 | Self::P95 | Self::P99 | Self::Probe | Self::Cpu => "ms",
            Self::Transfer => "MB/s",
            Self::Memory => "MB",
            Self::ErrorRate | Self::Timeouts | Self::Resends => "%",
        }
    }

    /// Returns true if it is a cost rather than a speed.
    #[must_use]
    pub fn is_cost(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory)
    }

    /// Returns true if it is a rate that may be 0: its differences are in percentage points.
    #[must_use]
    pub fn is_rate(self) -> bool {
        match self {
            Self::ErrorRate | Self::Timeouts | Self::Resends => true,
            Self::Named(named) => matches!(named.metric(), Metric::ErrorRate | Metric::Resends),
            _ => false,
        }
    }

    /// A value on the scale of judgement: its logarithm, or for a rate its part of all requests. `None` if it has no
    /// place there.
    #[must_use]
    pub fn scaled(self, value: f64) -> Option<f64> {
        match self.is_rate() {
            true => (value.is_finite() && value >= 0.0).then_some(value / 100.0),
            false => (value.is_finite() && value > 0.0).then(|| value.ln()),
        }
    }

    /// Converts a difference on that scale into a ratio: see [`Comparison::ratio`].
    #[must_use]
    pub fn ratio(self, difference: f64) -> f64 {
        match self.is_rate() {
            true => 1.0 + difference,
            false => difference.exp(),
        }
    }

    /// The smallest relevant difference; `smallest` applies to measures with a ratio.
    #[must_use]
    pub fn matters(self, smallest: f64) -> f64 {
        match self.is_rate() {
            true => RATE_MATTERS,
            false => smallest,
        }
    }

    /// A [`Comparison::ratio`] in words: `+12.5 %`, `×3.60`, or for a rate `+1.2 points`.
    #[must_use]
    pub fn change(self, ratio: f64) -> String {
        if !self.is_rate() {
            return lab_trial::format::ratio_or_percent(ratio);
        }
        let points = (ratio - 1.0) * 100.0;
        // An interval's end of hundredths of a point must not become zero.
        let sign = if points < -0.005 { "−" } else { "+" };
        format!("{sign}{:.2} points", points.abs())
    }

    /// The end of an interval on that scale at which *b* is worse, positive where it is.
    #[must_use]
    pub fn worse_end(self, bounds: Bounds) -> f64 {
        match self.better() {
            Better::Lower => bounds.high,
            Better::Higher => -bounds.low,
        }
    }

    /// The direction that is better.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::Throughput | Self::Transfer => Better::Higher,
            Self::Named(named) if named.metric() == Metric::Throughput => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// Returns true if the trial's value is unknown because operations took longer than the load's time limit: the
    /// value of the remaining ones would be that of the fast ones.
    #[must_use]
    pub fn is_cut(self, trial: &TrialAnalysis) -> bool {
        let is_time = match self {
            Self::Mean | Self::P50 | Self::P95 | Self::P99 => true,
            Self::Named(named) => named.metric().is_time(),
            _ => false,
        };
        is_time && trial.steps.iter().any(|step| step.bound.is_some())
    }

    /// Returns true if a failed request is at the place of the trial's value.
    #[must_use]
    pub fn is_beyond(self, trial: &TrialAnalysis) -> bool {
        let all = &trial.response_with_failures_ms;
        match self {
            Self::P50 => all.p50 == Attempt::Beyond,
            Self::P95 => all.p95 == Attempt::Beyond,
            Self::P99 => all.p99 == Attempt::Beyond,
            Self::Named(_) => trial.deciding.as_ref().is_some_and(|one| one.beyond),
            _ => false,
        }
    }

    /// A trial's value. Times are over all attempts, as those of thresholds are: a failed request is slower than any
    /// limit, and a quantile at a failed request has no value.
    #[must_use]
    pub fn of(self, trial: &TrialAnalysis) -> Option<f64> {
        let all = &trial.response_with_failures_ms;
        let percent = |n: u64| {
            let requests = trial.transactions + trial.errors;
            lab_stats::ratio(as_f64(n) * 100.0, as_f64(requests))
        };
        let class = |class| {
            trial
                .errors_by_class
                .get(&class)
                .copied()
                .unwrap_or_default()
        };
        let counter = |name: &str| trial.system.get(name).copied().flatten();
        match self {
            Self::Throughput => trial.throughput_per_s,
            Self::Mean => all.mean,
            Self::P50 => all.p50.ms(),
            Self::P95 => all.p95.ms(),
            Self::P99 => all.p99.ms(),
            Self::Transfer => trial.transfer.as_ref()?.mb_per_s,
            Self::Probe => trial.probe_ms?.mean,
            Self::Cpu => counter("cpu_ms_per_transaction"),
            Self::Memory => counter("rss_mb_max"),
            Self::ErrorRate => percent(trial.errors),
            Self::Timeouts => percent(class(ErrorClass::Timeout)),
            Self::Resends => percent(trial.stale_retries),
            Self::Named(_) => {
                let value = trial.deciding.as_ref()?.value?;
                Some(if self.is_rate() { 100.0 * value } else { value })
            }
        }
    }
}
