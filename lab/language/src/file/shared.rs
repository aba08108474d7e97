//! The raw form of state that users share.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Count;
use crate::error::Problems;
use crate::node::Node;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// One of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SharedFile {
    /// A counter: each of its numbers goes to one request only, across all generators. `{ from: 1 }` says where it
    /// begins; `next('order_no')` takes the next number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counter: Option<At<CounterFile>>,
    /// Entries that steps put in and take out, in each generator for itself: `{ at_most: 10000 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<At<QueueFile>>,
    /// Rows of a file whose columns are variables, each of which one user has at a time: `{ file: tokens.csv, lease:
    /// session }`; or one request after the other: `{ file: tokens.csv, rotate: request }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<At<PoolFile>>,
}

/// Entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct QueueFile {
    /// Most entries of a generator; further ones are dropped, and counted. 10,000 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_most: Option<At<Scalar>>,
}

/// Rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PoolFile {
    /// The file, from the workload's folder: CSV with a line of names, or JSON Lines.
    #[schemars(with = "String")]
    pub(crate) file: At<Scalar>,
    /// `session`: a session has a row to itself, and waits for one where all are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) lease: Option<At<Scalar>>,
    /// `request`: each request has the next row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) rotate: Option<At<Scalar>>,
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
            queue: fields.optional("queue", problems),
            pool: fields.optional("pool", problems),
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

impl Container for QueueFile {}

impl Decode for QueueFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a queue", problems)?;
        let at_most = fields.optional("at_most", problems);
        fields.finish(problems);
        Some(Self { at_most })
    }
}

impl Container for PoolFile {}

impl Decode for PoolFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a pool", problems)?;
        let file = fields.required("file", problems);
        let lease = fields.optional("lease", problems);
        let rotate = fields.optional("rotate", problems);
        fields.finish(problems);
        Some(Self {
            file: file?,
            lease,
            rotate,
        })
    }
}
