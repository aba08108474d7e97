//! Drafts of comparisons between runs: a measure of a cell, block by block of every run.

use lab_analysis::format::plural;
use lab_analysis::model::{Analysis, CellSummary, Measure, TrialAnalysis, Verdict};
use lab_stats::between::Blocks;
use lab_stats::unpaired::Row;
use lab_trial::as_f64;

use crate::inputs::{Pair, Runs};
use crate::setup;

/// A measure of a cell before it is judged: logs, or parts of all requests, by run and block.
pub(crate) struct Draft {
    pub(crate) label: String,
    pub(crate) measure: Measure,
    pub(crate) a: Vec<Vec<Option<f64>>>,
    pub(crate) b: Vec<Vec<Option<f64>>>,
    /// Earlier runs, grouped by build.
    pub(crate) earlier: Vec<Vec<Blocks>>,
    pub(crate) means: (f64, f64),
    /// Why a good verdict is barred: valid trials lack this figure.
    pub(crate) missing: Option<String>,
}

impl Draft {
    /// All blocks, those of the first side first.
    pub(crate) fn row(&self) -> Row {
        self.a.iter().chain(&self.b).flatten().copied().collect()
    }

    /// By block the difference of the sides' means, if every run has it.
    pub(crate) fn pairs(&self) -> Vec<Option<f64>> {
        let mean = |runs: &[Vec<Option<f64>>], block: usize| {
            let values = runs.iter().map(|run| run.get(block).copied().flatten());
            lab_stats::paired::mean(&values.collect::<Option<Vec<f64>>>()?)
        };
        let blocks = self.a.first().map_or(0, Vec::len);
        let pair = |block| Some(mean(&self.b, block)? - mean(&self.a, block)?);
        (0..blocks).map(pair).collect()
    }

    /// Both sides, each with the values of every run.
    pub(crate) fn sides(&self) -> (Vec<Blocks>, Vec<Blocks>) {
        let some = |runs: &[Vec<Option<f64>>]| {
            let of_run = |run: &Vec<Option<f64>>| run.iter().flatten().copied().collect();
            runs.iter().map(of_run).collect()
        };
        (some(&self.a), some(&self.b))
    }

    /// Both sides, over all runs.
    pub(crate) fn values(&self) -> (Vec<f64>, Vec<f64>) {
        let (a, b) = self.sides();
        (a.concat(), b.concat())
    }
}

/// The drafts: every measure of every cell, except those censored at a time limit. A search chose every trial by
/// earlier results: its loads aren't compared. If blocks are `paired`, only those that every run has count.
pub(crate) fn drafts(
    runs: &Runs<'_>,
    in_both: &[Pair<'_>],
    measures: &[Measure],
    paired: bool,
) -> Vec<Draft> {
    if runs.both().any(|run| !run.load_lines.is_empty()) {
        return Vec::new();
    }
    in_both
        .iter()
        .flat_map(|cells| measures.iter().map(move |measure| (cells.0, *measure)))
        .filter(|(cell, measure)| !is_cut(runs, cell, *measure))
        .filter_map(|(cell, measure)| draft(runs, cell, measure, paired))
        .collect()
}

/// Returns true if a valid trial of the cell has no value because some operations took too long.
pub(crate) fn is_cut(runs: &Runs<'_>, cell: &CellSummary, measure: Measure) -> bool {
    let cut = |of| valid_trials(of, cell).any(|trial| measure.is_cut(trial));
    runs.both().any(cut)
}

fn valid_trials<'a>(
    of: &'a Analysis,
    cell: &'a CellSummary,
) -> impl Iterator<Item = &'a TrialAnalysis> {
    of.trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid && cell.is_of(trial))
}

/// `None` if a side has no value at all.
fn draft(runs: &Runs<'_>, cell: &CellSummary, measure: Measure, paired: bool) -> Option<Draft> {
    let side = |of: &[Analysis]| -> Vec<Vec<Option<f64>>> {
        of.iter().map(|run| by_block(run, cell, measure)).collect()
    };
    let (mut of_a, mut of_b) = (side(runs.a), side(runs.b));
    if paired {
        leave_common(of_a.iter_mut().chain(&mut of_b));
    }
    let mean = |of: &[Vec<Option<f64>>]| {
        let some: Vec<f64> = of.iter().flatten().flatten().copied().collect();
        lab_stats::ratio(some.iter().sum(), as_f64(some.len() as u64))
    };
    let means = (mean(&of_a)?, mean(&of_b)?);
    // Without failures there is nothing to compare.
    if measure.is_rate() && means == (0.0, 0.0) {
        return None;
    }
    let scaled = |runs: Vec<Vec<Option<f64>>>| -> Vec<Vec<Option<f64>>> {
        let of_run = |run: Vec<Option<f64>>| run.into_iter().map(|v| measure.scaled(v?)).collect();
        runs.into_iter().map(of_run).collect()
    };
    Some(Draft {
        label: cell.label.clone(),
        measure,
        means,
        a: scaled(of_a),
        b: scaled(of_b),
        earlier: earlier(runs, cell, measure),
        missing: missing(runs, cell, measure),
    })
}

/// The number of valid trials of a side without the figure, in words.
fn missing(runs: &Runs<'_>, cell: &CellSummary, measure: Measure) -> Option<String> {
    let side = |of: &[Analysis], name: &str| {
        let trials = || of.iter().flat_map(|run| valid_trials(run, cell));
        let is_none = |trial: &&TrialAnalysis| {
            let value = measure.of(trial);
            value.and_then(|value| measure.scaled(value)).is_none()
        };
        let (none, all) = (trials().filter(is_none).count(), trials().count());
        let valid = plural(all, "valid trial");
        let what = measure.name();
        let beyond = trials().any(|trial| measure.is_beyond(trial));
        (none > 0).then(|| match beyond {
            true => format!("the {what} of {none} of {valid} of {name} is beyond any limit"),
            false => format!("{none} of {valid} of {name} have no {what}"),
        })
    };
    side(runs.a, "run a").or_else(|| side(runs.b, "run b"))
}

/// Keeps the blocks that all runs have.
fn leave_common<'a>(runs: impl Iterator<Item = &'a mut Vec<Option<f64>>>) {
    let mut runs: Vec<&mut Vec<Option<f64>>> = runs.collect();
    let blocks = runs.iter().map(|run| run.len()).min().unwrap_or_default();
    runs.iter_mut().for_each(|run| run.truncate(blocks));
    for block in 0..blocks {
        if runs.iter().any(|run| run[block].is_none()) {
            runs.iter_mut().for_each(|run| run[block] = None);
        }
    }
}

/// Groups earlier runs with one version and the same settings of the system.
fn earlier(runs: &Runs<'_>, cell: &CellSummary, measure: Measure) -> Vec<Vec<Blocks>> {
    let mut builds: Vec<(String, Vec<Blocks>)> = Vec::new();
    for run in runs.earlier() {
        let values = by_block(run, cell, measure).into_iter().flatten();
        let values: Blocks = values.filter_map(|value| measure.scaled(value)).collect();
        if values.is_empty() || valid_trials(run, cell).any(|trial| measure.is_cut(trial)) {
            continue;
        }
        let build = setup::build(run);
        match builds.iter_mut().find(|(known, _)| *known == build) {
            Some((_, runs)) => runs.push(values),
            None => builds.push((build, vec![values])),
        }
    }
    builds.into_iter().map(|(_, runs)| runs).collect()
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

pub(crate) fn blocks(of: &Analysis) -> usize {
    let blocks = of.trials.iter().map(|trial| trial.block + 1);
    blocks.max().unwrap_or(0) as usize
}
