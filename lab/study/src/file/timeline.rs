//! A recorded timeline, as written.

use lab_language::{At, Container, Decode, Fields, Problems, Scalar, Time, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// Sessions that arrive at the moments in a column of the workload's `data`, whatever the system does. The workload has
/// `each: session`, so that the session of a row has that row's other columns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TimelineFile {
    /// The column with the moments, in rising order.
    #[schemars(with = "String")]
    pub(crate) column: At<Scalar>,
    /// The unit of the moments: numbers of `s`, `ms`, `us`, or `ns`, or `datetime` for `2026-01-05T10:00:00Z`. Default:
    /// `s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) unit: Option<At<Scalar>>,
    /// The replay's speed, relative to the recording: `2` replays it in half the time. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scale: Option<At<Scalar>>,
    /// The start of the load within the recording, counted from its first moment: `10m`. Default: 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) from: Option<At<Scalar>>,
    /// The end of the load within the recording, counted likewise. Default: after its last moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) to: Option<At<Scalar>>,
}

impl Container for TimelineFile {}

impl Decode for TimelineFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a timeline", problems)?;
        let column = fields.required("column", problems);
        let unit = fields.optional("unit", problems);
        let scale = fields.optional("scale", problems);
        let from = fields.optional("from", problems);
        let to = fields.optional("to", problems);
        fields.finish(problems);
        Some(Self {
            column: column?,
            unit,
            scale,
            from,
            to,
        })
    }
}
