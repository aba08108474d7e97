//! Judgements on a run as a whole: whether its trials began alike, and whether their order matters.

use std::collections::BTreeMap;

use lab_archive::{Run, StartingState, TrialRecord};
use lab_plan::checks::{CheckId, STARTING_STATE};
use lab_plan::{Order, Question};
use lab_stats::trend::{Trend, trend};
use lab_stats::verdict::ALPHA;
use lab_trial::as_f64;
use lab_trial::checks::{check, held, not_judged, pass, warn};
use lab_trial::format::{count, list, percent, signed_percent, times};

use crate::model::{Check, CheckOutcome, Measure, TrialAnalysis, Verdict};

/// Smaller differences of a cell's data are ignored: a store's files grow in steps.
const DATA_SLACK_BYTES: f64 = 262_144.0;
/// The minimum number of trials for a check of their order.
const LEAST_TRIALS: usize = 6;
/// The maximum number of deviating trials that are named; more are counted.
const MOST_NAMED: usize = 6;
/// The measures in which an order effect would show.
const MEASURES: [Measure; 3] = [Measure::Throughput, Measure::Mean, Measure::Cpu];

/// Checks of the run.
pub(crate) fn of_run(
    study: &Question,
    seed: u64,
    run: &Run,
    trials: &[TrialAnalysis],
) -> Vec<Check> {
    if trials.len() < 2 {
        return Vec::new();
    }
    vec![
        starting_state(study, run, trials),
        order(study, seed, trials),
    ]
}

/// Checks that trials of a cell begin with the same data, kernel settings, and configuration.
fn starting_state(study: &Question, run: &Run, trials: &[TrialAnalysis]) -> Check {
    let id = CheckId::SameStartingState;
    let mut cells: BTreeMap<String, Vec<&TrialRecord>> = BTreeMap::new();
    let began = |trial: &&TrialAnalysis| trial.system_failure.is_none() && !trial.before_load;
    for trial in trials.iter().filter(began) {
        let record = run.trials.iter().find(|data| data.record.id == trial.id);
        let of_cell = cells.entry(format!("{:?}/{}", trial.cell, trial.users));
        of_cell.or_default().extend(record.map(|data| &data.record));
    }
    cells.retain(|_, records| records.len() > 1);
    if cells.is_empty() {
        return not_judged(id, "no cell has a second trial");
    }
    let limit = study.checks.of(&STARTING_STATE);
    let (mut odd, mut widest) = (Vec::new(), 0.0_f64);
    for records in cells.values() {
        let first = records[0];
        for record in &records[1..] {
            let off = data_off(first, record);
            widest = widest.max(off.unwrap_or_default().abs());
            let differs = differing(first, record, limit.warn / 100.0);
            if !differs.is_empty() {
                odd.push(format!(
                    "trial {} beside trial {}: {}",
                    record.id,
                    first.id,
                    list(&differs)
                ));
            }
        }
    }
    if odd.is_empty() {
        let evidence = format!(
            "within each of {} cells; data differ by {} at most",
            cells.len(),
            percent(widest * 100.0)
        );
        let figure = held(widest * 100.0, &STARTING_STATE, limit);
        return pass(id, evidence).by(vec![figure]);
    }
    let more = odd.len().saturating_sub(MOST_NAMED);
    odd.truncate(MOST_NAMED);
    if more > 0 {
        odd.push(format!("{more} more"));
    }
    let figure = held(widest * 100.0, &STARTING_STATE, limit);
    warn(id, odd.join("; ")).by(vec![figure])
}

fn data_off(first: &TrialRecord, other: &TrialRecord) -> Option<f64> {
    let (first, other) = (as_f64(data(first)), as_f64(data(other)));
    let beyond = (other - first).abs() > DATA_SLACK_BYTES;
    lab_stats::relative_difference(other, first).map(|off| if beyond { off } else { 0.0 })
}

/// On all machines of the system.
fn data(record: &TrialRecord) -> u64 {
    let around = &record.environment;
    let state = around.starting_state.as_ref();
    let own = state.map_or(record.start_data_bytes, |state| state.data_bytes);
    let parts = around.parts.iter();
    let parts = parts.filter_map(|part| part.starting_state.as_ref());
    own + parts.map(|state| state.data_bytes).sum::<u64>()
}

