//! The end of the search of a cell, as the plan of its run stores it and its result reports it.

use lab_stats::search::End;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    /// The search has its answer.
    Finished,
    /// The lowest level can't be measured.
    Unmeasurable,
    /// Repeated trials were disturbed from outside.
    Disturbed,
    /// The preparation failed, or the system didn't start, twice in a row.
    PreparationFailed,
    /// The system failed at the lowest level each time.
    SystemFailed,
    /// The trials still contradicted each other at the maximum number of trials.
    Unsettled,
    /// The search was ended from outside, or is still running.
    Interrupted,
}

/// The end of the search of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchEnd {
    /// How the search ended.
    pub how: HowEnded,
    /// The number of users in the last trial; absent without a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
}

impl HowEnded {
    /// Returns true if the search has its answer.
    #[must_use]
    pub fn is_finished(self) -> bool {
        self == Self::Finished
    }
}

impl From<End> for HowEnded {
    fn from(end: End) -> Self {
        match end {
            End::Found | End::BelowMin | End::Ceiling(_) => Self::Finished,
            End::Unmeasurable => Self::Unmeasurable,
            End::Disturbed => Self::Disturbed,
            End::Unprepared => Self::PreparationFailed,
            End::SystemFailed => Self::SystemFailed,
            End::Unsettled => Self::Unsettled,
        }
    }
}
