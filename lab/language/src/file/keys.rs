//! The raw form of a workload's keys.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Problems;
use crate::node::Node;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// The source of a key: a `file`, or an environment variable (`secret`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct KeyFile {
    /// A file with a private key as PEM, relative to the workload's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) file: Option<At<Scalar>>,
    /// The name of an environment variable with a secret, or with a private key as PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) secret: Option<At<Scalar>>,
    /// The encoding of a secret: `base64`, `base64url`, `hex`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) encoding: Option<At<Scalar>>,
}

impl Container for KeyFile {}

impl Decode for KeyFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a key", problems)?;
        let key = Self {
            file: fields.optional("file", problems),
            secret: fields.optional("secret", problems),
            encoding: fields.optional("encoding", problems),
        };
        fields.finish(problems);
        Some(key)
    }
}
