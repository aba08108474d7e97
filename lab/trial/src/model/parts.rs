//! Figures of parts of a trial: of tags, of named transactions, and of numbers in responses.

use schemars::JsonSchema;
use serde::Serialize;

use super::times::Times;

/// The results of the steps with a tag in a trial. Counts are of the whole trial, all else is of the hold after its
/// warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TagAnalysis {
    /// The tag.
    pub name: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// Requests with a response that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Steps skipped because a list was empty.
    pub skipped: u64,
    /// Transactions per second.
    pub throughput_per_s: Option<f64>,
    /// Response times in ms, from the planned send if there is a plan, else from the actual send.
    pub response_ms: Times,
}

/// The results of the transactions of one name in a trial: steps that belong together, from the first request to the
/// last response. Counts are of the whole trial, times of those that were completed in the hold after its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransactionAnalysis {
    /// The name of the transaction; `session` is the whole session.
    pub name: String,
    /// Transactions of which the plan sends a request; exact unless responses decide what is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u64>,
    /// Transactions in which every request met its `expect`.
    pub completed: u64,
    /// Transactions in which a request failed or exceeded the load's time limit, and sessions that were rejected.
    pub failed: u64,
    /// Transactions in which a request was skipped because there was nothing to send it for; they have no time.
    pub skipped: u64,
    /// Transactions in progress when their user left, or at the end.
    pub unfinished: u64,
    /// Completed transactions per second.
    pub completed_per_s: Option<f64>,
    /// Times in ms, without the think times within them.
    pub time_ms: Times,
    /// Times in ms, with the think times within them.
    pub elapsed_ms: Times,
}

/// A number reported in the responses of a step in the hold, after its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeasureAnalysis {
    /// The step.
    pub step: String,
    /// The name of the number.
    pub name: String,
    /// The unit; empty for a plain number.
    pub unit: String,
    /// The statistics of the values, in their unit, to three digits.
    pub values: Times,
    /// The sum of the values, to all digits: a mean of three digits hides one failed check in ten thousand.
    #[serde(skip)]
    pub sum: f64,
}

/// A queue or a pool that users shared in a trial; of a pool, each session has a row of its own. Counts are of the
/// whole trial, `queue_wait_ms` is of the hold after its warm-up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct QueueAnalysis {
    /// The name of the queue or pool.
    pub name: String,
    /// Whether it is a pool; a pool has only `takes` and `queue_wait_ms`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pool: bool,
    /// Entries put in.
    pub puts: u64,
    /// Entries or rows taken.
    pub takes: u64,
    /// Entries dropped because the queue was full.
    pub dropped: u64,
    /// Steps skipped because no entry arrived in time.
    pub missed: u64,
    /// Entries left at the end.
    pub length: u64,
    /// The maximum number of entries at the end of any window.
    pub longest: u64,
    /// The times that users waited, in ms, zero waits included: neither think time nor response time.
    pub queue_wait_ms: Times,
}
