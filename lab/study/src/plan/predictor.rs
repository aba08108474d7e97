//! Predicts the trials of a plan; those alike in workload, block, and load share one replay.

use lab_prediction::{Prediction, predict, predict_mix};
use lab_workload::{LoadSpec, Workload};

use crate::model::Cell;

/// Waits that the predictions of one plan may replay together: a few seconds' work.
const PLAN_WAITS: u64 = 400_000_000;

/// Predicts the trials of a plan; those alike in workload, block, and load share one replay.
pub(super) struct Predictor {
    seed: u64,
    budget: u64,
    known: Vec<(Key, Option<Prediction>)>,
}

/// The parameters identify the resulting workload.
type Key = (u32, LoadSpec, Cell);

impl Predictor {
    pub(super) fn new(seed: u64, trials: usize) -> Self {
        let budget = PLAN_WAITS / trials.max(1) as u64;
        Self {
            seed,
            budget,
            known: Vec::new(),
        }
    }

    /// Predicts a trial of `block`. The workloads, which follow from `parameters` and the load, are at the
    /// plan's speed: one, or those of its populations.
    pub(super) fn predict(
        &mut self,
        workloads: &[Workload],
        parameters: &Cell,
        block: u32,
        load: &LoadSpec,
    ) -> Option<Prediction> {
        let same = |known: &Key| (known.0, &known.1) == (block, load) && known.2 == *parameters;
        // A block has few different loads.
        if let Some((_, known)) = self.known.iter().rev().find(|(known, _)| same(known)) {
            return known.clone();
        }
        let prediction = match (workloads, load.mix.is_empty()) {
            ([workload, ..], true) => predict(workload, self.seed, block, load, self.budget),
            _ => {
                let workloads: Vec<&Workload> = workloads.iter().collect();
                predict_mix(&workloads, self.seed, block, load, self.budget)
            }
        };
        let key = (block, load.clone(), parameters.clone());
        self.known.push((key, prediction.clone()));
        prediction
    }
}
