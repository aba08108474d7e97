//! Cells compared: each with the cell that differs from it in one factor only, at that factor's
//! first level; and each factor's levels over all cells (main effects).
//!
//! Only valid trials count, paired by block. All comparisons of cells that have enough blocks are
//! one family, and so are all main effects: their p are joint.

use lab_stats::paired::{Bounds, interval, log_ratio, max_t, mean};
use lab_stats::verdict::{ALPHA, Compared, LEAST_BLOCKS, SMALLEST_RELEVANT, verdict};
use lab_study::model::{Cell, Factor, Level, Study};

use super::trial::as_f64;
use crate::format::{level, plural, times};
use crate::model::{
    CellSummary, Comparison, Difference, Inference, Measure, TrialAnalysis, Verdict,
};

/// Most pairs of cells that are compared: seven measures each.
const MOST_PAIRS: usize = 40;

/// All that is said of differences.
pub(super) struct Differences {
    pub(super) comparisons: Vec<Comparison>,
    /// Empty with fewer than two factors, where they would repeat the comparisons.
    pub(super) main_effects: Vec<Comparison>,
    pub(super) inference: Inference,
}

/// Compares what there is to compare.
pub(super) fn compare(
    study: &Study,
    seed: u64,
    trials: &[TrialAnalysis],
    cells: &[CellSummary],
) -> Differences {
    let all = Trials::new(trials);
    let mut pairs = pairs(study, cells);
    let pairs_left_out = pairs.len().saturating_sub(MOST_PAIRS);
    pairs.truncate(MOST_PAIRS);
    let of_cells = pairs
        .iter()
        .flat_map(|pair| {
            measures(std::slice::from_ref(pair)).map(|m| all.draft(pair.names(), m, &[*pair]))
        })
        .flatten()
        .collect();
    let comparisons = judge(of_cells, seed);
    let main_effects = judge(main_effects(study, cells, &all), seed);
    let inference = Inference {
        smallest_relevant: SMALLEST_RELEVANT,
        confidence: 1.0 - ALPHA,
        least_blocks: LEAST_BLOCKS,
        judged: comparisons.iter().filter(|c| c.p.is_some()).count(),
        pairs_left_out,
    };
    Differences {
        comparisons,
        main_effects,
        inference,
    }
}

/// Two cells that differ in one factor.
#[derive(Clone, Copy)]
struct Pair<'a> {
    factor: &'a Factor,
    a: &'a CellSummary,
    b: &'a CellSummary,
}

impl Pair<'_> {
    fn names(&self) -> Names {
        Names {
            factor: self.factor.name.clone(),
            a: self.a.label.clone(),
            b: self.b.label.clone(),
        }
    }
}

struct Names {
    factor: String,
    a: String,
    b: String,
}

/// Each cell with its baseline in each factor, factors and cells in the order of the study.
fn pairs<'a>(study: &'a Study, cells: &'a [CellSummary]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for factor in &study.matrix {
        for b in cells {
            let Some(baseline) = baseline(factor, &b.cell) else {
                continue;
            };
            let a = cells.iter().find(|cell| cell.cell == baseline);
            pairs.extend(a.map(|a| Pair { factor, a, b }));
        }
    }
    pairs
}

/// The cell with the factor's first level; `None` if `cell` has that level itself.
fn baseline(factor: &Factor, cell: &Cell) -> Option<Cell> {
    let first = factor.levels.first()?;
    let own = cell.get(&factor.name)?;
    (own != first).then(|| {
        let mut baseline = cell.clone();
        baseline.insert(factor.name.clone(), first.clone());
        baseline
    })
}

/// Throughput follows the number of users, so it isn't compared between different numbers.
fn measures(pairs: &[Pair<'_>]) -> impl Iterator<Item = Measure> + use<> {
    let same_users = pairs.iter().all(|pair| pair.a.users == pair.b.users);
    Measure::ALL
        .into_iter()
        .filter(move |measure| same_users || *measure != Measure::Throughput)
}

/// Level by level of each factor, over all pairs that differ in it.
fn main_effects(study: &Study, cells: &[CellSummary], trials: &Trials<'_>) -> Vec<Draft> {
    if study.matrix.len() < 2 {
        return Vec::new();
    }
    let pairs = pairs(study, cells);
    let mut drafts = Vec::new();
    for factor in &study.matrix {
        for to in factor.levels.iter().skip(1) {
            let of_level: Vec<Pair<'_>> = pairs
                .iter()
                .filter(|pair| pair.factor.name == factor.name)
                .filter(|pair| pair.b.cell.get(&factor.name) == Some(to))
                .copied()
                .collect();
            let name = |level_of: &Level| format!("{} {}", factor.name, level(level_of));
            drafts.extend(measures(&of_level).filter_map(|measure| {
                let names = Names {
                    factor: factor.name.clone(),
                    a: name(factor.levels.first()?),
                    b: name(to),
                };
                trials.draft(names, measure, &of_level)
            }));
        }
    }
    drafts
}

/// Valid trials by block.
struct Trials<'a> {
    valid: Vec<&'a TrialAnalysis>,
    blocks: u32,
}

