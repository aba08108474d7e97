//! Cells: means over their valid trials. Invalid trials are counted and excluded from every figure.

use std::collections::{BTreeMap, BTreeSet};

use lab_plan::{Cell, Decides, Level, Question};
use lab_stats::WeightedMean;
use lab_trial::as_f64;

use crate::model::{
    Arrivals, Attempt, Attempts, CellSummary, Counters, Estimate, Measure, MeasureAnalysis,
    MeasureSummary, PopulationAnalysis, PopulationSummary, ProbeCounts, QueueAnalysis,
    QueueSummary, StageAnalysis, StageSummary, StepAnalysis, StepSummary, TagAnalysis, TagSummary,
    Times, TimesSummary, TransactionSummary, TrialAnalysis, Verdict,
};
use crate::published::transfer;
use crate::repeated;

/// One summary per executed cell, in the order of the study's levels.
pub(crate) fn summarise(
    study: &Question,
    steps: &[String],
    trials: &[TrialAnalysis],
) -> Vec<CellSummary> {
    // A control exists for comparison; a search varies the users within a cell.
    let mut cells: Vec<(&Cell, u32)> = Vec::new();
    for trial in trials.iter().filter(|trial| !trial.control) {
        if !cells.contains(&(&trial.cell, trial.users)) {
            cells.push((&trial.cell, trial.users));
        }
    }
    cells.sort_by_key(|(cell, users)| (position(study, cell), *users));
    cells
        .into_iter()
        .map(|(cell, users)| {
            let of_cell = |trial: &&TrialAnalysis| {
                trial.cell == *cell && trial.users == users && !trial.control
            };
            let all: Vec<&TrialAnalysis> = trials.iter().filter(of_cell).collect();
            cell_summary(study, cell, steps, &all)
        })
        .collect()
}

/// Returns true if a trial is one of this cell's. A control is no trial of a cell.
pub(crate) fn is_of(cell: &CellSummary, trial: &TrialAnalysis) -> bool {
    !trial.control && trial.cell == cell.cell && trial.users == cell.users
}

