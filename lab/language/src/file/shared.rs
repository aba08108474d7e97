//! What users share with each other, as written.

use schemars::JsonSchema;
use serde::Serialize;

use super::decode::{Container, Decode, Fields};
use super::parts::{At, Scalar};
use super::shapes::Count;
use crate::error::Problems;
use crate::node::Node;

/// One of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SharedFile {
    /// A counter: each of its numbers goes to one request only, across all generators. `{ from: 1 }` says where it
    /// begins; `next('order_no')` takes the next number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counter: Option<At<CounterFile>>,
}

/// Numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CounterFile {
    /// The least of them; 1 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) from: Option<At<Scalar>>,
}

impl Container for SharedFile {}

impl Decode for SharedFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "what is shared", problems)?;
        let file = Self {
            counter: fields.optional("counter", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}

impl Container for CounterFile {}

impl Decode for CounterFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a counter", problems)?;
        let from = fields.optional("from", problems);
        fields.finish(problems);
        Some(Self { from })
    }
}
