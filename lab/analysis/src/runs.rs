//! Two runs beside each other: the same cells, trials of the one against trials of the other.
//!
//! Two runs share no blocks, so nothing is paired: the labels of the runs are exchanged between whole
//! blocks (`lab_stats::unpaired`), for all cells and measures jointly. What else changed between the
//! runs counts as a difference, too: it is listed, and where it matters, a caller asks first.

use lab_stats::paired::Bounds;
use lab_stats::unpaired::{self, Row, least_p, least_units};
use lab_stats::verdict::{ALPHA, Compared, word};

use crate::format::{list, plural, times};
use crate::model::Analysis;
use crate::model::{COMPARISON_SCHEMA, RunComparison, RunFacts, RunOutcome};
use crate::model::{
    CellSummary, Claim, Comparison, Difference, LineDifference, Measure, TrialAnalysis, Verdict,
};
use crate::number::as_f64;
use crate::{line, setup};

/// Why two runs can't be compared at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotCompare {
    /// Their users do different things.
    #[error(
        "the runs have different workloads: “{a}” and “{b}” don't mean the same, so their figures \
         don't compare"
    )]
    Workload {
        /// Of the first run.
        a: String,
        /// Of the second.
        b: String,
    },
    /// They have no cell in common.
    #[error("the runs have no cell in common: {a} in the first, {b} in the second")]
    NoCell {
        /// Cells of the first.
        a: String,
        /// Cells of the second.
        b: String,
    },
}

/// Compares run `b` with run `a`.
///
/// # Errors
/// See [`CannotCompare`].
pub fn compare_runs(a: &Analysis, b: &Analysis) -> Result<RunComparison, CannotCompare> {
    if a.study.workload_sha256 != b.study.workload_sha256 {
        return Err(CannotCompare::Workload {
            a: a.study.workload.clone(),
            b: b.study.workload.clone(),
        });
    }
    let in_both = in_both(a, b)?;
    let relevant = a
        .inference
        .smallest_relevant
        .max(b.inference.smallest_relevant);
    let claims = claims(a, b, relevant);
    let drafts = drafts(a, b, &in_both);
    let comparisons = judge(drafts, blocks(a), &claims, relevant, a.study.seed);
    let load_lines = line_differences(a, b, relevant);
    let bounded: Vec<String> = in_both
        .iter()
        .filter(|cells| Measure::ALL.iter().any(|one| is_cut((a, b), **cells, *one)))
        .map(|cells| cells.0.label.clone())
        .collect();
    let outcome = match outcome(&comparisons, &load_lines) {
        RunOutcome::Ok if !bounded.is_empty() => RunOutcome::TooFewValidTrials,
        outcome => outcome,
    };
    Ok(RunComparison {
        schema: COMPARISON_SCHEMA,
        a: facts(a),
        b: facts(b),
        outcome,
        headline: headline(outcome, &comparisons, &load_lines, &bounded),
        differences: setup::differences(a, b),
        unmatched: unmatched(a, b),
        judged: comparisons.iter().filter(|one| one.p.is_some()).count(),
        comparisons,
        bounded,
        load_lines,
        smallest_relevant: relevant,
        claims,
        confidence: 1.0 - ALPHA,
        least_trials: least_units(ALPHA),
    })
}

/// A cell of the first run, and the same of the second.
type Pair<'a> = (&'a CellSummary, &'a CellSummary);

/// The cells that both have; at least one.
fn in_both<'a>(a: &'a Analysis, b: &'a Analysis) -> Result<Vec<Pair<'a>>, CannotCompare> {
    let of_both = |cell: &'a CellSummary| Some((cell, same_cell(cell, b)?));
    let in_both: Vec<Pair<'a>> = a.cells.iter().filter_map(of_both).collect();
    if !in_both.is_empty() {
        return Ok(in_both);
    }
    let labels = |of: &Analysis| {
        let labels: Vec<String> = of.cells.iter().map(|cell| cell.label.clone()).collect();
        if labels.is_empty() {
            "none".to_owned()
        } else {
            list(&labels)
        }
    };
    Err(CannotCompare::NoCell {
        a: labels(a),
        b: labels(b),
    })
}

