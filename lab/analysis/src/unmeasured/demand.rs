//! CPU per transaction, compared if only wall-clock times are disturbed.
//!
//! Other programs that take CPU away from a server delay its responses, but hardly increase its work. So a trial that
//! is invalid only for this reason still shows the CPU cost of a transaction. The cost is compared like a measure of
//! valid trials, paired by block and judged by the same test. The verdict is on CPU alone.

use lab_plan::Plan;
use lab_stats::exchange::Exchange;
use lab_stats::verdict::{LEAST_BLOCKS, Margins};
use lab_trial::as_f64;
use lab_trial::checks::spoils_times_only;
use lab_trial::format::percent;

use super::seen::stands;
use crate::compare::{Draft, Trials, judge, pairs};
use crate::model::{
    CellSummary, CheckOutcome, Comparison, Demand, Measure, TrialAnalysis, Verdict,
};

/// The maximum number of pairs.
const MOST_PAIRS: usize = 12;
/// The maximum standard deviation of log ratios over blocks for steady demand. Beyond it, the disturbance hit more than
/// wall-clock time (caches, the frequency of the cores).
const STEADY: f64 = 0.10;

/// Pairs of cells whose valid trials give no verdict on CPU; `None` without any.
pub(crate) fn demand(
    plan: &Plan,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    measured: &[Comparison],
) -> Option<Demand> {
    if !trials.iter().any(stands) {
        return None;
    }
    let counted = Trials::that(trials, |trial| {
        trial.verdict == Verdict::Valid || stands(trial) && only_times(trial)
    });
    let is_judged = |a: &str, b: &str| {
        let mut of_cpu = measured.iter().filter(|one| one.metric == Measure::Cpu);
        of_cpu.any(|one| one.a == a && one.b == b && one.verdict.is_some())
    };
    let (mut steady, mut not_compared) = (Vec::new(), Vec::new());
    let pairs = pairs(plan, cells);
    let open = pairs
        .iter()
        .filter(|pair| !is_judged(&pair.a.label, &pair.b.label));
    for pair in open.take(MOST_PAIRS) {
        let Some(draft) = counted.draft(pair.names(), Measure::Cpu, &[*pair]) else {
            continue;
        };
        if draft.by_block.iter().flatten().count() < LEAST_BLOCKS {
            continue;
        }
        match spread(&draft) {
            Some(spread) if spread <= STEADY => steady.push(draft),
            spread => not_compared.push(unsteady(&pair.a.label, &pair.b.label, spread)),
        }
    }
    let smallest = plan.question.smallest_difference;
    // All are one family, and none of them decides.
    let test = Exchange::of_signs(plan.seed);
    let comparisons = judge(steady, &|_| Margins::of(smallest), &|_| false, test);
    (!comparisons.is_empty() || !not_compared.is_empty()).then_some(Demand {
        comparisons,
        not_compared,
    })
}

fn only_times(trial: &TrialAnalysis) -> bool {
    let checks = trial.checks.iter();
    let mut failed = checks.filter(|check| check.outcome == CheckOutcome::Invalid);
    failed.all(|check| spoils_times_only(check.id))
}

/// Standard deviation of the log ratios over blocks.
fn spread(draft: &Draft) -> Option<f64> {
    let values: Vec<f64> = draft.by_block.iter().flatten().copied().collect();
    let middle = lab_stats::paired::mean(&values)?;
    let squares = values.iter().map(|value| (value - middle).powi(2));
    let n = as_f64(values.len() as u64);
    lab_stats::ratio(squares.sum::<f64>(), n - 1.0).map(f64::sqrt)
}

fn unsteady(a: &str, b: &str, spread: Option<f64>) -> String {
    let spread = spread.map_or_else(String::new, |spread| {
        format!(
            ": it varied by {} from block to block",
            percent(spread * 100.0)
        )
    });
    format!(
        "{a} → {b}: CPU demand was not steady{spread}, {} are the most",
        percent(STEADY * 100.0)
    )
}
