//! Blocks that are complete but too noisy to be valid: how often *b* was lower than *a* in them. This is a hint for
//! further study and no result; the sign test of each row stands alone.

use lab_plan::Plan;
use lab_stats::sign_test_p;
use lab_stats::verdict::LEAST_BLOCKS;

use super::seen::stands;
use crate::compare::{Pair, Trials, pairs};
use crate::model::{CellSummary, Exploratory, Measure, Range, TrialAnalysis, Verdict};

/// The minimum number of blocks for a direction.
const LEAST: usize = 3;
/// The maximum numbers of pairs and steps.
const MOST_PAIRS: usize = 12;
const MOST_STEPS: usize = 12;
/// The measures of a trial as a whole.
const MEASURES: [Measure; 5] = [
    Measure::Mean,
    Measure::P50,
    Measure::P95,
    Measure::Throughput,
    Measure::Cpu,
];

/// Rows for each pair of cells with too few valid blocks and enough blocks of any trials; empty if all trials are
/// valid.
pub(crate) fn exploratory(
    plan: &Plan,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
) -> Vec<Exploratory> {
    if !trials.iter().any(stands) {
        return Vec::new();
    }
    let measured = Trials::that(trials, |trial| trial.verdict == Verdict::Valid);
    let ran = Trials::that(trials, |trial| {
        trial.verdict == Verdict::Valid || stands(trial)
    });
    let pairs = pairs(plan, cells);
    let noisy = pairs.iter().filter(|pair| {
        let (of_measured, of_all) = (both(&measured, pair), both(&ran, pair));
        of_measured.len() < LEAST_BLOCKS && of_all.len() >= LEAST
    });
    noisy
        .take(MOST_PAIRS)
        .flat_map(|pair| of_pair(pair, &both(&ran, pair)))
        .collect()
}

type Both<'a> = (&'a TrialAnalysis, &'a TrialAnalysis);

/// The trials of both cells, block by block.
fn both<'a>(trials: &Trials<'a>, pair: &Pair<'_>) -> Vec<Both<'a>> {
    (0..trials.blocks)
        .filter_map(|block| Some((trials.at(pair.a, block)?, trials.at(pair.b, block)?)))
        .collect()
}

fn of_pair(pair: &Pair<'_>, blocks: &[Both<'_>]) -> Vec<Exploratory> {
    let same_users = pair.a.users == pair.b.users;
    let measures = MEASURES
        .into_iter()
        .filter(|measure| same_users || *measure != Measure::Throughput);
    let of_measure = |measure: Measure| {
        let usable = |trial: &TrialAnalysis| {
            let value = measure.of(trial);
            value.filter(|_| !measure.is_cut(trial))
        };
        row(pair, measure, None, blocks, &usable)
    };
    let mut rows: Vec<Exploratory> = measures.filter_map(of_measure).collect();
    let steps = pair.a.steps.iter().take(MOST_STEPS);
    // For one step, the trial's mean gives the same answer.
    let steps = steps.filter(|_| pair.a.steps.len() > 1);
    rows.extend(steps.filter_map(|step| {
        let mean = |trial: &TrialAnalysis| {
            let mut steps = trial.steps.iter();
            let of = steps.find(|one| one.name == step.name)?;
            of.response_ms.mean.filter(|_| of.bound.is_none())
        };
        row(pair, Measure::Mean, Some(step.name.clone()), blocks, &mean)
    }));
    rows
}

fn row(
    pair: &Pair<'_>,
    metric: Measure,
    step: Option<String>,
    blocks: &[Both<'_>],
    value: &dyn Fn(&TrialAnalysis) -> Option<f64>,
) -> Option<Exploratory> {
    let values = blocks.iter().filter_map(|(a, b)| {
        let (a, b) = (value(a)?, value(b)?);
        (a > 0.0 && b > 0.0).then_some((a, b))
    });
    let values: Vec<(f64, f64)> = values.collect();
    let lower = values.iter().filter(|(a, b)| b < a).count();
    let higher = values.iter().filter(|(a, b)| b > a).count();
    let n = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (values.len() >= LEAST).then_some(())?;
    Some(Exploratory {
        measured: false,
        a: pair.a.label.clone(),
        b: pair.b.label.clone(),
        metric,
        step,
        blocks: values.len(),
        lower,
        higher,
        ratio: Range::of(values.iter().map(|(a, b)| b / a))?,
        sign_p: sign_test_p(n(lower), n(higher)),
    })
}
