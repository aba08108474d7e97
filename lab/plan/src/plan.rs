//! The plan for judging: `plan.json` without the setup of systems.

use lab_prediction::Prediction;
use lab_workload::{LoadKind, LoadSpec};
use serde::{Deserialize, Serialize};

use crate::duet::Duet;
use crate::question::{Cell, Question};
use crate::search_end::SearchEnd;
use crate::threshold::Find;

/// The version of a plan's serialised form. A plan of version 1 has no [`Question`].
pub const SCHEMA: &str = "plimsoll.plan/2";

/// All trials of a study, in run order, and the rules for judging them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The study's name.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// The divisor of waits, pace, ramp, and hold.
    pub speed: f64,
    /// In run order; for a study that searches for the load line, the trials chosen so far.
    pub trials: Vec<Trial>,
    /// The search that chooses trials during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The end of the search of each cell, in the order of the cells; empty while it runs, and in earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search_ended: Vec<SearchEnd>,
    /// The study's question.
    pub question: Question,
}

/// The start of the search for the load line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The goal of the search.
    pub find: Find,
    /// A trial of each cell; the search chooses its id, block, and number of users.
    pub cells: Vec<Trial>,
}

/// One run of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// From 1, in run order.
    pub id: u32,
    /// From 0.
    pub block: u32,
    /// Level by factor.
    pub cell: Cell,
    /// A second run of its cell in this block, for comparing the system with itself.
    #[serde(default)]
    pub control: bool,
    /// The trial that runs at the same time, and the side of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
    /// The workload's parameters in this cell.
    #[serde(default)]
    pub parameters: Cell,
    /// Its load.
    pub load: LoadSpec,
    /// The planned interval of the probe, ms; `None` without a probe, and in older plans.
    #[serde(default)]
    pub probe_every_ms: Option<u64>,
    /// The load on a server that responds at once; `None` if the workload neither waits nor paces, so that the server
    /// alone decides.
    pub prediction: Option<Prediction>,
}

impl Plan {
    /// Returns true if the plan fixes the load, whatever the server's speed: sessions arrive on their own, or follow a
    /// pace. Throughput is then the plan's, and not a property of a server that sustains it.
    #[must_use]
    pub fn fixes_rate(&self) -> bool {
        let searched = self.search.iter().flat_map(|search| &search.cells);
        let mut trials = self.trials.iter().chain(searched).peekable();
        trials.peek().is_some() && trials.all(|trial| self.fixes_rate_of(trial))
    }

    fn fixes_rate_of(&self, trial: &Trial) -> bool {
        let arrives = |kind: LoadKind| matches!(kind, LoadKind::Arrival { .. });
        let load = &trial.load;
        match load.mix.is_empty() {
            false => load.mix.iter().all(|one| arrives(one.kind)),
            true => {
                let session = self.question.session(&trial.parameters);
                let has_pace = session.is_some_and(|session| session.pace_s.is_some());
                arrives(load.kind) || (load.kind == LoadKind::Users && has_pace)
            }
        }
    }
}
