//! The numbers of a prediction.

use serde::{Deserialize, Serialize};

/// The prediction of a trial with a response time of zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// In the whole trial, ramp included.
    pub transactions: f64,
    /// In the hold.
    pub hold_transactions: f64,
    /// `hold_transactions` per second of hold; 0 for a sequence, whose rate the server decides.
    pub offered_per_s: f64,
    /// True if every user, or every arrival, was replayed; false if a sample represents all.
    pub exact: bool,
    /// The number of arrivals, if sessions arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Minimum and maximum, if the server's responses decide the load. The other numbers then assume that every
    /// condition holds, and that loops end with their first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// In the order of the session.
    pub steps: Vec<StepPrediction>,
    /// The named transactions of a workload, in their order; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_transactions: Vec<TransactionPrediction>,
    /// In their order, if the load has stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StagePrediction>,
    /// In their order, if the load has populations; their steps are all among `steps`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationPrediction>,
}

/// The part of one population.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PopulationPrediction {
    /// Its name.
    pub name: String,
    /// As of [`Prediction`].
    pub transactions: f64,
    /// As of [`Prediction`].
    pub offered_per_s: f64,
    /// As of [`Prediction`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// As of [`Prediction`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// As of [`Prediction`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StagePrediction>,
}

/// The part of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StagePrediction {
    /// Requests sent in it.
    pub transactions: f64,
    /// Sessions that arrive in it; 0 without arrivals.
    pub arrivals: f64,
}

/// Sessions that arrive in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// In the whole trial, ramp included.
    pub trial: f64,
    /// In the hold.
    pub hold: f64,
    /// For a recording: the most in any second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_s: Option<f64>,
}

/// The part of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepPrediction {
    /// The step's name.
    pub name: String,
    /// Requests in the whole trial.
    pub requests: u64,
    /// Mean of the waits that ended within the trial; 0 when there are none.
    pub mean_wait_ms: f64,
    /// Number of those waits.
    pub waits: u64,
    /// Fewest and most requests in the whole trial, if responses decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Span>,
}

/// The transactions of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransactionPrediction {
    /// Their name; `session` is the whole session.
    pub name: String,
    /// Number of them with a request in the whole trial.
    pub begun: u64,
    /// Their minimum and maximum, if responses decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Span>,
}

/// Minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Minimum.
    pub low: f64,
    /// Maximum.
    pub high: f64,
}

/// Fewest and most requests of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// In the whole trial.
    pub trial: Span,
    /// In the hold.
    pub hold: Span,
}

impl Prediction {
    /// The bounds of the number of requests; both are equal if responses decide nothing.
    pub(crate) fn bounds(&self) -> Range {
        let exactly = |count| Span {
            low: count,
            high: count,
        };
        self.range.unwrap_or(Range {
            trial: exactly(self.transactions),
            hold: exactly(self.hold_transactions),
        })
    }
}

impl Span {
    pub(crate) fn add(&mut self, other: Self) {
        self.low += other.low;
        self.high += other.high;
    }
}
