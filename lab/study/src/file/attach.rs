//! A system that runs already, as a study file writes it.

use lab_language::{At, Count, Decode, Fields, Problems, Scalar, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

use super::preparation::ActionFile;

/// A server that runs already, here or elsewhere: it is neither started, pinned, nor stopped.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AttachFile {
    /// Where it is: `http://host:port`, `https://host:port`, or the scheme of what users speak, such as
    /// `redis://host:port`; `tcp://` and `tls://` for whatever else.
    #[schemars(with = "String")]
    pub(crate) url: At<Scalar>,
    /// Its main process, where it runs on this machine: its CPU and memory are sampled, with those
    /// of the processes that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) pid: Option<At<Scalar>>,
    /// `http://host:port/metrics` of the Prometheus node_exporter on its machine, where it runs
    /// elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) node_exporter: Option<At<Scalar>>,
    /// A program with its arguments that runs here before each trial, to make every trial begin
    /// alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub(crate) reset: Option<At<Vec<At<Scalar>>>>,
    /// What gives the users their accounts before each trial: requests and commands, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) provision: Vec<ActionFile>,
    /// What fills the state that the load begins with, after that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) fill: Vec<ActionFile>,
}

impl Decode for AttachFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "an attached system", problems)?;
        let url = fields.required("url", problems);
        let pid = fields.optional("pid", problems);
        let node_exporter = fields.optional("node_exporter", problems);
        let reset = fields.optional("reset", problems);
        let provision: Option<Vec<_>> = fields.optional("provision", problems);
        let fill: Option<Vec<_>> = fields.optional("fill", problems);
        fields.finish(problems);
        Some(Self {
            url: url?,
            pid,
            node_exporter,
            reset,
            provision: provision.unwrap_or_default(),
            fill: fill.unwrap_or_default(),
        })
    }
}
