//! What a study asks, as far as its answer is judged by it.

use std::collections::BTreeMap;

use lab_counts::Scope;
use lab_workload::{Level, Need, Transfer};
use serde::{Deserialize, Serialize};

use crate::abort::Abort;
use crate::checks::Limits;
use crate::decides::Decides;
use crate::duet::Pairing;
use crate::profiling::Profiling;
use crate::threshold::Threshold;

/// The name of the factor whose levels are the variants of a study.
pub const VARIANT: &str = "variant";

/// One cell: level by factor name.
pub type Cell = BTreeMap<String, Level>;

/// One varied factor and its levels, in file order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name, as in `matrix:`.
    pub name: String,
    /// At least one level.
    pub levels: Vec<Level>,
}

/// The order in which a block runs its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A new seeded order in each block, so that drift of the machine favours no cell.
    #[default]
    Shuffled,
    /// As the file lists them.
    Listed,
}

/// A CSV of published figures: its name and its text, `#` lines being its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// File name without folder.
    pub name: String,
    /// The whole file.
    pub text: String,
}

/// A study, without how its system is set up and what its requests say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The question and its background, in prose; may be empty.
    pub about: String,
    /// The varied factors, in file order. Never empty levels.
    pub matrix: Vec<Factor>,
    /// The cells of a block, in file order.
    pub cells: Vec<Cell>,
    /// Number of blocks: how often each cell runs.
    pub trials: u32,
    /// How often a trial is repeated that is no measurement for a reason outside system and generator.
    #[serde(default)]
    pub repeats: u32,
    /// The order of cells in a block.
    pub order: Order,
    /// Whether the first of `cells` runs a second time in each block, as a control.
    pub control: bool,
    /// Whether the two variants run at the same time, each on a half of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duet: bool,
    /// Whether the trials of a duet stay on their halves of the machine; otherwise each may use the cores
    /// of both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// The reason for running the two variants side by side or in sequence; `None` without two variants, and in
    /// older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// The smallest relative difference that matters to whoever asks; a fraction.
    pub smallest_difference: f64,
    /// The measure that comparisons are decided by; `None` leaves it to the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
    /// Judgements on the server.
    pub thresholds: Vec<Threshold>,
    /// What ends a trial before its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abort_on: Vec<Abort>,
    /// Limits of checks that the study sets itself.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub checks: Limits,
    /// The profile that each trial takes of its system; `None` takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profiling>,
    /// Published figures to set beside ours.
    pub published: Vec<Published>,
    /// What the users do.
    pub workload: WorkloadOutline,
}

/// What the users do, without what their requests say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadOutline {
    /// Short name; of several populations, the names of all of theirs.
    pub name: String,
    /// SHA-256, in hex, of what the workload's file says, whatever its comments, its prose, and its
    /// layout: of runs with the same one the users do the same.
    pub sha256: String,
    /// Names of the session's steps, in session order.
    pub steps: Vec<String>,
    /// Whether a request is measured beside the load.
    pub probe: bool,
    /// What each population does, in their order; empty where all users do the same. `steps` are all of
    /// theirs then, and there is no session that all go through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationOutline>,
    /// The tags of the steps, in the order in which they come first; empty where none has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagOutline>,
    /// Names of the transactions, as their windows have them: population after population, of each the session first
    /// where it has more than one request. Empty in older plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<String>,
    /// The session, once for each set of parameters that a trial has.
    pub sessions: Vec<SessionOutline>,
    /// What steps need of answers, by their names among those of all: they are skipped where it isn't there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Names of the steps whose requests the seed doesn't fix, among those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseeded_steps: Vec<String>,
    /// What users share, by name, whatever population they are of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedOutline>,
    /// With fewer users it makes no sense; 0 where it does with any, and where there are populations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_users: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl WorkloadOutline {
    /// Names of the steps that a scope narrows the load to; `None` where it has all of them, and of a transaction, whose
    /// figures are none of requests.
    #[must_use]
    pub fn steps_of<'a>(&'a self, scope: &'a Scope) -> Option<&'a [String]> {
        let population = |name: &String| self.populations.iter().find(|one| one.name == *name);
        let tag = |name: &String| self.tags.iter().find(|one| one.name == *name);
        match scope {
            Scope::All | Scope::Stage(_) | Scope::Transaction(_) => None,
            Scope::Step(name) => Some(std::slice::from_ref(name)),
            Scope::Population(name) => Some(population(name).map_or(&[], |one| &one.steps)),
            Scope::Tag(name) => Some(tag(name).map_or(&[], |one| &one.steps)),
        }
    }
}

/// What a population does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PopulationOutline {
    /// Its name.
    pub name: String,
    /// Short name of its workload.
    pub workload: String,
    /// Names of its session's steps, as they are among those of all.
    pub steps: Vec<String>,
    /// As of [`WorkloadOutline`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_users: u32,
}

/// Something that users share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedOutline {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SharedKind,
    /// Names of the steps that put something in, among those of all; of a queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<String>,
    /// Names of the steps that take something out, likewise; of a pool those with which sessions begin that have a row to
    /// themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
}

/// What users share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// Numbers, each of which one request gets over all generators.
    Counter,
    /// Entries, in each generator for itself.
    Queue,
    /// Rows of a file, divided among the workers of all generators.
    Pool,
}

/// A tag, and the steps that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TagOutline {
    /// Its name.
    pub name: String,
    /// Names of its steps, as they are among those of all; at least one.
    pub steps: Vec<String>,
}

/// A session with one set of values of the workload's parameters, at speed 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOutline {
    /// Those of [`Trial::parameters`](crate::Trial::parameters).
    pub parameters: Cell,
    /// Fixed cycle time; `None` starts the next cycle at once.
    pub pace_s: Option<f64>,
    /// In session order.
    pub steps: Vec<StepOutline>,
    /// What a session carries, if its rate is of interest.
    pub transfer: Option<Transfer>,
}

/// A step of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOutline {
    /// As shown in reports.
    pub name: String,
    /// Mean think time before its first request.
    pub wait_s: f64,
    /// How often it is done in a row.
    pub repeat: u32,
    /// Requests, one after the other.
    pub requests: u64,
    /// The part of the sessions that does it.
    pub share: f64,
}

impl Question {
    /// The session of a trial with these parameters.
    #[must_use]
    pub fn session(&self, parameters: &Cell) -> Option<&SessionOutline> {
        let mut sessions = self.workload.sessions.iter();
        sessions.find(|session| session.parameters == *parameters)
    }
}
