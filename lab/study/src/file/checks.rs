//! Limits of checks, as a study file writes them.

use std::borrow::Cow;

use lab_language::{
    At, Decode, Fields, Problems, Scalar, Table,
    node::{Node, Value},
};
use lab_plan::checks::{self, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

/// Limits by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct ChecksFile(pub(crate) Table<LimitFile>);

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum LimitFile {
    /// The limit beyond which a trial is invalid.
    Invalid(At<Scalar>),
    /// One limit, or both.
    Both(BothFile),
}

/// Both limits of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct BothFile {
    /// The limit beyond which the check warns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warn: Option<At<Scalar>>,
    /// The limit beyond which a trial is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) invalid: Option<At<Scalar>>,
}

impl Decode for ChecksFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        Table::decode(node, problems).map(Self)
    }
}

impl Decode for LimitFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        if !matches!(node.value, Value::Map(_)) {
            return At::decode(node, problems).map(Self::Invalid);
        }
        let mut fields = Fields::of(node, "a limit", problems)?;
        let warn = fields.optional("warn", problems);
        let invalid = fields.optional("invalid", problems);
        fields.finish(problems);
        Some(Self::Both(BothFile { warn, invalid }))
    }
}

impl JsonSchema for ChecksFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Checks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let limits = checks::limits().map(|limit| {
            let (unit, example) = match limit.unit {
                Unit::Percent => ("per cent", "40%"),
                Unit::Milliseconds => ("a length of time", "50ms"),
            };
            let one = json!({ "type": ["string", "number"] });
            let schema = json!({
                "description": format!("{} ({unit}, such as `{example}`).", limit.figure),
                "anyOf": [
                    one,
                    {
                        "type": "object",
                        "properties": { "warn": one, "invalid": one },
                        "additionalProperties": false
                    }
                ]
            });
            (limit.key.to_owned(), schema)
        });
        let retired = checks::RETIRED.iter().map(|(key, why)| {
            let description = format!("Without effect: {why}.");
            let schema = json!({ "description": description, "deprecated": true });
            ((*key).to_owned(), schema)
        });
        let limits: Map<String, Json> = limits.chain(retired).collect();
        json_schema!({ "type": "object", "properties": limits, "additionalProperties": false })
    }
}
