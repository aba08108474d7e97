//! The validated study.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use lab_language::{Agents, WorkloadFile};
use lab_plan::checks::Limits;
use lab_plan::{Pairing, Profiling};

use super::{Cell, Decides, Factor, Find, Order, Published, Threshold, Workload};
use crate::cell::CellTemplate;
use crate::demand::GeneratorsTemplate;

/// A workload as a study has it.
#[derive(Debug, Clone)]
pub struct StudyWorkload {
    /// At speed 1 and with its own parameters.
    pub workload: Arc<Workload>,
    /// The parsed file, for compiling it with other parameters.
    pub(crate) file: Arc<WorkloadFile>,
}

/// The requirements of a study's systems on the machine that starts them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requires {
    /// Names of programs in `PATH`, or whole paths, in which a `*` is any one folder.
    pub programs: Vec<String>,
    /// The packages of Debian that bring them.
    pub debian: Vec<String>,
}

/// A whole study: one file, one question.
#[derive(Debug, Clone)]
pub struct Study {
    /// Short name, `[a-z0-9-]+`; names the archive's folder.
    pub name: String,
    /// One line for the head of the report.
    pub title: String,
    /// The question and its background, in prose; may be empty.
    pub about: String,
    /// The virtual users' workload, at speed 1 and with its own parameters. The workload of a trial
    /// is [`Study::workload_with`] its parameters.
    pub workload: Arc<Workload>,
    /// The workloads of the populations, in their order; empty where all users run the same workload.
    pub populations: Vec<StudyWorkload>,
    /// The varied factors, in file order. Never empty levels.
    pub matrix: Vec<Factor>,
    /// The cells of a block, in file order.
    pub cells: Vec<Cell>,
    /// Number of blocks: how often each cell runs.
    pub trials: u32,
    /// The maximum number of repeats of a trial that is invalid for a reason outside system and generator.
    pub repeats: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// The requirements of its systems on the machine that starts them.
    pub requires: Requires,
    /// Judgements on the server.
    pub thresholds: Vec<Threshold>,
    /// The conditions that end a trial early, and how long each must last at speed 1.
    pub abort_on: Vec<(Threshold, Duration)>,
    /// Limits of checks on the measurement that the study sets itself.
    pub checks: Limits,
    /// Published figures to compare with ours.
    pub published: Vec<Published>,
    /// The order of cells in a block.
    pub order: Order,
    /// Day 0 of the date functions.
    pub dates_from: Date,
    /// The equivalence margin: the smallest relative difference of practical relevance; a fraction.
    pub smallest_difference: f64,
    /// The measure that comparisons are decided by, where the study names one.
    pub decides: Option<Decides>,
    /// Whether the first of `cells` runs a second time in each block, as a control: the same cell under
    /// two labels, whose spread bounds the differences that the study can detect.
    pub control: bool,
    /// Whether the two variants run at the same time.
    pub duet: bool,
    /// Whether each variant then stays on one half of the machine.
    pub apart: bool,
    /// The reason for running the variants side by side or in sequence; `None` without two variants.
    pub pairing: Option<Pairing>,
    /// Whether each trial also measures how fast the disk alone stores the data of its sessions.
    pub raw_baseline: bool,
    /// The profile that each trial takes of its system.
    pub profile: Option<Profiling>,
    /// The search for the load line, instead of given numbers of users.
    pub find: Option<Find>,
    /// The system and load as written, still with references to factors; see [`crate::plan`].
    pub(crate) cell_template: CellTemplate,
    /// The hash of the values in the workload's file, without its comments, prose, and layout.
    pub(crate) workload_sha256: String,
    /// The workload as written, for compiling it with other parameters.
    pub(crate) workload_file: Arc<WorkloadFile>,
}

impl Study {
    /// Runs the variants one after the other where `duet: auto` would have them side by side.
    pub fn put_in_sequence(&mut self, why: String) {
        (self.duet, self.apart) = (false, false);
        self.pairing = Some(Pairing { auto: true, why });
    }

    /// The agents that drive its load, where it has them.
    #[must_use]
    pub fn agents(&self) -> Option<&Agents> {
        match &self.cell_template.load.generators {
            GeneratorsTemplate::Away(agents) => Some(agents),
            GeneratorsTemplate::One | GeneratorsTemplate::Processes(_) => None,
        }
    }
}
