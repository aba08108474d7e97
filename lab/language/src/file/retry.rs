//! The raw form of retries of failed requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::{Count, Time, WaitTime};
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// How often a failed request is sent again.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RetryFile {
    /// So often, at once.
    #[schemars(with = "Count")]
    Times(At<Scalar>),
    /// With more.
    Full(Box<RetriesFile>),
}

/// How often, and when.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RetriesFile {
    /// Most times.
    #[schemars(with = "Count")]
    pub(crate) at_most: At<Scalar>,
    /// The wait before each, as a step's `wait`; none unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WaitTime>")]
    pub(crate) wait: Option<At<Scalar>>,
    /// The factor between one wait and the next (exponential back-off): `2` makes 1 s, 2 s, 4 s; 1 unless said, 100 at
    /// most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub(crate) multiplier: Option<At<Scalar>>,
    /// No wait is longer, such as `30s`; a day unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) max_wait: Option<At<Scalar>>,
    /// Of HTTP: whether it waits for as long as the answer asks by `Retry-After`, where that is longer; `false` unless said.
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
