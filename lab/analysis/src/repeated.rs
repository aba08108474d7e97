//! Attempts at the same trial: which of them counts, and in which order they ran.

use std::collections::BTreeMap;

use lab_archive::TrialData;
use lab_plan::checks::Cause;
use lab_stats::search::Judgement;
use lab_trial::checks::later_attempt;

use crate::model::{TrialAnalysis, Verdict};

/// In the order in which they ran; a repeat has a higher number than later trials.
pub(crate) fn in_order(trials: &[TrialData]) -> Vec<&TrialData> {
    let mut all: Vec<&TrialData> = trials.iter().collect();
    if all.iter().any(|data| data.record.attempt_of.is_some()) {
        all.sort_by(|a, b| a.record.started.cmp(&b.record.started));
    }
    all
}

/// Selects the first valid attempt at each trial as the one that counts.
pub(crate) fn choose(trials: &mut [TrialAnalysis]) {
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for at in 0..trials.len() {
        let (id, planned) = (trials[at].id, trials[at].planned());
        if let Some(before) = last.insert(planned, at) {
            trials[before].repeated_by = Some(id);
        }
        if trials[at].verdict == Verdict::Invalid {
            continue;
        }
        if let Some(first) = counts.get(&planned) {
            let check = later_attempt(*first);
            let trial = &mut trials[at];
            (trial.verdict, trial.cause, trial.carried) = (Verdict::Invalid, check.cause, None);
            trial.checks.insert(0, check);
        } else {
            counts.insert(planned, id);
        }
    }
}

/// The number of trials that ended before their load, without any other trial of the cell, that ends a run.
const UNSTARTED: usize = 2;

/// The first cell whose first trial and its repeat both ended before their load.
pub(crate) fn unstarted(trials: &[TrialAnalysis]) -> Option<String> {
    let mut cells: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for trial in trials {
        let (failed, came) = cells.entry(trial.label.as_str()).or_default();
        match trial.judgement() {
            Judgement::Unprepared => *failed += 1,
            _ => *came = true,
        }
    }
    let mut unstarted = cells
        .into_iter()
        .filter(|(_, (failed, came))| *failed >= UNSTARTED && !came);
    unstarted.next().map(|(label, _)| label.to_owned())
}

/// Trials of the plan, by the outcome of their attempts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planned {
    /// Executed trials.
    pub(crate) complete: usize,
    /// Trials with a valid attempt.
    pub(crate) valid: usize,
    /// Trials without one, the last attempt for a reason outside system and generator.
    pub(crate) disturbed: usize,
}

/// Counts trials of the plan, regardless of the number of attempts.
pub(crate) fn count<'a>(trials: impl IntoIterator<Item = &'a TrialAnalysis>) -> Planned {
    let mut last: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
    for trial in trials {
        let (valid, disturbed) = last.entry(trial.planned()).or_default();
        *valid |= trial.verdict == Verdict::Valid;
        *disturbed = trial.cause == Some(Cause::Outside);
    }
    Planned {
        complete: last.len(),
        valid: last.values().filter(|(valid, _)| *valid).count(),
        disturbed: last
            .values()
            .filter(|(valid, disturbed)| !valid && *disturbed)
            .count(),
    }
}
