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
    /// What is recorded of the threads' waits.
    #[serde(default, skip_serializing_if = "WaitsWanted::is_auto")]
    pub waits: WaitsWanted,
    /// Regular expressions of functions in which threads have nothing to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<String>,
}

impl Default for Profiling {
    fn default() -> Self {
        Self {
            rate: None,
            frames: FramesWanted::Auto,
            budget: PROFILE_BUDGET,
            waits: WaitsWanted::Auto,
            idle: Vec::new(),
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

/// What is to be recorded of the waits of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WaitsWanted {
    /// As much as the user may and the budget allows.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Nothing.
    #[serde(rename = "off")]
    Off,
    /// The time on the CPU and without a core.
    #[serde(rename = "0")]
    Times,
    /// And the kernel functions that threads sleep in.
    #[serde(rename = "1")]
    Sleeps,
    /// And the stacks of waits.
    #[serde(rename = "3")]
    Stacks,
}

impl WaitsWanted {
    /// All names, in the order of [`WaitsWanted::named`].
    pub const NAMES: [&str; 5] = ["auto", "off", "0", "1", "3"];

    /// By its name in a study.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Auto,
            Self::Off,
            Self::Times,
            Self::Sleeps,
            Self::Stacks,
        ];
        let at = Self::NAMES.iter().position(|one| *one == name)?;
        all.get(at).copied()
    }

    /// The highest level that is recorded; none where nothing is.
    #[must_use]
    pub fn level(self) -> Option<u8> {
        match self {
            Self::Off => None,
            Self::Times => Some(0),
            Self::Sleeps => Some(1),
            Self::Auto | Self::Stacks => Some(3),
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}
