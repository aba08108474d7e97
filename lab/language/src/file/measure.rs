//! The raw form of numbers in responses.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// The place of a number in a response.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MeasureFile {
    /// The place alone.
    #[schemars(with = "String")]
    Place(At<Scalar>),
    /// The place and the unit.
    Full(Box<NumberFile>),
}

/// The place and the unit of a number.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NumberFile {
    /// The place in the response, as for `capture`: `$.queue.length`, `header.X-Free`, `/([0-9]+) left/`. Or an
    /// expression over its captures, with the time of day at its end: `{{ now_ms() - sent_ms | int }}`.
    #[schemars(with = "String")]
    pub(crate) from: At<Scalar>,
    /// The unit of the number, for reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) unit: Option<At<Scalar>>,
}

impl MeasureFile {
    /// Returns the source of the number.
    pub(crate) fn from(&self) -> &At<Scalar> {
        match self {
            Self::Place(from) => from,
            Self::Full(full) => &full.from,
        }
    }

    /// Returns its unit, if there is one.
    pub(crate) fn unit(&self) -> Option<&At<Scalar>> {
        match self {
            Self::Place(_) => None,
            Self::Full(full) => full.unit.as_ref(),
        }
    }
}

impl Container for MeasureFile {}

impl Decode for MeasureFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Place);
        };
        let mut fields = Fields::of(node, "a measure", problems)?;
        let from = fields.required("from", problems);
        let unit = fields.optional("unit", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(NumberFile { from: from?, unit })))
    }
}
