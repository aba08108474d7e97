//! Cells: means over their valid trials. Invalid trials are counted and left out of every figure.

use std::collections::BTreeSet;

use lab_stats::{WeightedMean, mean_interval};
use lab_study::model::{Cell, Level, Study};

use super::trial::as_f64;
use crate::model::{
    CellSummary, Counters, Estimate, StepAnalysis, StepSummary, Times, TimesSummary, TrialAnalysis,
    Verdict,
};

/// One summary per cell that ran, in the order of the study's levels.
pub(super) fn summarise(
    study: &Study,
    steps: &[String],
    trials: &[TrialAnalysis],
) -> Vec<CellSummary> {
    let mut cells: Vec<&Cell> = Vec::new();
    for trial in trials {
        if !cells.contains(&&trial.cell) {
            cells.push(&trial.cell);
        }
    }
    cells.sort_by_key(|cell| position(study, cell));
    cells
        .into_iter()
        .map(|cell| {
            let all: Vec<&TrialAnalysis> =
                trials.iter().filter(|trial| trial.cell == *cell).collect();
            cell_summary(cell, steps, &all)
        })
        .collect()
}

/// Where each level stands in its factor, factors in file order.
fn position(study: &Study, cell: &Cell) -> Vec<usize> {
    study
        .matrix
        .iter()
        .map(|factor| {
            let level: Option<&Level> = cell.get(&factor.name);
            level
                .and_then(|level| factor.levels.iter().position(|other| other == level))
                .unwrap_or(usize::MAX)
        })
        .collect()
}

fn cell_summary(cell: &Cell, steps: &[String], all: &[&TrialAnalysis]) -> CellSummary {
    let valid: Vec<&TrialAnalysis> = all
        .iter()
        .copied()
        .filter(|trial| trial.verdict == Verdict::Valid)
        .collect();
    let probes: Vec<Times> = valid.iter().filter_map(|trial| trial.probe_ms).collect();
    CellSummary {
        cell: cell.clone(),
        label: all
            .first()
            .map(|trial| trial.label.clone())
            .unwrap_or_default(),
        users: all.first().map_or(0, |trial| trial.users),
        trials: all.len(),
        valid_trials: valid.len(),
        transactions: estimate(valid.iter().map(|trial| Some(as_f64(trial.transactions)))),
        errors: valid.iter().map(|trial| trial.errors).sum(),
        skipped: valid.iter().map(|trial| trial.skipped).sum(),
        errors_per_trial: mean_of(valid.iter().map(|trial| trial.errors)),
        skipped_per_trial: mean_of(valid.iter().map(|trial| trial.skipped)),
        throughput_per_s: estimate(valid.iter().map(|trial| trial.throughput_per_s)),
        response_ms: times(valid.iter().map(|trial| trial.response_ms)),
        steps: steps
            .iter()
            .enumerate()
            .map(|(at, name)| step(name, at, &valid))
            .collect(),
        probe_ms: (!probes.is_empty()).then(|| times(probes)),
        system: counters(valid.iter().map(|trial| &trial.system)),
        host: counters(valid.iter().map(|trial| &trial.host)),
    }
}

fn step(name: &str, at: usize, valid: &[&TrialAnalysis]) -> StepSummary {
    let steps: Vec<&StepAnalysis> = valid
        .iter()
        .filter_map(|trial| trial.steps.get(at))
        .collect();
    StepSummary {
        name: name.to_owned(),
        transactions: mean_of(steps.iter().map(|step| step.transactions)),
        errors: steps.iter().map(|step| step.errors).sum(),
        skipped: steps.iter().map(|step| step.skipped).sum(),
        errors_per_trial: mean_of(steps.iter().map(|step| step.errors)),
        skipped_per_trial: mean_of(steps.iter().map(|step| step.skipped)),
        response_ms: times(steps.iter().map(|step| step.response_ms)),
    }
}

fn mean_of(counts: impl Iterator<Item = u64>) -> Option<f64> {
    counts
        .map(|count| (as_f64(count), 1.0))
        .collect::<WeightedMean>()
        .mean()
}

/// One value per trial; a trial without one leaves the cell without one.
fn estimate(values: impl IntoIterator<Item = Option<f64>>) -> Option<Estimate> {
    let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
    let interval = mean_interval(&values)?;
    Some(Estimate {
        mean: interval.mean,
        low: interval.bounds.map(|(low, _)| low),
        high: interval.bounds.map(|(_, high)| high),
    })
}

fn times(trials: impl IntoIterator<Item = Times>) -> TimesSummary {
    let trials: Vec<Times> = trials.into_iter().collect();
    let over = |of: fn(&Times) -> Option<f64>| estimate(trials.iter().map(of));
    TimesSummary {
        mean: over(|times| times.mean),
        min: trials.iter().filter_map(|times| times.min).reduce(f64::min),
        p50: over(|times| times.p50),
        p90: over(|times| times.p90),
        p95: over(|times| times.p95),
        p99: over(|times| times.p99),
        p999: over(|times| times.p999),
        max: trials.iter().filter_map(|times| times.max).reduce(f64::max),
    }
}

/// Means over trials; peaks (`…_max`) are the largest of all.
fn counters<'a>(trials: impl Iterator<Item = &'a Counters> + Clone) -> Counters {
    let names: BTreeSet<&String> = trials
        .clone()
        .flat_map(|counters| counters.keys())
        .collect();
    names
        .into_iter()
        .map(|name| {
            let values = trials.clone().filter_map(|counters| *counters.get(name)?);
            let value = if name.ends_with("_max") {
                values.reduce(f64::max)
            } else {
                values
                    .map(|value| (value, 1.0))
                    .collect::<WeightedMean>()
                    .mean()
            };
            (name.clone(), value)
        })
        .collect()
}
