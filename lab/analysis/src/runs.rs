//! Two runs beside each other: the same cells, trials of the one against trials of the other.
//!
//! Two runs share no blocks, so nothing is paired: the labels of the runs are exchanged between whole
//! blocks (`lab_stats::unpaired`), for all cells and measures jointly. What else changed between the
//! runs counts as a difference, too: it is listed, and where it matters, a caller asks first.

use lab_plan::Decides;
use lab_stats::paired::Bounds;
use lab_stats::unpaired::{self, Row, least_p, least_units};
use lab_stats::verdict::{ALPHA, Compared, word};

use crate::answer::{self, Deciding};
use crate::compare::margins;
use crate::format::{list, plural, times};
use crate::model::{Analysis, Answer, Decision};
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

/// Compares run `b` with run `a`, by what their studies say.
///
/// # Errors
/// See [`CannotCompare`].
pub fn compare_runs(a: &Analysis, b: &Analysis) -> Result<RunComparison, CannotCompare> {
    compare_runs_by(a, b, None)
}

/// The same. The measure that `decides` goes before the one that the later study names, and that
/// before the earlier one's.
///
/// # Errors
/// See [`CannotCompare`].
pub fn compare_runs_by(
    a: &Analysis,
    b: &Analysis,
    decides: Option<Decides>,
) -> Result<RunComparison, CannotCompare> {
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
    let named = decides.or(b.study.decides).or(a.study.decides);
    let deciding = Deciding::of_runs(named, a, b);
    let drafts = drafts(a, b, &in_both, &deciding.in_order());
    let rule = Rule {
        claims: &claims,
        relevant,
        deciding: &deciding,
        seed: a.study.seed,
    };
    let comparisons = judge(drafts, blocks(a), &rule);
    let load_lines = line_differences(a, b, relevant);
    let bounded: Vec<String> = in_both
        .iter()
        .filter(|cells| Measure::ALL.iter().any(|one| is_cut((a, b), **cells, *one)))
        .map(|cells| cells.0.label.clone())
        .collect();
    let answer = answer(&deciding, &comparisons);
    let outcome = match outcome(answer.as_ref(), &load_lines) {
        RunOutcome::Ok | RunOutcome::CouldNotTell if !bounded.is_empty() => {
            RunOutcome::TooFewValidTrials
        }
        outcome => outcome,
    };
    Ok(RunComparison {
        schema: COMPARISON_SCHEMA,
        a: facts(a),
        b: facts(b),
        outcome,
        headline: headline(outcome, answer.as_ref(), &load_lines, &bounded),
        answer,
        differences: setup::differences(a, b),
        unmatched: unmatched(a, b),
        judged: comparisons.iter().filter(|one| one.p.is_some()).count(),
        deciding: judged_deciding(&comparisons),
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
fn drafts(a: &Analysis, b: &Analysis, in_both: &[Pair<'_>], measures: &[Measure]) -> Vec<Draft> {
    if !(a.load_lines.is_empty() && b.load_lines.is_empty()) {
        return Vec::new();
    }
    in_both
        .iter()
        .flat_map(|cells| measures.iter().map(move |measure| (cells, *measure)))
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
            smallest_difference: largest.reduce(f64::max)?.max(metric.matters(relevant)),
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
    let means = (mean(&of_a)?, mean(&of_b)?);
    // Where nothing fails there is nothing to compare.
    if measure.is_rate() && means == (0.0, 0.0) {
        return None;
    }
    Some(Draft {
        label: cells.0.label.clone(),
        measure,
        means,
        row: of_a
            .into_iter()
            .chain(of_b)
            .map(|value| measure.scaled(value?))
            .collect(),
    })
}

/// The measure of the cell's valid trial in each block.
fn by_block(of: &Analysis, cell: &CellSummary, measure: Measure) -> Vec<Option<f64>> {
    let trials: Vec<&TrialAnalysis> = valid_trials(of, cell).collect();
    (0..blocks(of))
        .map(|block| {
            let trial = trials.iter().find(|trial| trial.block as usize == block)?;
            let value = measure.of(trial)?;
            measure.scaled(value).map(|_| value)
        })
        .collect()
}

/// By what differences are judged.
struct Rule<'a> {
    claims: &'a [Claim],
    relevant: f64,
    deciding: &'a Deciding,
    seed: u64,
}

/// The deciding measures of all cells are tested together, and so are the others.
fn judge(drafts: Vec<Draft>, units: usize, rule: &Rule<'_>) -> Vec<Comparison> {
    let enough = |draft: &Draft| {
        let (a, b) = draft.values(units);
        least_p(a.len(), b.len()) <= ALPHA
    };
    let decides = |draft: &Draft| rule.deciding.has(draft.measure);
    let mut adjusted = [true, false].map(|deciding| {
        let family: Vec<Row> = drafts
            .iter()
            .filter(|draft| enough(draft) && decides(draft) == deciding)
            .map(|draft| draft.row.clone())
            .collect();
        unpaired::max_t(&family, units, rule.seed).into_iter()
    });
    drafts
        .into_iter()
        .map(|draft| {
            let decides = decides(&draft);
            let family = &mut adjusted[usize::from(!decides)];
            let p = enough(&draft).then(|| family.next()).flatten();
            let p = p.map(|p| (p.joint, p.single));
            Comparison {
                decides,
                ..comparison(&draft, units, p, rule)
            }
        })
        .collect()
}

fn comparison(draft: &Draft, units: usize, p: Option<(f64, f64)>, rule: &Rule<'_>) -> Comparison {
    let margins = margins(rule.claims, rule.relevant, draft.measure);
    let (a, b) = draft.values(units);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / as_f64(of.len() as u64);
    let log_ratio = mean(&b) - mean(&a);
    let bounds: Bounds = unpaired::interval(&a, &b, ALPHA, rule.seed);
    let trials = a.len().min(b.len());
    let judged = p.map(|(joint, _)| {
        let compared = Compared {
            log_ratio,
            one_sided: unpaired::interval(&a, &b, 2.0 * ALPHA, rule.seed),
            p: joint,
            blocks: trials,
        };
        let word = word(&compared, draft.measure.better(), margins);
        Difference::of(word, draft.measure)
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
        ratio: draft.measure.ratio(log_ratio),
        interval: bounds.is_bounded().then(|| {
            [bounds.low, bounds.high]
                .map(|end| draft.measure.ratio(end))
                .into()
        }),
        smallest_difference: margins.claims,
        matters: margins.matters,
        decides: false,
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

/// What the deciding measures of all cells come to; `None` where nothing but load lines is compared.
fn answer(deciding: &Deciding, comparisons: &[Comparison]) -> Option<Answer> {
    let decide: Vec<&Comparison> = comparisons.iter().filter(|one| one.decides).collect();
    if comparisons.is_empty() {
        return None;
    }
    let lacking = decide.iter().find(|one| one.verdict.is_none());
    let reason = match (decide.is_empty(), lacking) {
        (false, None) => {
            let decision = answer::decision(&decide, true);
            let sides = |one: &Comparison| (format!("run b at {}", one.factor), "run a".to_owned());
            let mut sentence = answer::sentence(decision, &decide, &sides);
            sentence.push_str(&answer::besides(deciding, comparisons, &sides));
            return Some(deciding.answer(decision, sentence, true));
        }
        (false, Some(one)) => {
            let reason = one.reason.clone().unwrap_or_default();
            format!("at {} {reason}", one.factor)
        }
        (true, _) => "neither run has a figure that decides".to_owned(),
    };
    let sentence = format!("Not answered: {reason}.");
    Some(deciding.answer(Decision::NotAnswered, sentence, true))
}

fn judged_deciding(comparisons: &[Comparison]) -> usize {
    let deciding = |one: &&Comparison| one.decides && one.p.is_some();
    comparisons.iter().filter(deciding).count()
}

/// A regression that is shown stays one, whatever else is open.
fn outcome(answer: Option<&Answer>, lines: &[LineDifference]) -> RunOutcome {
    let lowered = lines.iter().any(|one| one.is_regression == Some(true));
    let is_open = lines.iter().any(|one| one.is_regression.is_none());
    match answer.map(|answer| answer.decision) {
        Some(Decision::Worse) => RunOutcome::Regression,
        _ if lowered => RunOutcome::Regression,
        Some(Decision::NotAnswered) => RunOutcome::TooFewValidTrials,
        None if is_open || lines.is_empty() => RunOutcome::TooFewValidTrials,
        Some(Decision::CouldNotTell) => RunOutcome::CouldNotTell,
        _ if is_open => RunOutcome::CouldNotTell,
        _ => RunOutcome::Ok,
    }
}

fn headline(
    outcome: RunOutcome,
    answer: Option<&Answer>,
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
    match (outcome, answer) {
        (RunOutcome::Ok, Some(answer)) => format!("No regression: {}", answer.sentence),
        (_, Some(answer)) => answer.sentence.clone(),
        (_, None) if lines.is_empty() => "The runs have nothing that can be judged.".to_owned(),
        (RunOutcome::Regression, None) => {
            "A regression: run b carries fewer users than run a.".to_owned()
        }
        (RunOutcome::Ok, None) => "No regression: run b carries no fewer users than run a, as far \
                                   as the intervals tell."
            .to_owned(),
        (RunOutcome::TooFewValidTrials | RunOutcome::CouldNotTell, None) => {
            "The load lines can't be compared: an end of an interval is open.".to_owned()
        }
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
