//! Sessions that arrive, as written.

use lab_language::{At, Container, Count, Decode, Fields, Problems, Rate, Scalar, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// Sessions that arrive at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ArrivalFile {
    /// Sessions per time at full load: `1000/s`, `60/min`, `"{{ rate }}/s"`. With `stages`, they set the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Rate>")]
    pub(crate) rate: Option<At<Scalar>>,
    /// The spacing of arrivals: `poisson` (independent of each other) or `constant` (even). Default: `poisson`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) spacing: Option<At<Scalar>>,
    /// The maximum number of concurrent sessions, each as a user of its own with its own connection. Default: 1000. If
    /// all are in use, a session waits, and its first response time counts from its arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) connections: Option<At<Scalar>>,
    /// The maximum number of concurrent sessions, in place of `connections`, if the load sets `connections` that all
    /// users share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) sessions: Option<At<Scalar>>,
}

impl Container for ArrivalFile {}

impl Decode for ArrivalFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "an arrival", problems)?;
        let rate = fields.optional("rate", problems);
        let spacing = fields.optional("spacing", problems);
        let connections = fields.optional("connections", problems);
        let sessions = fields.optional("sessions", problems);
        let both = fields.named(&["connections", "sessions"]);
        fields.finish(problems);
        if let [_, second] = both.as_slice() {
            let message = "`sessions` stands in the place of `connections`";
            problems.push(second.problem(message, "the second one"));
        }
        Some(Self {
            rate,
            spacing,
            connections,
            sessions,
        })
    }
}
