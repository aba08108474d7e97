//! The raw form of rows from a file.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// Rows from a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum DataFile {
    /// The file alone: each user has a row, in the order of the file.
    #[schemars(with = "String")]
    File(At<Scalar>),
    /// The file with further settings.
    Full(Box<RowsFile>),
}

/// A file, and how its rows are assigned.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RowsFile {
    /// The file, relative to the workload's folder.
    #[schemars(with = "String")]
    pub(crate) file: At<Scalar>,
    /// `user`: each user has a row and keeps it. `session`: each session has another one. Default: `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) each: Option<At<Scalar>>,
    /// `listed`: in the order of the file. `shuffled`: in a random order from seed and block. Default: `listed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) order: Option<At<Scalar>>,
    /// `true`: no row is assigned twice in a trial. After the last row, users or sessions have none, and their requests
    /// are errors. By default, the rows start over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) unique: Option<At<Scalar>>,
    /// The separator between the columns of a CSV file: `";"`, `tab`. Default: a comma; for `.tsv`, a tab.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) delimiter: Option<At<Scalar>>,
}

impl RowsFile {
    /// Creates the rows of a file, with all other keys unset.
    pub(crate) fn of(file: &At<Scalar>) -> Self {
        Self {
            file: file.clone(),
            each: None,
            order: None,
            unique: None,
            delimiter: None,
        }
    }
}

impl Container for DataFile {}

impl Decode for DataFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::File);
        };
        let mut fields = Fields::of(node, "data", problems)?;
        let file = fields.required("file", problems);
        let each = fields.optional("each", problems);
        let order = fields.optional("order", problems);
        let unique = fields.optional("unique", problems);
        let delimiter = fields.optional("delimiter", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(RowsFile {
            delimiter,
            file: file?,
            each,
            order,
            unique,
        })))
    }
}
