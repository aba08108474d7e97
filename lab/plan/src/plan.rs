//! A plan as judging reads it: `plan.json` without how systems are set up.

use lab_prediction::Prediction;
use lab_workload::{LoadKind, LoadSpec};
use serde::{Deserialize, Serialize};

use crate::duet::Duet;
use crate::question::{Cell, Question};
use crate::search_end::SearchEnd;
use crate::threshold::Find;

/// The version of a plan's serialised form. A plan of version 1 has no [`Question`].
pub const SCHEMA: &str = "plimsoll.plan/2";

/// All trials of a study, in run order, and what they are judged by.
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
    /// What waits, pace, ramp, and hold are divided by.
    pub speed: f64,
    /// In run order; of a study that searches for the load line, those that have been chosen.
    pub trials: Vec<Trial>,
    /// The search that chooses trials as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How the search of each cell ended, in the order of the cells; empty while it goes on, and of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search_ended: Vec<SearchEnd>,
    /// What the study asks.
    pub question: Question,
}

/// What the search for the load line begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What is searched for.
    pub find: Find,
    /// A trial of each cell; its id, block, and number of users are the search's to choose.
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
    /// The trial that runs at the same time, and which half of the machine is whose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
    /// The workload's parameters in this cell.
    #[serde(default)]
    pub parameters: Cell,
    /// What it is to carry.
    pub load: LoadSpec,
    /// How far apart the probe is meant to be sent, ms; `None` where there is none, and in older plans.
    #[serde(default)]
    pub probe_every_ms: Option<u64>,
    /// What a server that answers at once would see; `None` where the workload neither waits nor
    /// paces, so that the server alone decides.
    pub prediction: Option<Prediction>,
}

impl Plan {
    /// Returns true if the plan fixes how much is sent, whatever the server takes for it: sessions arrive on
    /// their own, or follow a pace. Throughput then is the plan's, and tells nothing of the server that
    /// carries it.
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
