//! What drives a load, as written: processes of this machine, or agents on others.

use lab_language::{
    At, Container, Count, Decode, Fields, Problems, Scalar,
    node::{Node, Value},
};
use schemars::JsonSchema;
use serde::Serialize;

/// The load generators.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum GeneratorsFile {
    /// The number of processes on this machine, 1 to 64.
    Processes(#[schemars(with = "Count")] At<Scalar>),
    /// Agents on other machines.
    Away(Box<AwayFile>),
}

/// Agents on other machines (see `plimsoll hub`), and the part of the load of each.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AwayFile {
    /// The number of agents, of any that are free; or a list of their names; or those with a label.
    pub(crate) agents: WhichFile,
    /// Relative parts of the load, one for each name of the list, in its order. Default: the weight set by an agent's
    /// owner, else the measured speed (if all agents have one), else the number of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<u32>>")]
    pub(crate) weights: Option<At<Vec<At<Scalar>>>>,
}

/// The agents.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WhichFile {
    /// The number of agents, 1 to 1000.
    Any(#[schemars(with = "u32")] At<Scalar>),
    /// The names of the agents.
    Named(#[schemars(with = "Vec<String>")] At<Vec<At<Scalar>>>),
    /// A label of the agents.
    Labelled(LabelledFile),
}

/// Agents that were started with `--label KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LabelledFile {
    /// The label as `KEY=VALUE`, such as `site=eu`.
    #[schemars(with = "String")]
    pub(crate) label: At<Scalar>,
    /// The number of these agents. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub(crate) count: Option<At<Scalar>>,
}

impl Container for GeneratorsFile {}

impl Decode for GeneratorsFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        if !matches!(node.value, Value::Map(_)) {
            return At::decode(node, problems).map(Self::Processes);
        }
        let mut fields = Fields::of(node, "what drives a load", problems)?;
        let agents = fields.required("agents", problems);
        let weights = fields.optional("weights", problems);
        fields.finish(problems);
        let agents = agents?;
        Some(Self::Away(Box::new(AwayFile { agents, weights })))
    }
}

impl Decode for WhichFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Value::List(_) => At::decode(node, problems).map(Self::Named),
            Value::Map(_) => {
                let mut fields = Fields::of(node, "a choice of agents", problems)?;
                let label = fields.required("label", problems);
                let count = fields.optional("count", problems);
                fields.finish(problems);
                let label = label?;
                Some(Self::Labelled(LabelledFile { label, count }))
            }
            _ => At::decode(node, problems).map(Self::Any),
        }
    }
}