impl<'a> Trials<'a> {
    fn new(trials: &'a [TrialAnalysis]) -> Self {
        Self {
            valid: trials
                .iter()
                .filter(|trial| trial.verdict == Verdict::Valid)
                .collect(),
            blocks: trials
                .iter()
                .map(|trial| trial.block + 1)
                .max()
                .unwrap_or(0),
        }
    }

    fn value(&self, cell: &CellSummary, block: u32, measure: Measure) -> Option<f64> {
        let trial = self
            .valid
            .iter()
            .find(|trial| trial.block == block && trial.cell == cell.cell)?;
        measure.of(trial)
    }

    /// One comparison over all of `pairs`: a block counts if it has every one of them, so that no
    /// block's mean is over other cells than the next one's. `None` without any block.
    fn draft(&self, names: Names, measure: Measure, pairs: &[Pair<'_>]) -> Option<Draft> {
        let mut draft = Draft {
            names,
            measure,
            by_block: Vec::new(),
            sums: (0.0, 0.0),
        };
        for block in 0..self.blocks {
            let values: Option<Vec<(f64, f64, f64)>> = pairs
                .iter()
                .map(|pair| {
                    let a = self.value(pair.a, block, measure)?;
                    let b = self.value(pair.b, block, measure)?;
                    Some((a, b, log_ratio(a, b)?))
                })
                .collect();
            let values = values.filter(|values| !values.is_empty());
            draft.by_block.push(values.map(|values| {
                let n = as_f64(values.len() as u64);
                draft.sums.0 += values.iter().map(|v| v.0).sum::<f64>() / n;
                draft.sums.1 += values.iter().map(|v| v.1).sum::<f64>() / n;
                values.iter().map(|v| v.2).sum::<f64>() / n
            }));
        }
        (draft.blocks() > 0).then_some(draft)
    }
}

/// A comparison before it is judged.
struct Draft {
    names: Names,
    measure: Measure,
    /// Log ratio, where the block has both.
    by_block: Vec<Option<f64>>,
    /// Values of *a* and *b* over the blocks that count.
    sums: (f64, f64),
}

impl Draft {
    fn blocks(&self) -> usize {
        self.by_block.iter().flatten().count()
    }

    fn has_enough(&self) -> bool {
        self.blocks() >= LEAST_BLOCKS
    }
}

fn judge(drafts: Vec<Draft>, seed: u64) -> Vec<Comparison> {
    let family: Vec<Vec<Option<f64>>> = drafts
        .iter()
        .filter(|draft| draft.has_enough())
        .map(|draft| draft.by_block.clone())
        .collect();
    let mut adjusted = max_t(&family, seed).into_iter();
    drafts
        .into_iter()
        .map(|draft| {
            let p = draft.has_enough().then(|| adjusted.next()).flatten();
            comparison(draft, p.map(|p| (p.joint, p.single)), seed)
        })
        .collect()
}

fn comparison(draft: Draft, p: Option<(f64, f64)>, seed: u64) -> Comparison {
    let values: Vec<f64> = draft.by_block.iter().flatten().copied().collect();
    let blocks = values.len();
    let log_ratio = mean(&values).unwrap_or_default();
    let bounds: Bounds = interval(&values, ALPHA, seed);
    let judged = p.and_then(|(joint, _)| {
        let compared = Compared {
            log_ratio,
            bounds,
            p: joint,
            blocks,
        };
        verdict(&compared, draft.measure.better(), SMALLEST_RELEVANT)
    });
    let n = as_f64(blocks as u64);
    let (mean_a, mean_b) = (draft.sums.0 / n, draft.sums.1 / n);
    Comparison {
        a: draft.names.a,
        b: draft.names.b,
        factor: draft.names.factor,
        metric: draft.measure,
        blocks,
        mean_a,
        mean_b,
        difference: mean_b - mean_a,
        ratio: log_ratio.exp(),
        interval: bounds
            .is_bounded()
            .then(|| (bounds.low.exp(), bounds.high.exp())),
        p: p.map(|p| p.0),
        p_single: p.map(|p| p.1),
        verdict: judged.map(difference),
        reason: judged.is_none().then(|| too_few(blocks)),
    }
}

fn difference(verdict: lab_stats::Verdict) -> Difference {
    match verdict {
        lab_stats::Verdict::Faster => Difference::Faster,
        lab_stats::Verdict::Slower => Difference::Slower,
        lab_stats::Verdict::NoDifference => Difference::NoneShown,
        lab_stats::Verdict::Unstable => Difference::Unstable,
    }
}

/// Why so few blocks have no verdict.
fn too_few(blocks: usize) -> String {
    let least = 2.0 / 2f64.powf(as_f64(blocks as u64));
    format!(
        "with {} chance alone gives p ≥ {}, and {LEAST_BLOCKS} blocks are the fewest that can go \
         below {}",
        plural(blocks, "paired block"),
        times(least),
        times(ALPHA),
    )
}