/// The differences between two trials of a cell.
fn differing(first: &TrialRecord, other: &TrialRecord, tolerated: f64) -> Vec<String> {
    let mut differs = Vec::new();
    if let Some(off) = data_off(first, other).filter(|off| off.abs() > tolerated) {
        differs.push(format!(
            "{} of data for {} bytes ({})",
            count(data(other)),
            count(data(first)),
            signed_percent(off * 100.0)
        ));
    }
    let states = [first, other].map(|record| record.environment.starting_state.as_ref());
    if let [Some(a), Some(b)] = states {
        differs.extend(differing_states(a, b));
    }
    for part in &first.environment.parts {
        let mut parts = other.environment.parts.iter();
        let same = parts.find(|one| one.name == part.name);
        let same = same.and_then(|same| same.starting_state.as_ref());
        if let Some((a, b)) = part.starting_state.as_ref().zip(same) {
            let found = differing_states(a, b).into_iter();
            differs.extend(found.map(|what| format!("of {}: {what}", part.name)));
        }
    }
    differs
}

/// The differences on one machine, except its data.
fn differing_states(a: &StartingState, b: &StartingState) -> Vec<String> {
    let mut differs = Vec::new();
    if a.kernel_hash != b.kernel_hash {
        let names = a.kernel_settings.iter();
        let changed: Vec<String> = names
            .filter(|(name, value)| b.kernel_settings.get(*name) != Some(value))
            .map(|(name, _)| name.clone())
            .collect();
        differs.push(format!("kernel settings ({})", list(&changed)));
    }
    if a.configuration_hash != b.configuration_hash {
        differs.push("the system's configuration".to_owned());
    }
    if a.boot_id != b.boot_id {
        differs.push("the machine was started anew".to_owned());
    }
    differs
}

/// Checks for a trend over the order of trials. Effects of cells and blocks are removed first. In randomised blocks of
/// several cells, the check uses the position within the block, which randomisation makes exchangeable; with one cell,
/// it uses the order of all trials.
fn order(study: &Question, seed: u64, trials: &[TrialAnalysis]) -> Check {
    let id = CheckId::OrderOfTrials;
    let valid: Vec<&TrialAnalysis> = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid && trial.carried.is_none())
        .collect();
    let one_cell = valid.iter().all(|trial| trial.label == valid[0].label);
    if valid.len() < LEAST_TRIALS {
        return not_judged(id, format!("{LEAST_TRIALS} valid trials needed"));
    }
    if study.order == Order::Listed && !one_cell {
        let why = "cells run in the order of the file, which can't be told from what they are";
        return not_judged(id, why);
    }
    let found: Vec<(Measure, Trend)> = MEASURES
        .into_iter()
        .filter_map(|measure| Some((measure, trend(&groups(&valid, measure, one_cell)?, seed)?)))
        .collect();
    let strongest = found.iter().min_by(|a, b| a.1.p.total_cmp(&b.1.p));
    let Some((measure, strongest)) = strongest else {
        return not_judged(id, "trials don't vary, or no block has two cells");
    };
    // There are as many tests as measures: Bonferroni keeps the rate of false alarms at the level.
    let p = (strongest.p * as_f64(found.len() as u64)).min(1.0);
    let within = if one_cell {
        "from trial to trial"
    } else {
        "per place within a block"
    };
    let evidence = format!(
        "{} changes by {} {within}, most of {} measures (p = {})",
        measure.name(),
        signed_percent(strongest.per_position * 100.0),
        found.len(),
        times(p)
    );
    let outcome = if p <= ALPHA {
        CheckOutcome::Warn
    } else {
        CheckOutcome::Pass
    };
    check(id, outcome, evidence)
}

/// Logs of a measure minus the means of cell and block, in the order of measurement: a group per block, or all trials
/// of the only cell.
fn groups(valid: &[&TrialAnalysis], measure: Measure, one_cell: bool) -> Option<Vec<Vec<f64>>> {
    let values: Option<Vec<f64>> = valid
        .iter()
        .map(|trial| measure.of(trial).filter(|value| *value > 0.0).map(f64::ln))
        .collect();
    let values = values?;
    if one_cell {
        return Some(vec![values]);
    }
    let mut by_cell: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (trial, value) in valid.iter().zip(&values) {
        by_cell
            .entry(trial.label.as_str())
            .or_default()
            .push(*value);
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / as_f64(of.len() as u64);
    let mut by_block: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (trial, value) in valid.iter().zip(&values) {
        let residual = value - mean(&by_cell[trial.label.as_str()]);
        by_block.entry(trial.block).or_default().push(residual);
    }
    let groups = by_block.into_values().map(|residuals| {
        let middle = mean(&residuals);
        residuals.iter().map(|value| value - middle).collect()
    });
    Some(groups.collect())
}
