//! From a study to its trials: their cells, order, load, and prediction.
//!
//! A plan is a function of the study, the seed, and the speed; the same three give the same bytes.

mod duet;
mod predictor;
mod question;

use std::collections::BTreeMap;

use lab_ask::AskSpec;
use lab_language::connect::{ConnectSpec, HttpVersion};
use lab_language::host::HostSpec;
use lab_language::{CellError, Secrets};
use lab_plan::{Duet, Question};
pub use lab_prediction::{
    Arrivals, PopulationPrediction, Prediction, Range, Span, StagePrediction, StepPrediction,
    TransactionPrediction,
};
use lab_workload::usual_at_once;
pub use lab_workload::{LoadKind, LoadSpec, Population, Spacing, Stage};
use serde::{Deserialize, Serialize};

use crate::command::CommandSpec;
use crate::extent::milliseconds;
pub use crate::model::MAX_TRIALS;
use crate::model::{Cell, Find, Level, Order, Study, Workload};
use crate::system::{PartSpec, SystemSpec};
use predictor::Predictor;
pub(crate) use question::question;

pub use lab_plan::{FramesWanted, HowEnded, Profiling, SCHEMA, SearchEnd, WaitsWanted};

/// Slowest and fastest speed.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// The options of a plan from the command line.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions {
    /// Divides waits, pace, ramp, and hold.
    pub speed: f64,
    /// Replaces the study's seed.
    pub seed: Option<u64>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            speed: 1.0,
            seed: None,
        }
    }
}

/// All trials of a study, in run order.
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
    /// Day 0 of the date functions.
    pub dates_from: jiff::civil::Date,
    /// Whether each trial also measures how fast the disk alone stores the data of its sessions.
    #[serde(default, skip_serializing_if = "is_false")]
    pub raw_baseline: bool,
    /// The trials in run order; in a search for the load line, the trials chosen so far.
    pub trials: Vec<Trial>,
    /// The search that chooses further trials during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How the search of each cell ended, in the order of the cells; empty while it is running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search_ended: Vec<SearchEnd>,
    /// The criteria by which the trials are judged.
    pub question: Question,
}

impl Plan {
    /// Returns a plan of these trials, with defaults for all else.
    #[must_use]
    pub fn of(study: &str, seed: u64, trials: Vec<Trial>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            study: study.to_owned(),
            title: String::new(),
            seed,
            speed: 1.0,
            dates_from: lab_workload::DEFAULT_DATES_FROM,
            raw_baseline: false,
            trials,
            search: None,
            search_ended: Vec::new(),
            question: Question::default(),
        }
    }
}

/// The start of the search for the load line: for each system, the trial whose load it varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The goal of the search.
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
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
    /// The trial that runs at the same time, and the half of the machine of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
    /// The workload's parameters in this cell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Level>,
    /// How the system is set up.
    pub system: SystemSpec,
    /// Its parts on other machines than the one to which users connect. They are started before the processes there,
    /// in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartSpec>,
    /// The settings around it.
    #[serde(default, skip_serializing_if = "HostSpec::is_default")]
    pub host: HostSpec,
    /// How its users reach it.
    #[serde(default, skip_serializing_if = "ConnectSpec::is_default")]
    pub reach: ConnectSpec,
    /// The queries sent to it during the hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<AskSpec>,
    /// The load that it receives.
    pub load: LoadSpec,
    /// The planned interval of the probe, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_every_ms: Option<u64>,
    /// The maximum number of additional connections of a user, for concurrent requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub connections_beside: u32,
    /// The prediction for a server that answers at once; `None` where the workload neither waits nor
    /// paces, so that the server alone determines the rate.
    pub prediction: Option<Prediction>,
}

impl Trial {
    /// The trial of this number, of the only cell in the first block.
    #[must_use]
    pub fn of(id: u32, system: SystemSpec, load: LoadSpec) -> Self {
        Self {
            id,
            block: 0,
            cell: Cell::default(),
            control: false,
            duet: None,
            parameters: BTreeMap::new(),
            system,
            parts: Vec::new(),
            host: HostSpec::default(),
            reach: ConnectSpec::default(),
            ask: Vec::new(),
            load,
            probe_every_ms: None,
            connections_beside: 0,
            prediction: None,
        }
    }

