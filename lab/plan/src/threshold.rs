//! Judgements on the server: the thresholds of a study and of a search.

use lab_counts::{Aggregate, Metric, Scope};
use lab_stats::search::Rules;
use serde::{Deserialize, Serialize};

/// A judgement on the server, as k6 spells it: `response_time: ["p(95) < 300ms"]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The judged metric.
    pub metric: Metric,
    /// The part of the load that it covers.
    #[serde(flatten)]
    pub scope: Scope,
    /// The figure of the metric.
    pub aggregate: Aggregate,
    /// The comparison that must hold.
    pub comparison: Comparison,
    /// Milliseconds for times, a fraction for rates, per second for throughput.
    pub limit: f64,
    /// As written.
    pub text: String,
    /// Not written in the study: a default, because the study sets no limit of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
}

impl Threshold {
    /// Returns true if the value is within the limit.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
        }
    }

    /// The limit on the error rate if a study sets none.
    #[must_use]
    pub fn implied_error_rate() -> Self {
        Self::error_rate_below(0.01, "rate < 1%")
    }

    /// The limit on the error rate of a search if it sets none: its answer is a load for continuous operation.
    #[must_use]
    pub fn implied_error_rate_of_search() -> Self {
        Self::error_rate_below(0.001, "rate < 0.1%")
    }

    /// Returns true if every request may fail, as with `rate <= 100%`.
    #[must_use]
    pub fn lets_all_fail(&self) -> bool {
        let is_bound = matches!(self.comparison, Comparison::LessOrEqual);
        self.metric == Metric::ErrorRate && is_bound && self.limit >= 1.0
    }

    fn error_rate_below(limit: f64, text: &str) -> Self {
        Self {
            metric: Metric::ErrorRate,
            scope: Scope::All,
            aggregate: Aggregate::Rate,
            comparison: Comparison::Less,
            limit,
            text: text.to_owned(),
            implied: true,
        }
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The search for the most users that the system sustains within thresholds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Find {
    /// Fewest users tried; at least one.
    pub min_users: u32,
    /// Most users tried.
    pub max_users: u32,
    /// Thresholds for a sustained level; at least one.
    pub subject_to: Vec<Threshold>,
    /// The search narrows until the levels on both sides of the line differ by no more than this
    /// fraction.
    pub resolution: f64,
    /// Final number of trials at each of the two levels next to the line.
    pub repeats: u32,
    /// The part of the trials that must be shown to pass at a safe level, if the search continues until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe: Option<f64>,
}

impl Find {
    /// The rules of the search, with `again` repeats of a disturbed trial; the run and the report share them.
    #[must_use]
    pub fn rules(&self, seed: u64, again: u32) -> Rules {
        Rules {
            min: self.min_users,
            max: self.max_users,
            resolution: self.resolution,
            repeats: self.repeats,
            again,
            seed,
            safe: self.safe,
        }
    }
}
