//! Named transactions: what those of a trial add up to, as attempts and as figures.

use std::collections::BTreeMap;

use lab_archive::model::Manifest;
use lab_archive::{Outcome, Series, TrialData};
use lab_counts::{Attempts, Hist};
use lab_stats::histogram::MergeError;
use lab_stats::{Merger, Sparse};

use crate::attempts::Limits;
use crate::model::{Times, TransactionAnalysis};
use crate::sums::{Hold, Names, StepSum, Sums};

/// The transactions of a trial. Empty of archives of earlier versions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transactions {
    /// In the order of the archive.
    names: Vec<String>,
    by_name: BTreeMap<String, Of>,
}

/// What the transactions of one name add up to.
#[derive(Debug, Clone, Default)]
struct Of {
    whole: StepSum,
    hold: StepSum,
    /// Of those that were completed in the hold, without the think times within them.
    time: Hist,
    /// With them.
    elapsed: Hist,
    /// The same so far of those that were under way when their user left, or at the end.
    unfinished: [Hist; 2],
}

/// Adds the transactions of a trial up, with times and figures over this stretch of it.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn transactions(
    manifest: &Manifest,
    names: &Names<'_>,
    data: &TrialData,
    hold: &Hold,
) -> Result<Transactions, MergeError> {
    let name = |place: u16| manifest.transactions.get(usize::from(place)).cloned();
    let mut all: BTreeMap<String, Of> = BTreeMap::new();
    for window in &data.windows {
        let in_hold = hold.contains(window.start_ms, window.end_ms);
        for (place, line) in &window.transactions {
            let Some(name) = name(*place) else { continue };
            let of = all.entry(name).or_default();
            of.whole.add(names, line);
            if in_hold {
                of.hold.add(names, line);
            }
        }
    }
    let mut merged: BTreeMap<String, [[Merger; 2]; 2]> = BTreeMap::new();
    let mut times = Sparse::default();
    for interval in &data.hlog {
        let Series::Transaction {
            transaction,
            outcome,
            elapsed,
        } = interval.series
        else {
            continue;
        };
        let Some(name) = name(transaction) else {
            continue;
        };
        if outcome != Outcome::Error && hold.contains_interval(interval) {
            interval.read_counts(&mut times);
            let of = &mut merged.entry(name).or_default()[usize::from(elapsed)];
            of[usize::from(outcome == Outcome::Unanswered)].add_sparse(&times)?;
        }
    }
    for (name, times) in merged {
        let of = all.entry(name).or_default();
        let [[time, time_so_far], [elapsed, elapsed_so_far]] =
            times.map(|both| both.map(|one| Hist::from(one.into_merged())));
        (of.time, of.elapsed) = (time, elapsed);
        of.unfinished = [time_so_far, elapsed_so_far];
    }
    Ok(Transactions {
        names: manifest.transactions.clone(),
        by_name: all,
    })
}

impl Transactions {
    /// Those of this name as attempts: completed ones are answered, those under way at the end have no response.
    pub(crate) fn attempts(&self, name: &str, sums: &Sums, limits: Limits<'_>) -> Attempts {
        let of = self.by_name.get(name).cloned().unwrap_or_default();
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

    /// Their figures.
    pub(crate) fn analysis(&self, sums: &Sums) -> Vec<TransactionAnalysis> {
        if self.by_name.is_empty() {
            return Vec::new();
        }
        let one = |name: &String| {
            let of = self.by_name.get(name).cloned().unwrap_or_default();
            TransactionAnalysis {
                name: name.clone(),
                completed: of.whole.ok,
                failed: of.whole.failed() + of.whole.over_limit + of.whole.turned_away,
                skipped: of.whole.skipped,
                unfinished: of.whole.unanswered,
                completed_per_s: sums.hold.per_s(of.hold.ok),
                time_ms: Times::of(&of.time),
                elapsed_ms: Times::of(&of.elapsed),
            }
        };
        self.names.iter().map(one).collect()
    }
}
