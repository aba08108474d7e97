//! What a study needs on this machine, as a study file writes it.

use lab_language::{Container, Decode, Fields, OneOrMany, Problems, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// Programs that the systems of a study need on the machine that starts them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RequiresFile {
    /// Names of programs in `PATH`, such as `nginx`, or absolute paths, in which `*` matches any one folder:
    /// `/usr/lib/postgresql/*/bin/postgres`.
    pub(crate) programs: OneOrMany,
    /// The Debian packages with these programs, as for `apt-get install`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) debian: Option<OneOrMany>,
}

impl Container for RequiresFile {}

impl Decode for RequiresFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a list of requirements", problems)?;
        let programs = fields.required("programs", problems);
        let debian = fields.optional("debian", problems);
        fields.finish(problems);
        Some(Self {
            programs: programs?,
            debian,
        })
    }
}
