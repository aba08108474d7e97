//! The combined prediction of several populations.

use lab_workload::Workload;
use lab_workload::seed_of;
use lab_workload::{LoadSpec, Population};

use crate::predict;
use crate::prediction::{Arrivals, PopulationPrediction, Prediction, StagePrediction};

/// As [`predict`], for a load with populations; `workloads` are theirs, in their order. `None` if one of them neither
/// waits nor paces, or if scripts play only some of them.
#[must_use]
pub fn predict_mix(
    workloads: &[&Workload],
    seed: u64,
    block: u32,
    load: &LoadSpec,
    budget: u64,
) -> Option<Prediction> {
    let scripted = workloads.iter().filter(|one| one.scripted.is_some());
    let scripted = scripted.count();
    if scripted > 0 && scripted < workloads.len() {
        // The requests of all together are not known.
        return None;
    }
    let each = budget / load.mix.len().max(1) as u64;
    let parts = load
        .mix
        .iter()
        .zip(workloads)
        .map(|(population, workload)| {
            let seed = seed_of(seed, &population.name);
            let mut of = predict(workload, seed, block, &load.of(population), each)?;
            if load.stages.is_empty() {
                // The stages of a later population are not those of the load.
                of.stages.clear();
            }
            Some((population, of))
        });
    let parts = parts.collect::<Option<Vec<_>>>()?;
    parts.into_iter().map(named).reduce(together)
}

/// A population's prediction as one of several.
fn named((population, mut of): (&Population, Prediction)) -> Prediction {
    of.populations = vec![PopulationPrediction {
        name: population.name.clone(),
        transactions: of.transactions,
        offered_per_s: of.offered_per_s,
        arrivals: of.arrivals,
        range: of.range,
        stages: of.stages.clone(),
    }];
    for step in &mut of.steps {
        step.name = population.step(&step.name);
    }
    for named in &mut of.named_transactions {
        named.name = population.step(&named.name);
    }
    of
}

fn together(mut sum: Prediction, other: Prediction) -> Prediction {
    // If responses only affect one population, the others' numbers are both minimum and maximum.
    sum.range = match (sum.range, other.range) {
        (None, None) => None,
        _ => {
            let (mut range, more) = (sum.bounds(), other.bounds());
            range.trial.add(more.trial);
            range.hold.add(more.hold);
            Some(range)
        }
    };
    sum.transactions += other.transactions;
    sum.hold_transactions += other.hold_transactions;
    sum.offered_per_s += other.offered_per_s;
    sum.exact &= other.exact;
    sum.arrivals = match (sum.arrivals, other.arrivals) {
        (Some(one), Some(other)) => Some(Arrivals {
            trial: one.trial + other.trial,
            hold: one.hold + other.hold,
            peak_per_s: None,
        }),
        (one, other) => one.or(other),
    };
    sum.steps.extend(other.steps);
    sum.named_transactions.extend(other.named_transactions);
    sum.populations.extend(other.populations);
    sum.stages = sum_of_stages(&sum.stages, &other.stages);
    sum
}

/// The sum for loads that all have the same stages, or none.
fn sum_of_stages(one: &[StagePrediction], other: &[StagePrediction]) -> Vec<StagePrediction> {
    let sum = |(one, other): (&StagePrediction, &StagePrediction)| StagePrediction {
        transactions: one.transactions + other.transactions,
        arrivals: one.arrivals + other.arrivals,
    };
    one.iter().zip(other).map(sum).collect()
}
