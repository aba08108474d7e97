//! The search for the load line, as a study file writes it.

use lab_language::{At, Container, Decode, Fields, Limit, Problems, Scalar, Table, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// The search for the most users that the system carries within thresholds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FindFile {
    /// Between which numbers of users it looks.
    pub(crate) users: UsersFile,
    /// What must hold for a number of users to be carried, as under `thresholds`; an `error_rate` of
    /// `rate < 0.1%` too, unless another is said.
    #[schemars(with = "Table<Vec<Limit>>")]
    pub(crate) subject_to: At<Table<Vec<At<Scalar>>>>,
    /// How near to each other the levels on both sides of the line are in the end, 0.5% to 50%;
    /// 5% unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<At<Scalar>>,
    /// Trials at each of these two levels in the end; 6 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 100))]
    pub(crate) trials: Option<At<Scalar>>,
    /// The part of the trials that has to hold at a safe number of users, 50% to 99%: the search goes on
    /// below the line until that is shown, 95 % sure. 95% takes 150 trials or so more, 80% some 40.
    /// Without it, the report says what the trials show that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) safe: Option<At<Scalar>>,
}

/// Between which numbers of users a search looks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct UsersFile {
    /// Fewest users tried; 1 unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000_000))]
    pub(crate) min: Option<At<Scalar>>,
    /// Most users tried.
    #[schemars(with = "u32", range(min = 1, max = 1_000_000))]
    pub(crate) max: At<Scalar>,
}

impl Container for FindFile {}

impl Decode for FindFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a search", problems)?;
        let users = fields.required("users", problems);
        let subject_to = fields.required("subject_to", problems);
        let resolution = fields.optional("resolution", problems);
        let trials = fields.optional("trials", problems);
        let safe = fields.optional("safe", problems);
        fields.finish(problems);
        Some(Self {
            users: users?,
            subject_to: subject_to?,
            resolution,
            trials,
            safe,
        })
    }
}

impl Decode for UsersFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a range of users", problems)?;
        let min = fields.optional("min", problems);
        let max = fields.required("max", problems);
        fields.finish(problems);
        Some(Self { min, max: max? })
    }
}
