//! The raw form of retries of failed requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::{Count, Time, WaitTime};
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// The retries of a failed request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RetryFile {
    /// The maximum number of retries, without waits.
    #[schemars(with = "Count")]
    Times(At<Scalar>),
    /// With further settings.
    Full(Box<RetriesFile>),
}

/// The number of retries, and the waits before them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RetriesFile {
    /// The maximum number of retries.
    #[schemars(with = "Count")]
    pub(crate) at_most: At<Scalar>,
    /// The wait before each retry, like a step's `wait`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WaitTime>")]
    pub(crate) wait: Option<At<Scalar>>,
    /// The factor from one wait to the next, 1 to 100 (exponential back-off): `2` gives 1 s, 2 s, 4 s. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub(crate) multiplier: Option<At<Scalar>>,
    /// The maximum wait, such as `30s`. Default: a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) max_wait: Option<At<Scalar>>,
    /// For HTTP: `true` waits as long as the response's `Retry-After`, if that is longer. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) retry_after: Option<At<Scalar>>,
}

impl Container for RetryFile {}

impl Decode for RetryFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Times);
        };
        let mut fields = Fields::of(node, "retry", problems)?;
        let at_most = fields.required("at_most", problems);
        let wait = fields.optional("wait", problems);
        let multiplier = fields.optional("multiplier", problems);
        let max_wait = fields.optional("max_wait", problems);
        let retry_after = fields.optional("retry_after", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(RetriesFile {
            at_most: at_most?,
            wait,
            multiplier,
            max_wait,
            retry_after,
        })))
    }
}