/// What is compared: every measure of every cell, but for those cut at a time limit. Of a search
/// every trial was chosen by what was seen before: its loads aren't compared.
fn drafts(a: &Analysis, b: &Analysis, in_both: &[Pair<'_>]) -> Vec<Draft> {
    if !(a.load_lines.is_empty() && b.load_lines.is_empty()) {
        return Vec::new();
    }
    in_both
        .iter()
        .flat_map(|cells| Measure::ALL.map(|measure| (cells, measure)))
        .filter(|(cells, measure)| !is_cut((a, b), **cells, *measure))
        .filter_map(|(cells, measure)| draft((a, b), *cells, measure))
        .collect()
}

fn same_cell<'a>(cell: &CellSummary, of: &'a Analysis) -> Option<&'a CellSummary> {
    let same = |other: &&CellSummary| other.cell == cell.cell && other.users == cell.users;
    of.cells.iter().find(same)
}

fn facts(of: &Analysis) -> RunFacts {
    RunFacts {
        study: of.study.name.clone(),
        title: of.study.title.clone(),
        started: of.study.started.clone(),
        plimsoll_version: of.environment.plimsoll_version.clone(),
        valid: of.summary.valid,
        trials: of.summary.complete,
    }
}

/// By measure the larger of both runs' claims.
fn claims(a: &Analysis, b: &Analysis, relevant: f64) -> Vec<Claim> {
    let all = || a.inference.claims.iter().chain(&b.inference.claims);
    let claim = |metric: Measure| {
        let of_metric = all().filter(|claim| claim.metric == metric);
        let largest = of_metric.map(|claim| claim.smallest_difference);
        Some(Claim {
            metric,
            smallest_difference: largest.reduce(f64::max)?.max(relevant),
        })
    };
    Measure::ALL.into_iter().filter_map(claim).collect()
}

fn blocks(of: &Analysis) -> usize {
    of.trials
        .iter()
        .map(|trial| trial.block + 1)
        .max()
        .unwrap_or(0) as usize
}

/// A measure of a cell before it is judged: logs by block, those of the first run first.
struct Draft {
    label: String,
    measure: Measure,
    row: Row,
    means: (f64, f64),
}

impl Draft {
    fn values(&self, units: usize) -> (Vec<f64>, Vec<f64>) {
        let (a, b) = self.row.split_at(units);
        let some = |of: &[Option<f64>]| of.iter().flatten().copied().collect();
        (some(a), some(b))
    }
}

/// Whether a valid trial of either cell has no value because some operations took too long.
fn is_cut(
    (a, b): (&Analysis, &Analysis),
    cells: (&CellSummary, &CellSummary),
    measure: Measure,
) -> bool {
    let cut = |of: &Analysis, cell| valid_trials(of, cell).any(|trial| measure.is_cut(trial));
    cut(a, cells.0) || cut(b, cells.1)
}

fn valid_trials<'a>(
    of: &'a Analysis,
    cell: &'a CellSummary,
) -> impl Iterator<Item = &'a TrialAnalysis> {
    of.trials.iter().filter(|trial| {
        trial.verdict == Verdict::Valid
            && trial.cell == cell.cell
            && trial.users == cell.users
            && !trial.control
    })
}

