//! The search for the load line, as a study file writes it.

use lab_language::{At, Container, Decode, Fields, Limit, Problems, Scalar, Table, node::Node};
use schemars::JsonSchema;
use serde::Serialize;

/// The search for the maximum number of users that the system sustains within thresholds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FindFile {
    /// The range of the search.
    pub(crate) users: UsersFile,
    /// The thresholds that a sustained number of users meets, as under `thresholds`. Default for `error_rate`:
    /// `rate < 0.1%`.
    #[schemars(with = "Table<Vec<Limit>>")]
    pub(crate) subject_to: At<Table<Vec<At<Scalar>>>>,
    /// The final relative distance between the levels on both sides of the load line, 0.5% to 50%. Default: 5%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<At<Scalar>>,
    /// The number of trials at each of these two levels at the end. Default: 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 100))]
    pub(crate) trials: Option<At<Scalar>>,
    /// The part of the trials that must pass at a safe number of users, 50% to 99%. The search continues below the load
    /// line until this is shown with 95 % confidence: 95% takes about 150 more trials, 80% about 40. By default, the
    /// report states the safe line that the trials show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) safe: Option<At<Scalar>>,
}

/// The range of a search, in users.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct UsersFile {
    /// The minimum number of users. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000_000))]
    pub(crate) min: Option<At<Scalar>>,
    /// The maximum number of users.
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
