//! The measure that decides a study's comparisons, as its file and the command line name it.

mod named;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use named::Named;

/// A measure that a study can name as the one that decides its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Decides {
    /// The mean response time.
    ResponseMean,
    /// The median response time.
    ResponseP50,
    /// The 95th percentile of response times.
    ResponseP95,
    /// The 99th percentile of response times.
    ResponseP99,
    /// Transactions per second.
    Throughput,
    /// The data that sessions transfer per second.
    TransferRate,
    /// The mean response time of the probe.
    ProbeMean,
    /// The CPU time of the system per transaction.
    CpuPerTransaction,
    /// The peak resident memory of the system.
    PeakMemory,
    /// The part of the requests that failed.
    ErrorRate,
    /// The part of the requests without a complete response in time.
    Timeouts,
    /// The part of the requests that were sent again.
    Resends,
    /// A figure of a part of the load, or another quantile: `response_time{step:Log in}.p99.9`.
    Named(Named),
}

/// No measure has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMeasure(
    /// As given.
    pub String,
);

impl fmt::Display for UnknownMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no measure `{}`; the measures are {}, and such as {}",
            self.0,
            Decides::names().join(", "),
            Named::EXAMPLES.join(", ")
        )
    }
}

impl std::error::Error for UnknownMeasure {}

impl Decides {
    /// All measures without parts, in the order of messages.
    pub const ALL: [Self; 12] = [
        Self::ResponseMean,
        Self::ResponseP50,
        Self::ResponseP95,
        Self::ResponseP99,
        Self::Throughput,
        Self::TransferRate,
        Self::ProbeMean,
        Self::CpuPerTransaction,
        Self::PeakMemory,
        Self::ErrorRate,
        Self::Timeouts,
        Self::Resends,
    ];

    /// Names of [`Self::ALL`], in its order.
    #[must_use]
    pub fn names() -> [&'static str; 12] {
        Self::ALL.map(Self::name)
    }

    /// As files and the command line write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ResponseMean => "response_time.mean",
            Self::ResponseP50 => "response_time.p50",
            Self::ResponseP95 => "response_time.p95",
            Self::ResponseP99 => "response_time.p99",
            Self::Throughput => "throughput",
            Self::TransferRate => "transfer_rate",
            Self::ProbeMean => "probe.mean",
            Self::CpuPerTransaction => "cpu_per_transaction",
            Self::PeakMemory => "peak_memory",
            Self::ErrorRate => "error_rate",
            Self::Timeouts => "timeouts",
            Self::Resends => "resends",
            Self::Named(named) => named.text(),
        }
    }
}

impl FromStr for Decides {
    type Err = UnknownMeasure;

    fn from_str(text: &str) -> Result<Self, UnknownMeasure> {
        let mut all = Self::ALL.into_iter();
        let simple = all.find(|one| one.name() == text);
        simple
            .or_else(|| Named::parse(text).map(Self::Named))
            .ok_or_else(|| UnknownMeasure(text.to_owned()))
    }
}

impl TryFrom<String> for Decides {
    type Error = UnknownMeasure;

    fn try_from(text: String) -> Result<Self, UnknownMeasure> {
        text.parse()
    }
}

impl From<Decides> for &'static str {
    fn from(measure: Decides) -> Self {
        measure.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_again() {
        for one in Decides::ALL {
            assert_eq!(one.name().parse(), Ok(one));
        }
        for text in Named::EXAMPLES {
            let named: Decides = text.parse().unwrap();
            assert!(matches!(named, Decides::Named(_)), "{text}");
            assert_eq!((named.name(), text.parse()), (text, Ok(named)));
        }
        let error = "p95".parse::<Decides>().unwrap_err().to_string();
        assert!(error.starts_with("there is no measure `p95`"), "{error}");
    }
}