/// `None` where a run has no value at all.
fn draft(
    (a, b): (&Analysis, &Analysis),
    cells: (&CellSummary, &CellSummary),
    measure: Measure,
) -> Option<Draft> {
    let (of_a, of_b) = (by_block(a, cells.0, measure), by_block(b, cells.1, measure));
    let mean = |of: &[Option<f64>]| {
        let some: Vec<f64> = of.iter().flatten().copied().collect();
        lab_stats::ratio(some.iter().sum(), as_f64(some.len() as u64))
    };
    Some(Draft {
        label: cells.0.label.clone(),
        measure,
        means: (mean(&of_a)?, mean(&of_b)?),
        row: of_a
            .into_iter()
            .chain(of_b)
            .map(|value| value.map(f64::ln))
            .collect(),
    })
}

/// The measure of the cell's valid trial in each block.
fn by_block(of: &Analysis, cell: &CellSummary, measure: Measure) -> Vec<Option<f64>> {
    let trials: Vec<&TrialAnalysis> = valid_trials(of, cell).collect();
    (0..blocks(of))
        .map(|block| {
            let trial = trials.iter().find(|trial| trial.block as usize == block)?;
            measure
                .of(trial)
                .filter(|value| value.is_finite() && *value > 0.0)
        })
        .collect()
}

fn judge(
    drafts: Vec<Draft>,
    units: usize,
    claims: &[Claim],
    relevant: f64,
    seed: u64,
) -> Vec<Comparison> {
    let enough = |draft: &Draft| {
        let (a, b) = draft.values(units);
        least_p(a.len(), b.len()) <= ALPHA
    };
    let family: Vec<Row> = drafts
        .iter()
        .filter(|draft| enough(draft))
        .map(|draft| draft.row.clone())
        .collect();
    let mut adjusted = unpaired::max_t(&family, units, seed).into_iter();
    drafts
        .into_iter()
        .map(|draft| {
            let p = enough(&draft).then(|| adjusted.next()).flatten();
            let claim = claims.iter().find(|claim| claim.metric == draft.measure);
            let relevant = claim.map_or(relevant, |claim| claim.smallest_difference);
            let p = p.map(|p| (p.joint, p.single));
            comparison(&draft, units, p, relevant, seed)
        })
        .collect()
}

fn comparison(
    draft: &Draft,
    units: usize,
    p: Option<(f64, f64)>,
    relevant: f64,
    seed: u64,
) -> Comparison {
    let (a, b) = draft.values(units);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / as_f64(of.len() as u64);
    let log_ratio = mean(&b) - mean(&a);
    let bounds: Bounds = unpaired::interval(&a, &b, ALPHA, seed);
    let trials = a.len().min(b.len());
    let judged = p.map(|(joint, _)| {
        let compared = Compared {
            log_ratio,
            bounds,
            p: joint,
            blocks: trials,
        };
        Difference::of(
            word(&compared, draft.measure.better(), relevant),
            draft.measure,
        )
    });
    Comparison {
        a: "a".to_owned(),
        b: "b".to_owned(),
        factor: draft.label.clone(),
        metric: draft.measure,
        blocks: trials,
        mean_a: draft.means.0,
        mean_b: draft.means.1,
        difference: draft.means.1 - draft.means.0,
        ratio: log_ratio.exp(),
        interval: bounds
            .is_bounded()
            .then(|| (bounds.low.exp(), bounds.high.exp())),
        smallest_difference: relevant,
        p: p.map(|p| p.0),
        p_single: p.map(|p| p.1),
        verdict: judged,
        reason: judged.is_none().then(|| too_few(a.len(), b.len())),
    }
}

/// Why so few trials have no verdict.
fn too_few(a: usize, b: usize) -> String {
    format!(
        "with {} beside {b} chance alone gives p ≥ {}; {} in each run are the fewest that can go \
         below {}",
        plural(a, "valid trial"),
        times(least_p(a, b)),
        least_units(ALPHA),
        times(ALPHA),
    )
}

/// Lines of the same cell, the second run's beside the first's.
fn line_differences(a: &Analysis, b: &Analysis, relevant: f64) -> Vec<LineDifference> {
    let pair = |one: &crate::model::LoadLine| {
        let other = b.load_lines.iter().find(|other| other.cell == one.cell)?;
        let mut found = line::regression(one, other, relevant);
        found.a = format!("{} in run a", found.a);
        found.b = format!("{} in run b", found.b);
        Some(found)
    };
    a.load_lines.iter().filter_map(pair).collect()
}