/// The position of each level in its factor, factors in file order.
fn position(study: &Question, cell: &Cell) -> Vec<usize> {
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

/// The figure that the study defines by parts, over the valid trials.
fn deciding(named: Option<Decides>, valid: &[&TrialAnalysis]) -> Option<Estimate> {
    let Some(Decides::Named(named)) = named else {
        return None;
    };
    Estimate::of(valid.iter().map(|trial| Measure::Named(named).of(trial)))
}

fn cell_summary(
    study: &Question,
    cell: &Cell,
    steps: &[String],
    all: &[&TrialAnalysis],
) -> CellSummary {
    let valid: Vec<&TrialAnalysis> = all
        .iter()
        .copied()
        .filter(|trial| trial.verdict == Verdict::Valid)
        .collect();
    let has_plan = valid
        .iter()
        .any(|trial| trial.arrivals.is_some() || trial.service_ms != trial.response_ms);
    let probes: Vec<Times> = valid.iter().filter_map(|trial| trial.probe_ms).collect();
    CellSummary {
        cell: cell.clone(),
        label: all
            .first()
            .map(|trial| trial.label.clone())
            .unwrap_or_default(),
        users: all.first().map_or(0, |trial| trial.users),
        trials: repeated::count(all.iter().copied()).complete,
        valid_trials: valid.len(),
        transactions: Estimate::of(valid.iter().map(|trial| Some(as_f64(trial.transactions)))),
        errors: valid.iter().map(|trial| trial.errors).sum(),
        skipped: valid.iter().map(|trial| trial.skipped).sum(),
        errors_per_trial: mean_of(valid.iter().map(|trial| trial.errors)),
        skipped_per_trial: mean_of(valid.iter().map(|trial| trial.skipped)),
        throughput_per_s: Estimate::of(valid.iter().map(|trial| trial.throughput_per_s)),
        deciding: deciding(study.decides, &valid),
        notesmark_per_min: Estimate::of(valid.iter().map(|trial| trial.notesmark_per_min)),
        response_ms: times(valid.iter().map(|trial| trial.response_ms)),
        response_with_failures_ms: with_failures(&valid),
        service_ms: has_plan.then(|| times(valid.iter().map(|trial| trial.service_ms))),
        arrivals: arrivals(&valid),
        steps: steps
            .iter()
            .enumerate()
            .map(|(at, name)| step(name, at, &valid))
            .collect(),
        stages: stages(&valid),
        populations: populations(&valid),
        tags: tags(&valid),
        named_transactions: transactions(&valid),
        queues: queues(&valid),
        measures: measures(&valid),
        probe_ms: (!probes.is_empty()).then(|| times(probes)),
        probe: probe(&valid),
        transfer: transfer::of_cell(&valid),
        system: counters(valid.iter().map(|trial| &trial.system)),
        host: counters(valid.iter().map(|trial| &trial.host)),
    }
}

/// Over all attempts; a quantile that is beyond any limit in a trial has no mean.
fn with_failures(valid: &[&TrialAnalysis]) -> Option<TimesSummary> {
    let all = || valid.iter().map(|trial| &trial.response_with_failures_ms);
    let over = |of: fn(&Attempts) -> Attempt| {
        let beyond = all().any(|one| of(one) == Attempt::Beyond);
        Estimate::of(all().filter(|_| !beyond).map(|one| of(one).ms()))
    };
    all().any(|one| one.failed > 0).then(|| TimesSummary {
        mean: Estimate::of(all().map(|one| one.mean)),
        min: None,
        p50: over(|one| one.p50),
        p90: over(|one| one.p90),
        p95: over(|one| one.p95),
        p99: over(|one| one.p99),
        p999: over(|one| one.p999),
        max: None,
    })
}

/// Rates are means over trials, counts the largest and the sum.
fn arrivals(valid: &[&TrialAnalysis]) -> Option<Arrivals> {
    let all: Option<Vec<Arrivals>> = valid.iter().map(|trial| trial.arrivals).collect();
    let all = all.filter(|all| !all.is_empty())?;
    let mean =
        |of: fn(&Arrivals) -> f64| all.iter().map(of).sum::<f64>() / as_f64(all.len() as u64);
    Some(Arrivals {
        arrived_per_s: mean(|one| one.arrived_per_s),
        planned_per_s: mean(|one| one.planned_per_s),
        waiting_max: all.iter().map(|one| one.waiting_max).max().unwrap_or(0),
        dropped: all.iter().map(|one| one.dropped).sum(),
    })
}

fn probe(valid: &[&TrialAnalysis]) -> Option<ProbeCounts> {
    let all: Option<Vec<ProbeCounts>> = valid.iter().map(|trial| trial.probe).collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(ProbeCounts {
        transactions: all.iter().map(|one| one.transactions).sum(),
        errors: all.iter().map(|one| one.errors).sum(),
    })
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
        bound: StepAnalysis::bound_of_all(steps.iter().copied()),
        response_ms: times(steps.iter().map(|step| step.response_ms)),
        phases_ms: phases(&steps),
    }
}

/// Trials of a cell have the same stages.
fn stages(valid: &[&TrialAnalysis]) -> Vec<StageSummary> {
    let first = valid.first().map_or(&[][..], |trial| &trial.stages);
    let summary = |(at, stage): (usize, &StageAnalysis)| {
        let all = valid.iter().filter_map(|trial| trial.stages.get(at));
        let over = |of: fn(&StageAnalysis) -> Option<f64>| Estimate::of(all.clone().map(of));
        StageSummary {
            plan: stage.plan.clone(),
            errors: all.clone().map(|one| one.errors).sum(),
            throughput_per_s: over(|one| one.throughput_per_s),
            delivered_per_s: over(|one| one.delivered_per_s),
            offered_per_s: over(|one| one.offered_per_s),
            response_ms: times(all.clone().map(|one| one.response_ms)),
        }
    };
    first.iter().enumerate().map(summary).collect()
}

/// Trials of a cell have the same populations.
fn populations(valid: &[&TrialAnalysis]) -> Vec<PopulationSummary> {
    let first = valid.first().map_or(&[][..], |trial| &trial.populations);
    let summary = |(at, population): (usize, &PopulationAnalysis)| {
        let all = valid.iter().filter_map(|trial| trial.populations.get(at));
        let over = |of: fn(&PopulationAnalysis) -> Option<f64>| Estimate::of(all.clone().map(of));
        PopulationSummary {
            plan: population.plan.clone(),
            errors: all.clone().map(|one| one.errors).sum(),
            throughput_per_s: over(|one| one.throughput_per_s),
            delivered_per_s: over(|one| one.delivered_per_s),
            offered_per_s: over(|one| one.offered_per_s),
            response_ms: times(all.clone().map(|one| one.response_ms)),
        }
    };
    first.iter().enumerate().map(summary).collect()
}

