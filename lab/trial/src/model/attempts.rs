//! Figures of all attempts, including failed ones.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// Times over all attempts of the hold, in ms: a failed attempt is slower than any limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attempts {
    /// The number of attempts, answered and failed.
    pub count: u64,
    /// The number of failed attempts.
    pub failed: u64,
    /// The mean; a failed attempt counts as the longest time that it could have taken. Absent without attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The median.
    pub p50: Attempt,
    /// The 90th percentile: 90 % of the times are not longer.
    pub p90: Attempt,
    /// The 95th percentile.
    pub p95: Attempt,
    /// The 99th percentile.
    pub p99: Attempt,
    /// The 99.9th percentile.
    pub p999: Attempt,
}

/// A time over all attempts. In JSON a number, `"beyond any limit"`, or `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Attempt {
    /// Too few attempts for it.
    #[default]
    Unsupported,
    /// Of an answered one.
    Ms(f64),
    /// A failed one stands there: slower than any limit.
    Beyond,
}

/// The text for the time of a failed attempt.
pub const BEYOND: &str = "beyond any limit";

impl Attempt {
    /// Returns the time, if known.
    #[must_use]
    pub fn ms(self) -> Option<f64> {
        match self {
            Self::Ms(ms) => Some(ms),
            Self::Unsupported | Self::Beyond => None,
        }
    }
}

impl Serialize for Attempt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unsupported => serializer.serialize_none(),
            Self::Ms(ms) => serializer.serialize_f64(*ms),
            Self::Beyond => serializer.serialize_str(BEYOND),
        }
    }
}

impl JsonSchema for Attempt {
    fn schema_name() -> Cow<'static, str> {
        "Attempt".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time in ms over all attempts; null with too few of them.",
            "anyOf": [{ "type": ["number", "null"] }, { "const": BEYOND }]
        })
    }
}

/// The value of the deciding measure, if it is of a part of the load or a quantile beside the usual ones.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// The value in ms, per s, or of a rate as a part of 1; `null` if there was nothing to measure.
    pub value: Option<f64>,
    /// Whether the value is the time of a failed attempt: slower than any limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// The reason for a missing value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
