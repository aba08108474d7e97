//! A study's question, as far as judging needs it.

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

/// A CSV of published figures: its name and its text, with the source in `#` lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// File name without folder.
    pub name: String,
    /// The whole file.
    pub text: String,
}

/// A study, without the setup of its system and the content of its requests.
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
    /// Most repeats of a trial that is invalid for a reason outside system and generator.
    #[serde(default)]
    pub repeats: u32,
    /// The order of cells in a block.
    pub order: Order,
    /// True if the first of `cells` runs a second time in each block, as a control.
    pub control: bool,
    /// True if the two variants run at the same time, each on a half of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duet: bool,
    /// True if the trials of a duet stay on their halves of the machine; otherwise each may use the cores
    /// of both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// The reason for running the two variants side by side or in sequence; `None` without two variants, and in
    /// older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// The smallest relevant difference, relative; a fraction.
    pub smallest_difference: f64,
    /// The measure that decides comparisons; `None` uses the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
    /// Judgements on the server.
    pub thresholds: Vec<Threshold>,
    /// Abort conditions of a trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abort_on: Vec<Abort>,
    /// Limits of checks that the study sets.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub checks: Limits,
    /// The profile that each trial takes of its system; `None` takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profiling>,
    /// Published figures to show with the results.
    pub published: Vec<Published>,
    /// The behaviour of the users.
    pub workload: WorkloadOutline,
}

/// The behaviour of the users, without the content of their requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadOutline {
    /// Short name; of several populations, the names of all of theirs.
    pub name: String,
    /// SHA-256, in hex, of the workload file's content, without comments, prose, and layout: runs with the same hash
    /// have the same user behaviour.
    pub sha256: String,
    /// Names of the session's steps, in session order.
    pub steps: Vec<String>,
    /// True if a request is measured besides the load.
    pub probe: bool,
    /// The behaviour of each population, in their order; empty if all users do the same. `steps` are then all of
    /// theirs, and there is no common session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationOutline>,
    /// The tags of the steps, in the order of their first use; empty without tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagOutline>,
    /// Names of the transactions, as in their windows: by population, each with the session first if it has more than
    /// one request. Empty in older plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<String>,
    /// The session, once for each set of parameters that a trial has.
    pub sessions: Vec<SessionOutline>,
    /// Values that steps need of responses, by step name: a step without its value is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Names of the steps whose requests the seed doesn't determine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseeded_steps: Vec<String>,
    /// State shared by users, by name, of all populations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedOutline>,
    /// The fewest users that make sense; 0 for any number, and with populations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_users: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl WorkloadOutline {
    /// Names of the steps in a scope; `None` if it has all of them, and for a transaction or a measure, whose
    /// figures are not those of requests.
    #[must_use]
    pub fn steps_of<'a>(&'a self, scope: &'a Scope) -> Option<&'a [String]> {
        let population = |name: &String| self.populations.iter().find(|one| one.name == *name);
        let tag = |name: &String| self.tags.iter().find(|one| one.name == *name);
        match scope {
            Scope::All | Scope::Stage(_) | Scope::Transaction(_) | Scope::Measure(_) => None,
            Scope::Step(name) => Some(std::slice::from_ref(name)),
            Scope::Population(name) => Some(population(name).map_or(&[], |one| &one.steps)),
            Scope::Tag(name) => Some(tag(name).map_or(&[], |one| &one.steps)),
        }
    }
}

/// The behaviour of a population.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PopulationOutline {
    /// Its name.
    pub name: String,
    /// Short name of its workload.
    pub workload: String,
    /// Names of its session's steps, as in the list of all.
    pub steps: Vec<String>,
    /// As of [`WorkloadOutline`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_users: u32,
}

/// State shared by users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedOutline {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SharedKind,
    /// Names of the steps that add to a queue, as in the list of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<String>,
    /// Names of the steps that take from it, likewise; for a pool, the first steps of sessions that lease a row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
}

/// The kinds of shared state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// Numbers, each used by one request over all generators.
    Counter,
    /// Entries, separate in each generator.
    Queue,
    /// Rows of a file, divided among the workers of all generators.
    Pool,
}

/// A tag, and the steps that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TagOutline {
    /// Its name.
    pub name: String,
    /// Names of its steps, as in the list of all; at least one.
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
    /// The data that a session transfers, if its rate is of interest.
    pub transfer: Option<Transfer>,
}

/// A step of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOutline {
    /// The name in reports.
    pub name: String,
    /// Mean think time before its first request.
    pub wait_s: f64,
    /// Rounds in sequence.
    pub repeat: u32,
    /// Requests, one after the other.
    pub requests: u64,
    /// The part of the sessions that runs it.
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
