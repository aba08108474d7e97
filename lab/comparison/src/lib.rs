//! Compares two runs: the same cells, trials of one against trials of the other.
//!
//! Runs with one seed have the same waits and choices in the same block: their blocks are paired. Runs with different
//! seeds share nothing. In either case all blocks of a run share that run's conditions. So the unit is the run if there
//! are several of a build; otherwise an assumption replaces them, which is stated in words. Other changes between the
//! runs count as differences, too: they are listed, and if they matter, a caller asks first.

mod before;
mod drafts;
mod inputs;
mod judge;
mod model;
mod setup;
mod words;

use lab_analysis::answer::{self, Deciding};
use lab_analysis::format::{figure, list, plural};
use lab_analysis::model::{
    Analysis, Answer, CellSummary, Claim, Comparison, Decision, LineDifference, LoadLine, Measure,
};
use lab_analysis::sample::{CellSample, Consumer, Standing};
use lab_stats::unpaired::least_units;
use lab_stats::verdict::ALPHA;

pub use before::TwoRuns;
use drafts::{Draft, blocks, drafts, is_cut};
use inputs::Pair;
pub use inputs::Runs;
use judge::{Exchange, Rule, judge};
pub use model::{COMPARISON_SCHEMA, RunComparison, RunFacts, RunOutcome, SetupDifference};
pub use setup::machine_differences;

/// Why two runs can't be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotCompare {
    /// Their users have different workloads.
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
    /// A side is empty.
    #[error("a comparison needs a run on each side")]
    NoRun,
    /// Load lines are only compared between two runs.
    #[error("searches for the load line are compared one with one, not several of them")]
    SeveralSearches,
}

/// Compares run `b` with run `a`, by their studies' settings.
///
/// # Errors
/// See [`CannotCompare`].
pub fn compare_runs(a: &Analysis, b: &Analysis) -> Result<RunComparison, CannotCompare> {
    let runs = Runs {
        a: std::slice::from_ref(a),
        b: std::slice::from_ref(b),
        earlier: &[],
        decides: None,
    };
    runs.compare()
}

impl<'a> Runs<'a> {
    /// Compares them.
    ///
    /// # Errors
    /// See [`CannotCompare`].
    pub fn compare(&self) -> Result<RunComparison, CannotCompare> {
        let (a, b) = self
            .a
            .first()
            .zip(self.b.first())
            .ok_or(CannotCompare::NoRun)?;
        for other in self.both() {
            same_workload(a, other)?;
        }
        if self.both().count() > 2 && self.both().any(|run| !run.load_lines.is_empty()) {
            return Err(CannotCompare::SeveralSearches);
        }
        let in_both = in_both(a, b)?;
        let relevant = self.both().map(|run| run.inference.smallest_relevant);
        let relevant = relevant.fold(0.0, f64::max);
        let claims = claims(self, relevant);
        let deciding = self.deciding();
        let (drafts, exchange) = self.exchanged(&in_both, &deciding, a.study.seed);
        let rule = Rule {
            claims: &claims,
            relevant,
            deciding: &deciding,
            exchange,
        };
        let mut comparisons = judge(drafts, &rule);
        let standings = self.standings();
        bar(&mut comparisons, &standings);
        let load_lines = line_differences(a, b, relevant);
        let cut = |cell: &CellSummary| Measure::ALL.iter().any(|one| is_cut(self, cell, *one));
        let bounded = in_both.iter().filter(|cells| cut(cells.0));
        let bounded: Vec<String> = bounded.map(|cells| cells.0.label.clone()).collect();
        let answer = answer(&deciding, &comparisons, &standings);
        let outcome = match outcome(answer.as_ref(), &load_lines) {
            RunOutcome::Ok | RunOutcome::CouldNotTell if !bounded.is_empty() => {
                RunOutcome::TooFewValidTrials
            }
            outcome => outcome,
        };
        let further = |of: &[Analysis]| of.iter().skip(1).map(facts).collect();
        Ok(RunComparison {
            schema: COMPARISON_SCHEMA,
            a: facts(a),
            b: facts(b),
            further_a: further(self.a),
            further_b: further(self.b),
            earlier: self.earlier().map(facts).collect(),
            outcome,
            headline: headline(outcome, answer.as_ref(), &load_lines, &bounded),
            answer,
            differences: self.differences(a),
            unmatched: unmatched(a, b),
            missing: standings.iter().filter_map(Cell::missing).collect(),
            judged: comparisons.iter().filter(|one| one.p.is_some()).count(),
            deciding: judged_deciding(&comparisons),
            paired: exchange.paired,
            pairing: words::pairing(self, &comparisons, exchange.paired),
            between_runs: words::between_runs(self, &comparisons, exchange.paired),
            comparisons,
            bounded,
            load_lines,
            smallest_relevant: relevant,
            claims,
            confidence: 1.0 - ALPHA,
            least_trials: least_units(ALPHA),
        })
    }

