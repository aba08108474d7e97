//! The raw form of bodies with the content of files.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// A part of a form with files.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PartFile {
    /// The text of the part.
    Text(At<Scalar>),
    /// A part with further settings.
    Full(Box<At<FieldFile>>),
}

/// A part of a form with further settings: a `file`, or a `text`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FieldFile {
    /// The file with the content, relative to the workload's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) file: Option<At<Scalar>>,
    /// The file name that is sent to the server. Default: the file's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) name: Option<At<Scalar>>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// The content type. Default: for a file, the type of its name; for a text, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) r#type: Option<At<Scalar>>,
}

/// A body with the content of a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ContentFile {
    /// The file, relative to the workload's folder.
    #[schemars(with = "String")]
    pub(crate) file: At<Scalar>,
    /// The content type. Default: the type of the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) r#type: Option<At<Scalar>>,
}

impl Decode for PartFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Text);
        };
        At::decode(node, problems).map(Box::new).map(Self::Full)
    }
}

impl Container for FieldFile {}

impl Decode for FieldFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a part of a form", problems)?;
        let file = Self {
            file: fields.optional("file", problems),
            name: fields.optional("name", problems),
            text: fields.optional("text", problems),
            r#type: fields.optional("type", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}

impl Container for ContentFile {}

impl Decode for ContentFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a body", problems)?;
        let file = fields.required("file", problems);
        let r#type = fields.optional("type", problems);
        fields.finish(problems);
        Some(Self {
            file: file?,
            r#type,
        })
    }
}
