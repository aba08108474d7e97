//! The raw form of state that users share.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Count;
use crate::error::Problems;
use crate::node::Node;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// Shared state: one of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SharedFile {
    /// A counter: each of its numbers goes to one request only, across all generators. `{ from: 1 }` sets the first
    /// number; `next('order_no')` takes the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counter: Option<At<CounterFile>>,
    /// A queue of entries that steps put in and take out, one per generator: `{ at_most: 10000 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<At<QueueFile>>,
    /// Rows of a file whose columns are variables. One user has a row at a time:
    /// `{ file: tokens.csv, lease: session }`; or one request after the other: `{ file: tokens.csv, rotate: request }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<At<PoolFile>>,
}

/// A queue of entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct QueueFile {
    /// The maximum number of entries per generator; further ones are dropped and counted. Default: 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_most: Option<At<Scalar>>,
}

/// A pool of rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PoolFile {
    /// The file, relative to the workload's folder: CSV with a line of names, or JSON Lines.
    #[schemars(with = "String")]
    pub(crate) file: At<Scalar>,
    /// `session`: each session leases a row, and waits while all are leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) lease: Option<At<Scalar>>,
    /// `request`: each request has the next row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) rotate: Option<At<Scalar>>,
}

/// A counter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CounterFile {
    /// The first number. Default: 1.
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
