//! Counts from the invalid trials of each cell. This module compares nothing.

use lab_trial::as_f64;

use crate::model::{CellSummary, Counters, Range, Seen, TrialAnalysis, Verdict};

/// For each cell with an invalid trial that ran to its end, in the order of the cells.
pub(crate) fn seen(cells: &[CellSummary], trials: &[TrialAnalysis]) -> Vec<Seen> {
    cells
        .iter()
        .filter_map(|cell| of_cell(cell, trials))
        .collect()
}

/// Returns true if the trial ran and is invalid.
pub(super) fn is_spoiled(trial: &TrialAnalysis) -> bool {
    trial.verdict == Verdict::Invalid && trial.system_failure.is_none() && trial.transactions > 0
}

/// Returns true if it is also the last attempt at its planned trial: only the last attempt ran next to other trials of
/// its block.
pub(super) fn stands(trial: &TrialAnalysis) -> bool {
    is_spoiled(trial) && trial.repeated_by.is_none()
}

fn of_cell(cell: &CellSummary, trials: &[TrialAnalysis]) -> Option<Seen> {
    let spoiled = || {
        let of_cell = trials.iter().filter(|trial| cell.is_of(trial));
        of_cell.filter(|trial| is_spoiled(trial))
    };
    let counter = |counters: &Counters, name: &str| counters.get(name).copied().flatten();
    Some(Seen {
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        measured: false,
        trials: spoiled().count(),
        is_all: cell.valid_trials == 0,
        transactions: Range::of(spoiled().map(|trial| as_f64(trial.transactions)))?,
        errors: Range::of(spoiled().map(|trial| as_f64(trial.errors)))?,
        mean_response_ms: Range::of(spoiled().filter_map(|trial| trial.response_ms.mean)),
        p95_response_ms: Range::of(spoiled().filter_map(|trial| trial.response_ms.p95)),
        cpu_ms_per_transaction: Range::of(
            spoiled().filter_map(|trial| counter(&trial.system, "cpu_ms_per_transaction")),
        ),
        disk_kb_per_transaction: Range::of(
            spoiled().filter_map(|trial| counter(&trial.system, "disk_kb_per_transaction")),
        ),
    })
}
