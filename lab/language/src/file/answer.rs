//! The raw form of expectations on a response.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Size;
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Decode, Fields};
use lab_units::parts::{At, OneOrMany, Scalar, Table};

/// The expectations on a response.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ExpectFile {
    /// The accepted statuses.
    Status(OneOrMany),
    /// Statuses and further expectations.
    Answer(Box<AnswerFile>),
}

/// Expectations on a response. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AnswerFile {
    /// Accepted statuses, as in the short form of `expect`. Default: `2xx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<OneOrMany>,
    /// Expected values in the body by JSON path: `{ "$.items[0].state": open }`; `null` for a JSON null. If a path
    /// finds several values, one of them must match. Numbers match by value, or by comparison: `"> 0"`, `">= 1"`,
    /// `"< 10"`, `"<= {{ most }}"`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) json: Table<Option<At<Scalar>>>,
    /// A JSON path, or a list, that must find a value other than `null` in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) present: Option<OneOrMany>,
    /// A JSON path, or a list, that must find nothing in the body, not even `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) absent: Option<OneOrMany>,
    /// `true`: the body must be a GraphQL response without `errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) graphql: Option<At<Scalar>>,
    /// The file with a JSON Schema that the body must match, relative to the workload's folder: `order.schema.json`. It
    /// must contain all that it refers to (`$ref`). The body is validated after the response's time is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) schema: Option<At<Scalar>>,
    /// Text that the body must contain, or a list of texts, all of which it must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contains: Option<OneOrMany>,
    /// Text that the body must not contain, or a list of texts, none of which it may contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_contains: Option<OneOrMany>,
    /// The limit of the time from the send to the last byte: `< 1s`. A slower response is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) time: Option<At<Scalar>>,
    /// The size of the decoded body: `< 20 kB`, `> 0`, `1 kB..2 kB`, `512 B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub(crate) size: Option<At<Scalar>>,
    /// Texts that headers must contain, by header name; an empty text only requires the header.
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