    /// The compared drafts, and their permutations: in pairs if all runs have one seed, and if no comparison with
    /// enough blocks for a verdict loses it by that.
    fn exchanged(
        &self,
        in_both: &[Pair<'_>],
        deciding: &Deciding,
        seed: u64,
    ) -> (Vec<Draft>, Exchange) {
        let exchange = |paired| Exchange {
            paired,
            units: self.a.iter().map(blocks).sum(),
            seed,
        };
        let measures = deciding.in_order();
        let (unpaired, paired) = (exchange(false), exchange(true));
        let apart = drafts(self, in_both, &measures, false);
        if self.one_seed().is_some() && !self.has_one_twice() {
            let pairs = drafts(self, in_both, &measures, true);
            let able = |drafts: &[Draft], by: Exchange| {
                drafts.iter().filter(|draft| by.can_show(draft)).count()
            };
            let most = able(&apart, unpaired);
            if most > 0 && able(&pairs, paired) == most {
                return (pairs, paired);
            }
        }
        (apart, unpaired)
    }

    /// The state of the sample of each cell of the baseline; empty for searches, whose lines count all trials.
    fn standings(&self) -> Vec<Cell> {
        if self.both().any(|run| !run.load_lines.is_empty()) {
            return Vec::new();
        }
        let (a, b) = (merged(self.a), merged(self.b));
        let cell = |of_a: &CellSample| {
            let same = |other: &&CellSample| other.cell == of_a.cell && other.users == of_a.users;
            let name = format!("run b at {}", of_a.label);
            let sides = ((Some(of_a), "run a"), (b.iter().find(same), name.as_str()));
            Cell {
                label: of_a.label.clone(),
                standing: Standing::of(sides.0, sides.1, Consumer::Runs),
            }
        };
        a.iter().map(cell).collect()
    }

    /// The differences in the setup of the other runs from the first of the baseline.
    fn differences(&self, a: &Analysis) -> Vec<SetupDifference> {
        let mut all: Vec<SetupDifference> = Vec::new();
        for other in self.b.iter().chain(self.a.iter().skip(1)) {
            for found in setup::differences(a, other) {
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        all
    }
}

/// A cell of the baseline, and the state of its sample and its counterpart's.
struct Cell {
    label: String,
    standing: Standing,
}

impl Cell {
    fn missing(&self) -> Option<String> {
        let why = self.standing.reason()?;
        Some(format!("at {}: {why}", self.label))
    }
}

/// The samples of several runs of one build, cell by cell.
fn merged(runs: &[Analysis]) -> Vec<CellSample> {
    let mut merged: Vec<CellSample> = Vec::new();
    for sample in runs.iter().flat_map(|run| &run.samples) {
        let same = |one: &&mut CellSample| one.cell == sample.cell && one.users == sample.users;
        match merged.iter_mut().find(same) {
            Some(known) => known.add(sample),
            None => merged.push(sample.clone()),
        }
    }
    merged
}

/// Removes good verdicts from comparisons of cells whose samples are incomplete.
fn bar(comparisons: &mut [Comparison], cells: &[Cell]) {
    for cell in cells {
        let Some(why) = cell.standing.reason() else {
            continue;
        };
        for one in comparisons
            .iter_mut()
            .filter(|one| one.factor == cell.label)
        {
            one.bar(why);
        }
    }
}

fn same_workload(a: &Analysis, b: &Analysis) -> Result<(), CannotCompare> {
    if a.study.workload_sha256 == b.study.workload_sha256 {
        return Ok(());
    }
    Err(CannotCompare::Workload {
        a: a.study.workload.clone(),
        b: b.study.workload.clone(),
    })
}

/// The cells of both; at least one, unless they searched.
fn in_both<'a>(a: &'a Analysis, b: &'a Analysis) -> Result<Vec<Pair<'a>>, CannotCompare> {
    let of_both = |cell: &'a CellSummary| Some((cell, same_cell(cell, b)?));
    let in_both: Vec<Pair<'a>> = a.cells.iter().filter_map(of_both).collect();
    // A search chooses its loads; two of them only have their lines in common.
    if !in_both.is_empty() || !a.load_lines.is_empty() {
        return Ok(in_both);
    }
    let labels = |of: &Analysis| {
        // Without levels in the study, only the users distinguish cells.
        let label = |cell: &CellSummary| match cell.label.contains("users") {
            true => cell.label.clone(),
            false => format!(
                "{} with {}",
                cell.label,
                plural(cell.users as usize, "user")
            ),
        };
        let labels: Vec<String> = of.cells.iter().map(label).collect();
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

/// By measure the largest minimum detectable effect of all runs.
fn claims(runs: &Runs<'_>, relevant: f64) -> Vec<Claim> {
    let all = || runs.both().flat_map(|run| &run.inference.claims);
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

/// Lines of the same cell, the second run's with the first's. A line that the second run lacks is no answer.
fn line_differences(a: &Analysis, b: &Analysis, relevant: f64) -> Vec<LineDifference> {
    let beside = |one: &LoadLine| {
        let other = b.load_lines.iter().find(|other| other.cell == one.cell);
        let mut found = lab_analysis::line_regression(one, other, relevant);
        found.a = format!("{} in run a", found.a);
        found.b = format!("{} in run b", found.b);
        found
    };
    a.load_lines.iter().map(beside).collect()
}

/// The verdict of the deciding measures over all cells; `None` if only load lines are compared.
fn answer(deciding: &Deciding, comparisons: &[Comparison], cells: &[Cell]) -> Option<Answer> {
    if cells.is_empty() && comparisons.is_empty() {
        return None;
    }
    let decide: Vec<&Comparison> = comparisons.iter().filter(|one| one.decides).collect();
    let standings = || cells.iter().map(|cell| &cell.standing);
    if let Some(sentence) = answer::worse(standings()) {
        return Some(deciding.answer(Decision::Worse, sentence, true));
    }
    let is_worse = answer::decision(&decide, true) == Decision::Worse;
    if let Some(why) = unanswered(deciding, &decide, cells).filter(|_| !is_worse) {
        let sentence = format!("Not answered: {why}.");
        return Some(deciding.answer(Decision::NotAnswered, sentence, true));
    }
    let decision = answer::decision(&decide, true);
    let sides = |one: &Comparison| (format!("run b at {}", one.factor), "run a".to_owned());
    let mut sentence = answer::sentence(decision, &decide, &sides);
    sentence.push_str(&answer::besides(deciding, comparisons, &sides));
    Some(deciding.answer(decision, sentence, true))
}

/// Why there is no answer, whatever the other comparisons: trials, a figure, or blocks are missing.
fn unanswered(deciding: &Deciding, decide: &[&Comparison], cells: &[Cell]) -> Option<String> {
    let missing = cells.iter().find_map(|cell| cell.standing.reason());
    if let Some(why) = missing {
        return Some(why.to_owned());
    }
    if let Some(one) = decide.iter().find(|one| one.verdict.is_none()) {
        let reason = one.reason.as_deref().unwrap_or_default();
        return Some(format!("at {} {reason}", one.factor));
    }
    // Rates have no comparison without failures.
    let needed = || deciding.measures.iter().filter(|one| !one.is_rate());
    let has = |measure: Measure, cell: &Cell| {
        let mut of_cell = decide.iter().filter(|one| one.factor == cell.label);
        of_cell.any(|one| one.metric == measure)
    };
    let mut lacking = cells
        .iter()
        .flat_map(|cell| needed().map(move |one| (*one, cell)));
    let (measure, cell) = lacking.find(|(measure, cell)| !has(*measure, cell))?;
    let name = measure.name();
    Some(format!(
        "no run has the {name} at {} in any block",
        cell.label
    ))
}

fn judged_deciding(comparisons: &[Comparison]) -> usize {
    let deciding = |one: &&Comparison| one.decides && one.p.is_some();
    comparisons.iter().filter(deciding).count()
}

/// A regression remains one, whatever else is open.
fn outcome(answer: Option<&Answer>, lines: &[LineDifference]) -> RunOutcome {
    let lowered = lines.iter().any(|one| one.is_regression == Some(true));
    let is_open = |one: &&LineDifference| one.is_regression.is_none();
    let mut open = lines.iter().filter(is_open);
    let is_unbounded = open.clone().any(|one| one.bound.is_none());
    match answer.map(|answer| answer.decision) {
        Some(Decision::Worse) => RunOutcome::Regression,
        _ if lowered => RunOutcome::Regression,
        Some(Decision::NotAnswered) => RunOutcome::TooFewValidTrials,
        None if lines.is_empty() => RunOutcome::TooFewValidTrials,
        _ if is_unbounded => RunOutcome::TooFewValidTrials,
        Some(Decision::CouldNotTell) => RunOutcome::CouldNotTell,
        _ if open.next().is_some() => RunOutcome::CouldNotTell,
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
        (RunOutcome::Ok, None) => format!("No regression: run b {}.", bound(lines)),
        (RunOutcome::CouldNotTell, None) => format!("Could not tell: run b {}.", bound(lines)),
        (RunOutcome::TooFewValidTrials, None) => {
            "The load lines can't be compared: a line is missing, or an end of an interval is open."
                .to_owned()
        }
    }
}

/// How many fewer users run b may sustain at worst, with the equivalence margin.
fn bound(lines: &[LineDifference]) -> String {
    let beyond =
        |one: &LineDifference| -one.bound.unwrap_or_default() - one.margin.unwrap_or_default();
    let worst = lines.iter().max_by(|x, y| beyond(x).total_cmp(&beyond(y)));
    let fewer = worst.and_then(|one| one.bound).map_or(0.0, |bound| -bound);
    let margin = worst.and_then(|one| one.margin).unwrap_or_default();
    match fewer > 0.0 {
        true => format!(
            "carries at most {} users fewer than run a; from {} on it matters",
            figure(fewer.floor()),
            figure(margin)
        ),
        false => "carries no fewer users than run a".to_owned(),
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
