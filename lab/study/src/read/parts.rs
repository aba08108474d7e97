//! The parts of a study that a threshold may name: steps, stages, populations, and measures.

use std::collections::BTreeSet;

use lab_workload::{Step, step_of};

use super::stages::name_of;
use crate::file::StudyFile;
use crate::model::{StudyWorkload, Workload};

/// The names of a study's parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Steps, with whether they listen for events; of populations, with theirs before them.
    pub(super) steps: Vec<(String, bool)>,
    /// Stages, with whether they change their level.
    pub(super) stages: Vec<(String, bool)>,
    pub(super) populations: Vec<String>,
    /// Tags of steps.
    pub(super) tags: Vec<String>,
    /// Transactions; of populations, with theirs before them.
    pub(super) transactions: Vec<String>,
    /// Measures of all steps, with their units.
    pub(super) measures: Vec<(String, String)>,
}

impl Parts {
    pub(super) fn of(file: &StudyFile, own: &Workload, populations: &[StudyWorkload]) -> Self {
        let load = &file.load.value;
        let stages = load.stages.iter().flat_map(|stages| &stages.value);
        let stage = |(number, stage): (usize, &crate::file::At<crate::file::StageFile>)| {
            (name_of(number, &stage.value), stage.value.ramps.is_some())
        };
        let mix = load.mix.iter().flat_map(|mix| &mix.value);
        let names: Vec<String> = mix.map(|one| one.value.population.text()).collect();
        let of_populations = populations.iter().map(|of| &*of.workload);
        let mut each: Vec<(&str, &Workload)> = names
            .iter()
            .map(String::as_str)
            .zip(of_populations)
            .collect();
        if each.is_empty() {
            each.push(("", own));
        }
        let all = each.iter().flat_map(|(name, of)| steps(name, of)).collect();
        let of_steps = each.iter().flat_map(|(_, of)| &of.session.steps);
        let mut tags: Vec<String> = of_steps.flat_map(|step| step.tags.clone()).collect();
        tags.sort_unstable();
        tags.dedup();
        let measures = each.iter().flat_map(|(_, of)| &of.session.steps);
        let measures = measures.flat_map(|step| &step.measures);
        let measures: BTreeSet<_> = measures
            .map(|one| (one.name.clone(), one.unit.clone()))
            .collect();
        let transactions = each.iter().flat_map(|(name, of)| {
            let names = of.session.transaction_names();
            names.map(|transaction| step_of(name, transaction))
        });
        let transactions = transactions.collect();
        Self {
            steps: all,
            stages: (1..).zip(stages).map(stage).collect(),
            populations: names,
            tags,
            transactions,
            measures: measures.into_iter().collect(),
        }
    }
}

fn steps(population: &str, workload: &Workload) -> Vec<(String, bool)> {
    let listens = |step: &Step| step.requests.iter().any(|one| one.events.is_some());
    let steps = workload.session.steps.iter();
    let steps = steps.map(|step| (step_of(population, &step.name), listens(step)));
    steps.collect()
}