fn outcome(comparisons: &[Comparison], lines: &[LineDifference]) -> RunOutcome {
    let lowered = lines.iter().any(|one| one.is_regression == Some(true));
    let unjudged = comparisons.iter().any(|one| one.verdict.is_none());
    let worse = |one: &Comparison| one.verdict.is_some_and(Difference::is_worse);
    if unjudged
        || (comparisons.is_empty() && lines.is_empty())
        || (!lowered && lines.iter().any(|one| one.is_regression.is_none()))
    {
        RunOutcome::TooFewValidTrials
    } else if lowered || comparisons.iter().any(worse) {
        RunOutcome::Regression
    } else {
        RunOutcome::Ok
    }
}

fn headline(
    outcome: RunOutcome,
    comparisons: &[Comparison],
    lines: &[LineDifference],
    bounded: &[String],
) -> String {
    if outcome == RunOutcome::TooFewValidTrials && !bounded.is_empty() {
        return format!(
            "The runs can't be judged in every cell: operations took longer than the time limit at \
             {}, so that times are bounds.",
            list(bounded)
        );
    }
    if comparisons.is_empty() && !lines.is_empty() {
        return match outcome {
            RunOutcome::TooFewValidTrials => {
                "The load lines can't be compared: an end of an interval is open.".to_owned()
            }
            RunOutcome::Regression => {
                "A regression: run b carries fewer users than run a.".to_owned()
            }
            RunOutcome::Ok => "No regression: run b carries no fewer users than run a, as far as \
                               the intervals tell."
                .to_owned(),
        };
    }
    let of = |wanted: fn(Difference) -> bool| -> Vec<&Comparison> {
        let is = |one: &&Comparison| one.verdict.is_some_and(wanted);
        comparisons.iter().filter(is).collect()
    };
    let worst = |of: &[&Comparison]| {
        let far = |one: &&&Comparison| one.ratio.ln().abs();
        let most = of.iter().max_by(|x, y| far(x).total_cmp(&far(y)))?;
        Some(format!(
            "{} {} at {}",
            most.metric.name(),
            crate::format::ratio_or_percent(most.ratio),
            most.factor
        ))
    };
    let (better, worse) = (of(Difference::is_better), of(Difference::is_worse));
    let compared = plural(comparisons.len(), "comparison");
    match outcome {
        RunOutcome::TooFewValidTrials => {
            let reason = comparisons.iter().find_map(|one| one.reason.as_ref());
            reason.map_or_else(
                || "The runs have nothing that can be judged.".to_owned(),
                |reason| format!("The runs can't be judged in every cell: {reason}."),
            )
        }
        RunOutcome::Regression => format!(
            "A regression: run b is worse than run a in {} of {compared}, most of all {}.",
            worse.len(),
            worst(&worse).unwrap_or_default()
        ),
        RunOutcome::Ok if better.is_empty() => {
            format!("No regression: in none of {compared} is a difference shown.")
        }
        RunOutcome::Ok => format!(
            "No regression: run b is better than run a in {} of {compared}, most of all {}.",
            better.len(),
            worst(&better).unwrap_or_default()
        ),
    }
}

fn unmatched(a: &Analysis, b: &Analysis) -> Vec<String> {
    let missing = |of: &Analysis, beside: &Analysis, name: &str| -> Vec<String> {
        let alone = of
            .cells
            .iter()
            .filter(|cell| same_cell(cell, beside).is_none());
        alone
            .map(|cell| format!("{} is in run {name} only", cell.label))
            .collect()
    };
    let mut all = missing(a, b, "a");
    all.extend(missing(b, a, "b"));
    all
}
