//! The inputs of checks.

use std::collections::BTreeMap;

use lab_archive::TrialData;
use lab_plan::{Question, Trial};

use crate::counters::Monitored;
use crate::predicted::Predicted;
use crate::stages::Stage;
use crate::sums::{Names, Sums};

/// A trial, and its counts.
pub(crate) struct Facts<'a> {
    pub(crate) planned: &'a Trial,
    /// The plan's steps by name.
    pub(crate) predicted: &'a BTreeMap<String, Predicted>,
    pub(crate) study: &'a Question,
    pub(crate) names: &'a Names<'a>,
    pub(crate) data: &'a TrialData,
    pub(crate) sums: &'a Sums,
    /// The stages of its load, each with its sums.
    pub(crate) stages: &'a [Stage],
    /// Cores of the machine.
    pub(crate) cores: u32,
    /// Counters over the hold.
    pub(crate) monitored: &'a Monitored,
}
