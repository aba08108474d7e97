//! How the CPU time of a study's systems is sampled, as the plan keeps it.

use serde::{Deserialize, Serialize};

/// The part of the system's CPU time that sampling may cost, by default.
pub const PROFILE_BUDGET: f64 = 0.02;

/// The profile that each trial takes of its system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profiling {
    /// Samples a second of a core; `None` takes what the budget allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How call stacks of user code are found.
    #[serde(default)]
    pub frames: FramesWanted,
    /// The part of the system's CPU time that sampling may cost.
    pub budget: f64,
}

impl Default for Profiling {
    fn default() -> Self {
        Self {
            rate: None,
            frames: FramesWanted::Auto,
            budget: PROFILE_BUDGET,
        }
    }
}

/// How call stacks of user code are to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramesWanted {
    /// Chosen in the first trial, for all trials.
    #[default]
    Auto,
    /// By the frame pointers that the code keeps.
    Pointers,
    /// By copies of the stacks and the unwind tables of the files.
    Copies,
}

impl FramesWanted {
    /// All names, in the order of [`FramesWanted::named`].
    pub const NAMES: [&str; 3] = ["auto", "pointers", "copies"];

    /// By its name in a study.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "pointers" => Some(Self::Pointers),
            "copies" => Some(Self::Copies),
            _ => None,
        }
    }
}
