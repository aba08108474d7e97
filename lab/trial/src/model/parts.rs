//! Figures of parts of a trial: of tags, of named transactions, and of numbers in responses.

use schemars::JsonSchema;
use serde::Serialize;

use super::times::Times;

/// What the steps with a tag came to in a trial. Counts are of the whole trial, all else is of the hold after
/// its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TagAnalysis {
    /// The tag.
    pub name: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// Answered requests that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// From the planned send where there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// What the transactions of one name came to in a trial: steps that belong together, from the first request to the
/// last response. Counts are of the whole trial, times of those that were completed in the hold after its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransactionAnalysis {
    /// Its name; `session` is the whole session.
    pub name: String,
    /// Those of which the plan sends a request; without answers that decide, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u64>,
    /// Those whose requests all met their `expect`.
    pub completed: u64,
    /// Those in which a request failed or took longer than the load's time limit, and sessions that were turned away.
    pub failed: u64,
    /// Those in which a request was left out, since there was nothing to send it for; they have no time.
    pub skipped: u64,
    /// Those that were under way when their user left, or at the end.
    pub unfinished: u64,
    /// Completed ones per second.
    pub completed_per_s: Option<f64>,
    /// Without the think times within them.
    pub time_ms: Times,
    /// With the think times within them.
    pub elapsed_ms: Times,
}

/// A number that the answers of a step told in the hold, after its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeasureAnalysis {
    /// The step.
    pub step: String,
    /// Its name.
    pub name: String,
    /// What it is counted in; empty of a mere number.
    pub unit: String,
    /// Figures of the numbers that came, in their unit, to three digits.
    pub values: Times,
}

/// What users shared in a trial: a queue, or a pool of which sessions have a row to themselves. Counts are of the whole
/// trial, `queue_wait_ms` is of the hold after its warm-up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct QueueAnalysis {
    /// Its name.
    pub name: String,
    /// Whether it is a pool: then only `takes` and `queue_wait_ms` count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pool: bool,
    /// Entries that were put in.
    pub puts: u64,
    /// Entries, or rows, that were taken.
    pub takes: u64,
    /// Entries that were dropped because it was full.
    pub dropped: u64,
    /// Steps that were skipped because no entry came in time.
    pub missed: u64,
    /// Entries that were left at the end.
    pub length: u64,
    /// The most at the end of any window.
    pub longest: u64,
    /// How long users waited for what they took, zero waits included: neither think time nor response time.
    pub queue_wait_ms: Times,
}
