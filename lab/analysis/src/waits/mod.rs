//! The waits of the system's threads: by cell, and compared.
//!
//! The comparison is exploratory, as that of CPU profiles: it never decides the result of a run. The waits of all pairs
//! of cells are one family of tests, and so are all quantiles of the scheduling latency.

mod words;

use std::collections::HashMap;

use lab_plan::Plan;
use lab_profile::waits::differences::{self, Columns, Rules, Sides, WaitDifference};
use lab_profile::waits::scheduling::{
    self, Latencies, LatencyDifference, NoCore, SchedulingDifference,
};
use lab_profile::waits::{Patterns, Per, Summary, Trial};
use lab_stats::exchange::Exchange;
use lab_stats::paired::mean;
use lab_trial::{Input, TrialWaits, WaitsByTrial};

use crate::cells::is_of;
use crate::compare::{Differences, MOST_PAIRS, Pair, Trials, pairs};
use crate::model::{
    CellScheduling, CellSummary, CellWaits, Comparison, TrialAnalysis, Verdict, Waiting,
};
use crate::power::OF_SMALLEST;

/// Sums up the waits of each cell, and compares them.
pub(crate) fn of_run(
    plan: &Plan,
    inputs: &[Input<'_>],
    (cells, trials): (&[CellSummary], &mut [TrialAnalysis]),
    differences: &Differences,
) -> Waiting {
    let waits = &lab_trial::waits_of_valid(inputs, trials);
    let trials = &*trials;
    if waits.is_empty() {
        return Waiting::default();
    }
    let patterns = Patterns::built_in();
    let of_cell = |cell: &CellSummary| -> Vec<(&TrialAnalysis, &TrialWaits)> {
        let trials = trials.iter().filter(|trial| is_of(cell, trial));
        trials
            .filter_map(|trial| Some((trial, waits.get(&trial.id)?)))
            .collect()
    };
    let scheduling: Vec<CellScheduling> = cells
        .iter()
        .filter_map(|cell| latencies(cell, &of_cell(cell)))
        .collect();
    let compared = Compared {
        plan,
        trials: Trials::that(trials, |trial| trial.verdict == Verdict::Valid),
        waits,
        per: Per::of(waits.values().map(TrialWaits::trial)),
        pairs: pairs(plan, cells).into_iter().take(MOST_PAIRS).collect(),
    };
    Waiting {
        waits: cells
            .iter()
            .filter_map(|cell| summary(cell, &of_cell(cell), patterns))
            .collect(),
        wait_differences: compared.waits(patterns),
        scheduling_differences: compared.scheduling(&differences.comparisons, &scheduling),
        scheduling,
    }
}

/// The findings of the run.
pub(crate) fn sentences(waiting: &Waiting) -> Vec<String> {
    let waits = waiting.wait_differences.iter().filter_map(words::summary);
    let cores = waiting.scheduling_differences.iter();
    let cores = cores.filter(|one| one.is_reason);
    waits
        .chain(cores.filter_map(|one| one.sentences.first().cloned()))
        .collect()
}

fn summary(
    cell: &CellSummary,
    trials: &[(&TrialAnalysis, &TrialWaits)],
    patterns: &Patterns,
) -> Option<CellWaits> {
    let of: Vec<Trial<'_>> = trials.iter().map(|(_, waits)| waits.trial()).collect();
    let summary = Summary::of(&of, patterns)?;
    let means: Vec<f64> = trials
        .iter()
        .filter_map(|(trial, _)| trial.response_ms.mean)
        .collect();
    Some(CellWaits {
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        users: cell.users,
        trials: trials.len(),
        response_mean_ms: mean(&means),
        summary,
    })
}

fn latencies(
    cell: &CellSummary,
    trials: &[(&TrialAnalysis, &TrialWaits)],
) -> Option<CellScheduling> {
    let latencies = trials.iter().map(|(_, waits)| &waits.latencies);
    let latencies: Vec<&Latencies> = latencies.filter(|one| !one.is_empty()).collect();
    let groups = scheduling::summary(&latencies);
    (!groups.is_empty()).then(|| CellScheduling {
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        users: cell.users,
        trials: latencies.len(),
        groups,
    })
}

struct Compared<'a> {
    plan: &'a Plan,
    trials: Trials<'a>,
    waits: &'a WaitsByTrial,
    per: Per,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Compared<'a> {
    /// The columns that both trials of each block have.
    fn by_block<T>(
        &self,
        pair: &Pair<'a>,
        of: impl Fn(u32, &'a TrialWaits) -> Option<T>,
    ) -> Vec<Option<(T, T)>> {
        let of_cell = |cell, block| {
            let id = self.trials.at(cell, block)?.id;
            of(id, self.waits.get(&id)?)
        };
        (0..self.trials.blocks)
            .map(|block| Some((of_cell(pair.a, block)?, of_cell(pair.b, block)?)))
            .collect()
    }

    fn least_blocks(&self) -> usize {
        Exchange::least_blocks(self.plan.question.duet)
    }

    fn waits(&self, patterns: &Patterns) -> Vec<WaitDifference> {
        let columns: HashMap<u32, Columns> = self
            .waits
            .iter()
            .filter_map(|(id, waits)| Some((*id, Columns::of(&waits.trial(), self.per, patterns)?)))
            .collect();
        let sides = self.pairs.iter().map(|pair| Sides {
            a: &pair.a.label,
            b: &pair.b.label,
            blocks: self.by_block(pair, |id, _| columns.get(&id)),
        });
        let rules = Rules {
            seed: self.plan.seed,
            least: OF_SMALLEST * self.plan.question.smallest_difference,
            least_blocks: self.least_blocks(),
            per: self.per,
        };
        let mut found = differences::compare(&sides.collect::<Vec<_>>(), rules);
        for one in &mut found {
            one.sentences = words::sentences(one, rules.least);
        }
        found
    }

    fn scheduling(
        &self,
        comparisons: &[Comparison],
        cells: &[CellScheduling],
    ) -> Vec<SchedulingDifference> {
        let sides = self.pairs.iter().map(|pair| scheduling::Sides {
            a: &pair.a.label,
            b: &pair.b.label,
            blocks: self.by_block(pair, |_, waits| {
                (!waits.latencies.is_empty()).then_some(&waits.latencies)
            }),
        });
        let found = scheduling::compare(
            &sides.collect::<Vec<_>>(),
            self.plan.seed,
            self.plan.question.smallest_difference,
            self.least_blocks(),
        );
        let of_pair = |pair: &Pair<'a>| {
            let (a, b) = (&pair.a.label, &pair.b.label);
            let is_it = |one: &&LatencyDifference| one.a == *a && one.b == *b;
            let latencies: Vec<LatencyDifference> = found.iter().filter(is_it).cloned().collect();
            let no_core = self.no_core(pair);
            if no_core.is_none() && latencies.is_empty() {
                return None;
            }
            let mut one = SchedulingDifference {
                a: a.clone(),
                b: b.clone(),
                no_core,
                latencies,
                is_reason: false,
                sentences: Vec::new(),
            };
            let of_b = cells.iter().find(|cell| cell.label == *b);
            words::scheduling(&mut one, comparisons, of_b);
            Some(one)
        };
        self.pairs.iter().filter_map(of_pair).collect()
    }

    fn no_core(&self, pair: &Pair<'a>) -> Option<NoCore> {
        let both = self.by_block(pair, |_, waits| waits.trial().no_core_us(self.per));
        let both: Vec<(f64, f64)> = both.into_iter().flatten().collect();
        NoCore::of(&both, self.per, (self.plan.seed, self.least_blocks()))
    }
}
