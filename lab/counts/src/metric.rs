//! The metric of a figure, and its aggregate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The metric of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Response time in ms, from the planned send if there is a plan.
    ResponseTime,
    /// Service time in ms, from the actual send.
    ServiceTime,
    /// Of a step that listens for events: time to the first event in ms, from the start of the response time.
    FirstEvent,
    /// Of a step that listens for events: time from each event to the next, in ms.
    BetweenEvents,
    /// Of a transaction: time from its first request to its last response in ms, without think times.
    TransactionTime,
    /// Of a transaction: time from its first request to its last response in ms, with think times.
    TransactionElapsed,
    /// Failed requests and rejected sessions ÷ all of them and transactions, over the whole trial.
    ErrorRate,
    /// Requests sent again because the server had closed the connection ÷ requests, over the whole trial.
    Resends,
    /// Transactions per second in the hold.
    Throughput,
    /// The numbers of a measure in the hold, of all steps that have it; of a script, its checks and metrics.
    Measure,
}

impl Metric {
    /// All of them, by their names in studies and results.
    pub const NAMED: [(&'static str, Self); 10] = [
        ("response_time", Self::ResponseTime),
        ("service_time", Self::ServiceTime),
        ("first_event", Self::FirstEvent),
        ("between_events", Self::BetweenEvents),
        ("transaction_time", Self::TransactionTime),
        ("transaction_elapsed", Self::TransactionElapsed),
        ("error_rate", Self::ErrorRate),
        ("resends", Self::Resends),
        ("throughput", Self::Throughput),
        ("measure", Self::Measure),
    ];

    /// The metric of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::NAMED.into_iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, metric)| metric)
    }

    /// Returns true if only transactions have it.
    #[must_use]
    pub fn is_of_transactions(self) -> bool {
        matches!(self, Self::TransactionTime | Self::TransactionElapsed)
    }

    /// Returns true if transactions have it, perhaps beside requests.
    #[must_use]
    pub fn suits_transactions(self) -> bool {
        self.is_of_transactions() || matches!(self, Self::ErrorRate | Self::Throughput)
    }

    /// Returns true if it is a time, with quantiles and in milliseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        match self {
            Self::ResponseTime
            | Self::ServiceTime
            | Self::FirstEvent
            | Self::BetweenEvents
            | Self::TransactionTime
            | Self::TransactionElapsed => true,
            Self::ErrorRate | Self::Resends | Self::Throughput | Self::Measure => false,
        }
    }
}

/// A figure of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// `p(N)`, 0 < N < 100.
    Percentile(f64),
    /// `avg` or `mean`.
    Mean,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `med`.
    Median,
    /// `rate`.
    Rate,
    /// `sum`, of a measure.
    Sum,
}

impl Aggregate {
    /// The quantile that it asks for, 0…1; `None` if it isn't one.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Percentile(percent) => Some(percent / 100.0),
            Self::Median => Some(0.5),
            Self::Mean | Self::Min | Self::Max | Self::Rate | Self::Sum => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_serialized_form() {
        for (name, metric) in Metric::NAMED {
            assert_eq!(serde_json::to_value(metric).unwrap(), name);
            assert_eq!(Metric::named(name), Some(metric));
        }
        assert_eq!(Metric::named("latency"), None);
    }
}