    /// Records the warnings about its workloads, at its speed, that are known before the run.
    fn foresee(&mut self, predictor: &mut Predictor, workloads: &[Workload]) {
        let probe = workloads.iter().find_map(|one| one.probe.as_ref());
        self.probe_every_ms = probe.map(|probe| milliseconds(probe.every, 1.0));
        if self.reach.http.version != HttpVersion::Two {
            let at_once = workloads
                .iter()
                .map(|one| one.most_at_once(usual_at_once(false)));
            self.connections_beside = at_once.max().unwrap_or(0);
        }
        self.prediction = predictor.predict(workloads, &self.parameters, self.block, &self.load);
    }

    /// All programs that are started as its system, in their order.
    pub fn programs(&self) -> impl Iterator<Item = &CommandSpec> {
        let own = match &self.system {
            SystemSpec::Command(spec) => Some(spec),
            _ => None,
        };
        let all = self.parts.iter().map(|part| &part.spec).chain(own);
        all.flat_map(|spec| spec.before.iter().map(|(_, spec)| spec).chain([spec]))
    }

    /// The machines, by their names in the study, that run a part of its system instead of the conductor's machine.
    pub fn machines(&self) -> impl Iterator<Item = &String> {
        let parts = self.parts.iter().filter_map(|part| part.host.on.as_ref());
        parts.chain(&self.host.on)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(is: &bool) -> bool {
    !is
}

/// A study that can't be planned with these options.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The speed is no number from 0.001 to 100,000.
    #[error("a speed of {0} is not within 0.001 to 100,000")]
    Speed(f64),
    /// A setting makes no sense in a cell. Loading finds these first.
    #[error("{0}")]
    Cell(String),
    /// Blocks × cells exceed [`MAX_TRIALS`].
    #[error("{0} trials are more than 10,000")]
    TooManyTrials(usize),
}

impl From<CellError> for PlanError {
    fn from(error: CellError) -> Self {
        Self::Cell(error.to_string())
    }
}

/// Plans a study.
///
/// # Errors
/// A speed out of range; settings that fail in a cell and too many trials, where the study wasn't
/// loaded from a file.
pub fn plan(study: &Study, options: &PlanOptions) -> Result<Plan, PlanError> {
    if !SPEEDS.contains(&options.speed) {
        return Err(PlanError::Speed(options.speed));
    }
    let seed = options.seed.unwrap_or(study.seed);
    let per_block = study.cells.len() + usize::from(study.control);
    let count = per_block.saturating_mul(study.trials as usize);
    if count > MAX_TRIALS {
        return Err(PlanError::TooManyTrials(count));
    }
    let cells = study
        .cells
        .iter()
        .map(|cell| trial_of(study, cell, options.speed))
        .collect::<Result<Vec<_>, _>>()?;
    let question = question(study, options.speed).map_err(PlanError::Cell)?;
    let mut plan = Plan {
        title: study.title.clone(),
        speed: options.speed,
        dates_from: study.dates_from,
        raw_baseline: study.raw_baseline,
        question,
        ..Plan::of(&study.name, seed, Vec::new())
    };
    match &study.find {
        Some(find) => {
            plan.search = Some(Search {
                find: find.clone(),
                cells,
            });
        }
        None => plan.trials = in_blocks(study, &plan, &cells)?,
    }
    Ok(plan)
}

/// The trials of all blocks, in run order.
fn in_blocks(study: &Study, plan: &Plan, cells: &[Trial]) -> Result<Vec<Trial>, PlanError> {
    let per_block = cells.len() + usize::from(study.control);
    let count = per_block * study.trials as usize;
    let workloads = cells
        .iter()
        .map(|trial| study.workloads_at(trial, plan.speed))
        .collect::<Result<Vec<_>, _>>()?;
    let mut predictor = Predictor::new(plan.seed, count);
    let mut trials = Vec::with_capacity(count);
    let sides = study.duet.then(|| duet::sides(study.trials, plan.seed));
    for block in 0..study.trials {
        // The first cell once more, as its own control.
        let mut order: Vec<usize> = (0..per_block).collect();
        if study.order == Order::Shuffled {
            lab_workload::timing::shuffle(&mut order, plan.seed, block);
        }
        if let Some(sides) = &sides {
            order = duet::in_pairs(&order, &study.cells, sides[block as usize]);
        }
        for place in order {
            let control = place == cells.len();
            let at = if control { 0 } else { place };
            let id = trials.len() as u32 + 1;
            let mut trial = Trial {
                id,
                block,
                control,
                duet: sides.is_some().then(|| duet::beside(id)),
                ..cells[at].clone()
            };
            trial.foresee(&mut predictor, &workloads[at]);
            trials.push(trial);
        }
    }
    Ok(trials)
}

impl Study {
    /// The workloads of a trial at a speed: one, or those of its populations.
    ///
    /// # Errors
    /// Invalid parameters; those of a plan's trials are valid.
    pub fn workloads_at(&self, trial: &Trial, speed: f64) -> Result<Vec<Workload>, PlanError> {
        let workloads = self.workloads_with(&trial.load, &trial.parameters);
        let workloads = workloads.map_err(|error| PlanError::Cell(error.to_string()))?;
        Ok(workloads.iter().map(|one| one.at_speed(speed)).collect())
    }
}

impl Plan {
    /// Returns all trials that the plan knows: the chosen ones, and those with which a search begins.
    pub fn every_trial(&self) -> impl Iterator<Item = &Trial> {
        let searched = self.search.iter().flat_map(|search| &search.cells);
        self.trials.iter().chain(searched)
    }

