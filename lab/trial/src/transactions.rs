//! Named transactions of a trial, summed as attempts and as figures.

use std::collections::BTreeMap;

use lab_archive::model::Manifest;
use lab_archive::{Outcome, Series, TrialData};
use lab_counts::{Attempts, Hist};
use lab_plan::Prediction;
use lab_stats::histogram::MergeError;
use lab_stats::{Merger, Sparse};

use crate::attempts::Limits;
use crate::model::{Times, TransactionAnalysis};
use crate::sums::{Hold, Names, StepSum, Sums};

/// The transactions of a trial, by their indexes in its archive. Empty if it has counted none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transactions(Vec<(String, Of)>);

/// The sums of the transactions with one name.
#[derive(Debug, Clone, Default)]
struct Of {
    whole: StepSum,
    hold: StepSum,
    /// Times of those completed in the hold, without the think times within them.
    time: Hist,
    /// The same with the think times.
    elapsed: Hist,
    /// Times so far of those in progress when their user left, or at the end.
    unfinished: [Hist; 2],
}

/// Sums the transactions of a trial, with times and figures over this stretch of it.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn transactions(
    manifest: &Manifest,
    names: &Names<'_>,
    data: &TrialData,
    hold: &Hold,
) -> Result<Transactions, MergeError> {
    let windows = &data.windows;
    if windows.iter().all(|window| window.transactions.is_empty()) {
        return Ok(Transactions::default());
    }
    let mut all = vec![Of::default(); manifest.transactions.len()];
    for window in windows {
        let in_hold = hold.contains(window.start_ms, window.end_ms);
        for (place, line) in &window.transactions {
            let Some(of) = all.get_mut(usize::from(*place)) else {
                continue;
            };
            of.whole.add(names, line);
            if in_hold {
                of.hold.add(names, line);
            }
        }
    }
    let mut merged: BTreeMap<(u16, bool, Outcome), Merger> = BTreeMap::new();
    let mut times = Sparse::default();
    for interval in data.hlog.iter().filter(|one| hold.contains_interval(one)) {
        if let Series::Transaction {
            transaction,
            outcome,
            elapsed,
        } = interval.series
        {
            interval.read_counts(&mut times);
            let merger = merged.entry((transaction, elapsed, outcome)).or_default();
            merger.add_sparse(&times)?;
        }
    }
    for ((place, elapsed, outcome), merger) in merged {
        let Some(of) = all.get_mut(usize::from(place)) else {
            continue;
        };
        let times = match (outcome, elapsed) {
            (Outcome::Ok, false) => &mut of.time,
            (Outcome::Ok, true) => &mut of.elapsed,
            (Outcome::Unanswered, _) => &mut of.unfinished[usize::from(elapsed)],
            (Outcome::Error, _) => continue,
        };
        *times = merger.into_merged().into();
    }
    let names = manifest.transactions.iter().cloned();
    Ok(Transactions(names.zip(all).collect()))
}

impl Transactions {
    /// Returns those of this name as attempts: completed ones are answered, unfinished ones have no response.
    pub(crate) fn attempts(&self, name: &str, sums: &Sums, limits: Limits<'_>) -> Attempts {
        let mut named = self.0.iter().filter(|(one, _)| one == name);
        let of = named.next().map(|(_, of)| of.clone()).unwrap_or_default();
        let [unfinished, elapsed_so_far] = of.unfinished;
        Attempts {
            over_limit: (of.hold.over_limit, limits.time_limit_ms.unwrap_or_default()),
            hold: of.hold.counts().clone(),
            whole: of.whole.counts().clone(),
            response: of.time,
            elapsed: Some(Box::new([of.elapsed, elapsed_so_far])),
            unanswered: unfinished,
            span_ms: sums.hold.span_ms,
            timeout_ms: limits.timeout_ms,
            ..Attempts::default()
        }
    }

    /// Returns their figures, compared with the prediction.
    pub(crate) fn analysis(
        &self,
        sums: &Sums,
        predicted: Option<&Prediction>,
    ) -> Vec<TransactionAnalysis> {
        let planned = |name: &String| {
            let mut named = predicted?.named_transactions.iter();
            named.find(|one| one.name == *name)
        };
        let one = |(name, of): &(String, Of)| TransactionAnalysis {
            name: name.clone(),
            predicted: planned(name).map(|one| one.begun),
            completed: of.whole.ok,
            failed: of.whole.failed() + of.whole.over_limit + of.whole.turned_away,
            skipped: of.whole.skipped,
            unfinished: of.whole.unanswered,
            completed_per_s: sums.hold.per_s(of.hold.ok),
            time_ms: Times::of(&of.time),
            elapsed_ms: Times::of(&of.elapsed),
        };
        self.0.iter().map(one).collect()
    }
}
