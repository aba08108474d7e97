//! The raw form of expectations on a response.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Size;
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Decode, Fields};
use lab_units::parts::{At, OneOrMany, Scalar, Table};

/// What is expected of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ExpectFile {
    /// Its status.
    Status(OneOrMany),
    /// What else it has.
    Answer(Box<AnswerFile>),
}

/// What an answer must have. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AnswerFile {
    /// Accepted statuses, as under `expect` itself; `2xx` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<OneOrMany>,
    /// By JSON path what stands there in the body: `{ "$.items[0].state": open }`; `null` for a JSON null. Of a
    /// path that finds several values, one of them. Numbers are equal if their values are, and are compared by
    /// `"> 0"`, `">= 1"`, `"< 10"`, `"<= {{ most }}"`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) json: Table<Option<At<Scalar>>>,
    /// A JSON path, or a list, which finds a value other than `null` in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) present: Option<OneOrMany>,
    /// A JSON path, or a list, which finds nothing in the body, not even `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) absent: Option<OneOrMany>,
    /// `true`: the body is an answer of GraphQL without `errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) graphql: Option<At<Scalar>>,
    /// A file with a JSON Schema, from the workload's folder, that the body is held against: `order.schema.json`.
    /// What it refers to (`$ref`) is in it. It is judged when the answer's time is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) schema: Option<At<Scalar>>,
    /// Text that the body holds, or a list of such texts, all of which it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contains: Option<OneOrMany>,
    /// Text that the body doesn't hold, or a list of such texts, none of which it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_contains: Option<OneOrMany>,
    /// From the send to the last byte: `< 1s`. A slower answer is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) time: Option<At<Scalar>>,
    /// Size of the body, decoded: `< 20 kB`, `> 0`, `1 kB..2 kB`, `512 B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) size: Option<At<Scalar>>,
    /// By name a text that the header holds; an empty text asks that the header is there.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) header: Table<At<Scalar>>,
}

impl Decode for ExpectFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Map(_) => AnswerFile::decode(node, problems)
                .map(Box::new)
                .map(Self::Answer),
            _ => OneOrMany::decode(node, problems).map(Self::Status),
        }
    }
}

impl Decode for AnswerFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "what is expected of an answer", problems)?;
        let file = Self {
            status: fields.optional("status", problems),
            json: fields.optional("json", problems).unwrap_or_default(),
            present: fields.optional("present", problems),
            absent: fields.optional("absent", problems),
            graphql: fields.optional("graphql", problems),
            schema: fields.optional("schema", problems),
            contains: fields.optional("contains", problems),
            not_contains: fields.optional("not_contains", problems),
            time: fields.optional("time", problems),
            size: fields.optional("size", problems),
            header: fields.optional("header", problems).unwrap_or_default(),
        };
        fields.finish(problems);
        Some(file)
    }
}
