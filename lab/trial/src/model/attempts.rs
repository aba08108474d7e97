//! Figures of all attempts, including failed ones.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// Times over all attempts of the hold, ms: a failed one is slower than any limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attempts {
    /// Answered and failed ones.
    pub count: u64,
    /// Failed ones.
    pub failed: u64,
    /// Mean, where a failed one counts as the longest that it could have taken; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Median.
    pub p50: Attempt,
    /// 90 % are no longer.
    pub p90: Attempt,
    /// 95 % are no longer.
    pub p95: Attempt,
    /// 99 % are no longer.
    pub p99: Attempt,
    /// 99.9 % are no longer.
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

/// The figure of the measure that decides, where it is of a part of the load or a quantile beside the usual ones.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// In ms, per s, or of a rate the part; `None` if there was nothing to measure.
    pub value: Option<f64>,
    /// Whether a failed attempt stands there: slower than any limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