/// Trials of a cell have the same tags.
fn tags(valid: &[&TrialAnalysis]) -> Vec<TagSummary> {
    let first = valid.first().map_or(&[][..], |trial| &trial.tags);
    let summary = |(at, tag): (usize, &TagAnalysis)| {
        let all = valid.iter().filter_map(|trial| trial.tags.get(at));
        TagSummary {
            name: tag.name.clone(),
            steps: tag.steps.clone(),
            errors: all.clone().map(|one| one.errors).sum(),
            throughput_per_s: Estimate::of(all.clone().map(|one| one.throughput_per_s)),
            response_ms: times(all.map(|one| one.response_ms)),
        }
    };
    first.iter().enumerate().map(summary).collect()
}

/// Trials of a cell have the same transactions, or none if nothing was counted.
fn transactions(valid: &[&TrialAnalysis]) -> Vec<TransactionSummary> {
    let mut each = valid.iter().map(|trial| &trial.named_transactions);
    let names = each.find(|all| !all.is_empty());
    let summary = |name: &str| {
        let all = valid.iter().flat_map(|trial| &trial.named_transactions);
        let all = all.filter(|one| one.name == name);
        TransactionSummary {
            name: name.to_owned(),
            completed: all.clone().map(|one| one.completed).sum(),
            failed: all.clone().map(|one| one.failed).sum(),
            skipped: all.clone().map(|one| one.skipped).sum(),
            unfinished: all.clone().map(|one| one.unfinished).sum(),
            completed_per_s: Estimate::of(all.clone().map(|one| one.completed_per_s)),
            time_ms: times(all.clone().map(|one| one.time_ms)),
            elapsed_ms: times(all.map(|one| one.elapsed_ms)),
        }
    };
    let names = names.into_iter().flatten();
    names.map(|one| summary(&one.name)).collect()
}

/// Trials of a cell have the same queues and pools.
fn queues(valid: &[&TrialAnalysis]) -> Vec<QueueSummary> {
    let first = valid.first().map_or(&[][..], |trial| &trial.queues);
    let summary = |(at, queue): (usize, &QueueAnalysis)| {
        let all = valid.iter().filter_map(|trial| trial.queues.get(at));
        QueueSummary {
            name: queue.name.clone(),
            is_pool: queue.is_pool,
            puts: all.clone().map(|one| one.puts).sum(),
            takes: all.clone().map(|one| one.takes).sum(),
            dropped: all.clone().map(|one| one.dropped).sum(),
            missed: all.clone().map(|one| one.missed).sum(),
            length: all.clone().map(|one| one.length).max().unwrap_or(0),
            longest: all.clone().map(|one| one.longest).max().unwrap_or(0),
            queue_wait_ms: times(all.map(|one| one.queue_wait_ms)),
        }
    };
    first.iter().enumerate().map(summary).collect()
}

/// Trials of a cell have the same measures.
fn measures(valid: &[&TrialAnalysis]) -> Vec<MeasureSummary> {
    let first = valid.first().map_or(&[][..], |trial| &trial.measures);
    let summary = |(at, measure): (usize, &MeasureAnalysis)| {
        let all = valid.iter().filter_map(|trial| trial.measures.get(at));
        MeasureSummary {
            step: measure.step.clone(),
            name: measure.name.clone(),
            unit: measure.unit.clone(),
            samples: all.clone().map(|one| one.values.count).sum(),
            values: times(all.map(|one| one.values)),
        }
    };
    first.iter().enumerate().map(summary).collect()
}

fn phases(steps: &[&StepAnalysis]) -> BTreeMap<&'static str, TimesSummary> {
    let mut by_phase: BTreeMap<&'static str, Vec<Times>> = BTreeMap::new();
    for (phase, took) in steps.iter().flat_map(|step| &step.phases_ms) {
        by_phase.entry(phase).or_default().push(*took);
    }
    let summed = by_phase.into_iter();
    summed.map(|(phase, took)| (phase, times(took))).collect()
}

fn mean_of(counts: impl Iterator<Item = u64>) -> Option<f64> {
    counts
        .map(|count| (as_f64(count), 1.0))
        .collect::<WeightedMean>()
        .mean()
}

fn times(trials: impl IntoIterator<Item = Times>) -> TimesSummary {
    let trials: Vec<Times> = trials.into_iter().collect();
    let over = |of: fn(&Times) -> Option<f64>| Estimate::of(trials.iter().map(of));
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
