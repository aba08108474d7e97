//! A system that runs already, as a study file writes it.

use lab_language::{At, Count, Decode, Fields, Problems, Scalar, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

use super::preparation::ActionFile;

/// A server that runs already, on this machine or another. The lab does not start, pin, or stop it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AttachFile {
    /// The address: `http://host:port`, `https://host:port`, or with the scheme of the users' protocol, such as
    /// `redis://host:port`; `tcp://` and `tls://` for any other.
    #[schemars(with = "String")]
    pub(crate) url: At<Scalar>,
    /// The main process, if it runs on this machine. Its CPU and memory are sampled, with those of the processes that
    /// it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) pid: Option<At<Scalar>>,
    /// The address of the Prometheus node_exporter on its machine, if that is another one: `http://host:port/metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) node_exporter: Option<At<Scalar>>,
    /// A program with its arguments that runs on this machine before each trial, so that all trials begin alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub(crate) reset: Option<At<Vec<At<Scalar>>>>,
    /// Requests and commands that create the users' accounts before each trial, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) provision: Vec<ActionFile>,
    /// Requests and commands that then create the state with which the load begins.
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
