//! The raw form of profiles in a study file.

use lab_units::decode::{Decode, Fields};
use lab_units::error::Problems;
use lab_units::node::{Node, Value};
use lab_units::parts::{At, Scalar};
use schemars::JsonSchema;
use serde::Serialize;

/// Whether each trial takes a profile, and with which settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileFile {
    /// `true` or `false`.
    Switch(#[schemars(with = "bool")] At<Scalar>),
    /// Settings of the profile.
    With(Box<ProfileWithFile>),
}

/// Settings of a profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileWithFile {
    /// Samples per second and core of the system, such as `199`. Default: the highest of 99, 199, 499, and 997 whose
    /// cost on this machine is within half of the budget, or 99 if none is. Long holds have lower rates, so that a
    /// trial has at most about a million samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 1, max = 4999))]
    pub rate: Option<At<Scalar>>,
    /// The source of call stacks: frame `pointers`, which the system's code must keep, or `copies` of the stacks, which
    /// need none and are dropped at once. `auto`, the default, compares both in the ramp of the first trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<FramesName>")]
    pub frames: Option<At<Scalar>>,
    /// The part of the system's CPU time that sampling may cost; a higher cost causes a warning. Default: 2%.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub budget: Option<At<Scalar>>,
    /// The details to record of the threads' waits. 0: their time on the CPU and without a core; 1: also the kernel
    /// functions in which they sleep; 3: also the stacks of their waits, which needs the rights that samples need.
    /// `auto`, the default, records as much as the user may and the budget allows; `off` records none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>", extend("enum" = ["auto", "off", 0, 1, 3, null]))]
    pub waits: Option<At<Scalar>>,
    /// Regular expressions of functions in which threads have nothing to do, besides the known ones. Waits in them are
    /// `idle`, not `lock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub idle: Option<At<Vec<At<Scalar>>>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "describes the schema only")]
enum FramesName {
    Auto,
    Pointers,
    Copies,
}

impl Decode for ProfileFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        if !matches!(node.value, Value::Map(_)) {
            return At::decode(node, problems).map(Self::Switch);
        }
        let mut fields = Fields::of(node, "a profile", problems)?;
        let rate = fields.optional("rate", problems);
        let frames = fields.optional("frames", problems);
        let budget = fields.optional("budget", problems);
        let waits = fields.optional("waits", problems);
        let idle = fields.optional("idle", problems);
        fields.finish(problems);
        Some(Self::With(Box::new(ProfileWithFile {
            rate,
            frames,
            budget,
            waits,
            idle,
        })))
    }
}