    /// Returns the study's secrets, with their values in the cells of this plan.
    #[must_use]
    pub fn secrets(&self, of_study: &Secrets) -> Secrets {
        let mut secrets = of_study.clone();
        let searched = self.search.iter().flat_map(|search| &search.cells);
        for trial in self.trials.iter().chain(searched) {
            trial
                .programs()
                .for_each(|spec| secrets.learn_env(&spec.env));
        }
        secrets
    }

    /// Returns a trial that the search chooses: its cell, by its index in [`Search::cells`], with this number of
    /// users. `workloads` are [`Study::workloads_at`] the plan's speed. `None` where the plan has no
    /// search or no such cell.
    #[must_use]
    pub fn search_trial(
        &self,
        workloads: &[Workload],
        cell: usize,
        users: u32,
        (id, block): (u32, u32),
    ) -> Option<Trial> {
        let template = self.search.as_ref()?.cells.get(cell)?;
        let load = template.load.with_users(users);
        let mut trial = Trial {
            id,
            block,
            load,
            ..template.clone()
        };
        let mut predictor = Predictor::new(self.seed, 1);
        trial.foresee(&mut predictor, workloads);
        Some(trial)
    }
}

/// A cell's trial, in no block yet.
fn trial_of(study: &Study, cell: &Cell, speed: f64) -> Result<Trial, PlanError> {
    let template = &study.cell_template;
    let parameters = template.parameters.parameters(cell)?;
    let workload = study.workload_with(&parameters);
    let workload = workload.map_err(|error| PlanError::Cell(error.to_string()))?;
    let pace = workload.session.pace;
    let of = template.system.of(cell);
    let (system, host, reach) = (of.system(cell)?, of.host(cell)?, template.connect(cell)?);
    let mut load = template.load.load(cell, pace)?.spec(speed);
    if !matches!(load.kind, LoadKind::Sequence { .. }) {
        // Windows of a long trial are long. A study with an abort limit of seconds needs windows of a second.
        let soonest = study.abort_on.iter().map(|(_, lasts)| *lasts).min();
        let looks = soonest.map(|lasts| (milliseconds(lasts, speed) / 10).max(1000));
        load.window_ms = load.window_ms.min(looks.unwrap_or(u64::MAX));
    }
    Ok(Trial {
        cell: cell.clone(),
        parts: of.parts(cell)?,
        host,
        reach,
        ask: of.ask.spec(cell)?,
        parameters,
        ..Trial::of(0, system, load)
    })
}
