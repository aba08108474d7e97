//! What a study of so many blocks can show, before it runs: the least p of a pair, and the blocks
//! that a difference needs by how far pairs spread. It knows no words and no times.

use std::collections::BTreeMap;

use lab_plan::Cell;
use lab_stats::power::{MOST_BLOCKS, Sought, USUAL_POWER, needed_blocks, paired_spread};
use lab_stats::verdict::{ALPHA, LEAST_BLOCKS};

use crate::model::{Analysis, Measure, Verdict};

/// The differences that are asked about, as parts.
pub const EFFECTS: [f64; 3] = [0.02, 0.05, 0.10];
/// The spreads that stand for those of a run that isn't there yet.
pub const SPREADS: [f64; 3] = [0.02, 0.03, 0.05];
/// What an earlier run tells the spread of.
const MEASURES: [Measure; 4] = [
    Measure::Mean,
    Measure::P95,
    Measure::Throughput,
    Measure::Cpu,
];

/// The study that is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Blocks that it runs.
    pub blocks: usize,
    /// Differences within this part are called none.
    pub relevant: f64,
    /// Seed of the simulated studies.
    pub seed: u64,
}

/// What a design can show.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// Whether its blocks are enough for any verdict.
    pub reach: Reach,
    /// The blocks that differences need.
    pub needed: NeededBlocks,
}

/// Whether there are enough blocks for any verdict on a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// There are.
    Verdict {
        /// The p where all blocks agree: the least that the sign-flip test has.
        p: f64,
    },
    /// There are not.
    NoVerdict {
        /// The fewest blocks that are enough.
        least_blocks: usize,
        /// What p has to be below.
        alpha: f64,
    },
}

/// Blocks that each difference of [`EFFECTS`] needs.
#[derive(Debug, Clone, PartialEq)]
pub enum NeededBlocks {
    /// By the spread of an earlier run.
    ByRun(Vec<OfMeasure>),
    /// By the spreads that a run might have: per spread of [`SPREADS`], in the order of [`EFFECTS`].
    ByGuess([[Needed; EFFECTS.len()]; SPREADS.len()]),
}

/// A row of [`NeededBlocks::ByRun`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfMeasure {
    /// Whose differences.
    pub measure: Measure,
    /// How far they spread, and what each of [`EFFECTS`] needs; `None` where the run doesn't tell.
    pub found: Option<(f64, [Needed; EFFECTS.len()])>,
}

/// Blocks for a difference to be shown in four of five studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// So many.
    Blocks(usize),
    /// More than are looked at.
    MoreThan(usize),
    /// No number is enough: the difference is within what is called none.
    Irrelevant,
}

/// How far differences spread in an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Spreads {
    /// The standard deviation of a pair's log ratio over blocks by measure, where the run tells.
    pub by_measure: Vec<(Measure, Option<f64>)>,
    /// Whether they are of the very cells that were asked for.
    pub same_cells: bool,
}

impl Power {
    /// What `design` can show, by the spreads of an earlier run where there is one.
    #[must_use]
    pub fn of(design: &Design, earlier: Option<&Spreads>) -> Self {
        Self {
            reach: Reach::of(design.blocks),
            needed: match earlier {
                Some(spreads) => NeededBlocks::ByRun(by_run(design, spreads)),
                None => NeededBlocks::ByGuess(SPREADS.map(|spread| of_effects(design, spread))),
            },
        }
    }
}

impl Reach {
    fn of(blocks: usize) -> Self {
        if blocks < LEAST_BLOCKS {
            return Self::NoVerdict {
                least_blocks: LEAST_BLOCKS,
                alpha: ALPHA,
            };
        }
        // Of all sign patterns, two are as far out: all blocks one way, and all the other.
        let p = 2.0 * 0.5_f64.powi(i32::try_from(blocks).unwrap_or(i32::MAX));
        Self::Verdict { p }
    }
}

fn by_run(design: &Design, spreads: &Spreads) -> Vec<OfMeasure> {
    let row = |(measure, spread): &(Measure, Option<f64>)| OfMeasure {
        measure: *measure,
        found: spread.map(|spread| (spread, of_effects(design, spread))),
    };
    spreads.by_measure.iter().map(row).collect()
}

fn of_effects(design: &Design, spread: f64) -> [Needed; EFFECTS.len()] {
    let relevant = design.relevant;
    EFFECTS.map(|effect| {
        let sought = Sought {
            effect,
            relevant,
            spread,
        };
        match needed_blocks(&sought, USUAL_POWER, design.seed) {
            Some(blocks) => Needed::Blocks(blocks),
            None if effect <= relevant => Needed::Irrelevant,
            None => Needed::MoreThan(MOST_BLOCKS),
        }
    })
}

impl Spreads {
    /// The spreads in a run: over the cells that are `planned` where it has two of them or more, else
    /// over all of its cells.
    #[must_use]
    pub fn of(analysis: &Analysis, planned: &[&Cell]) -> Self {
        let (rows, same_cells) = match rows(analysis, &|cell| planned.contains(&cell)) {
            rows if rows.len() > 1 => (rows, true),
            _ => (rows(analysis, &|_| true), false),
        };
        let spread = |measure| (measure, spread(analysis, &rows, measure));
        Self {
            by_measure: MEASURES.map(spread).into(),
            same_cells,
        }
    }
}

/// Places of a cell's valid trials, by block.
type Row = BTreeMap<u32, usize>;
/// Rows by label; a control is a row of its own.
type Rows = BTreeMap<(String, bool), Row>;

/// The rows of all cells that are wanted.
fn rows(analysis: &Analysis, wanted: &dyn Fn(&Cell) -> bool) -> Rows {
    let mut rows = Rows::new();
    for (at, trial) in analysis.trials.iter().enumerate() {
        if trial.verdict == Verdict::Valid && wanted(&trial.cell) {
            let row = rows.entry((trial.label.clone(), trial.control));
            row.or_default().insert(trial.block, at);
        }
    }
    rows
}

fn spread(analysis: &Analysis, rows: &Rows, measure: Measure) -> Option<f64> {
    let blocks = 1 + analysis.trials.iter().map(|trial| trial.block).max()?;
    let value = |at: &usize| measure.of(&analysis.trials[*at]);
    let of_row = |row: &Row| -> Vec<Option<f64>> {
        let blocks = 0..blocks;
        blocks
            .map(|block| row.get(&block).and_then(value))
            .collect()
    };
    paired_spread(&rows.values().map(of_row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESIGN: Design = Design {
        blocks: 8,
        relevant: 0.02,
        seed: 1,
    };

    #[test]
    fn the_fewest_blocks_with_a_verdict_reach_p_below_alpha() {
        let p = |blocks| match Reach::of(blocks) {
            Reach::Verdict { p } => Some(p),
            Reach::NoVerdict { .. } => None,
        };
        assert_eq!(p(LEAST_BLOCKS - 1), None);
        assert!(p(LEAST_BLOCKS).is_some_and(|p| p < ALPHA));
        assert_eq!(p(8), Some(2.0 / 256.0));
    }

    #[test]
    fn a_larger_spread_needs_more_blocks_and_an_irrelevant_difference_has_none() {
        let NeededBlocks::ByGuess(table) = Power::of(&DESIGN, None).needed else {
            panic!("there is no earlier run");
        };
        for [irrelevant, ..] in table {
            assert_eq!(irrelevant, Needed::Irrelevant);
        }
        let blocks = table.map(|[.., of_largest]| match of_largest {
            Needed::Blocks(blocks) => blocks,
            other => panic!("10 % can be shown: {other:?}"),
        });
        assert!(blocks.is_sorted(), "{blocks:?}");
    }

    #[test]
    fn what_the_earlier_run_does_not_tell_has_no_figures() {
        let spreads = Spreads {
            by_measure: vec![(Measure::P95, Some(3.0)), (Measure::Cpu, None)],
            same_cells: true,
        };
        let NeededBlocks::ByRun(rows) = Power::of(&DESIGN, Some(&spreads)).needed else {
            panic!("there is an earlier run");
        };
        let [wild, unknown] = rows[..] else {
            panic!("two measures: {rows:?}");
        };
        let (spread, needed) = wild.found.expect("its spread is told");
        assert_eq!(spread, 3.0);
        assert_eq!(needed[2], Needed::MoreThan(MOST_BLOCKS));
        assert_eq!(unknown.found, None);
    }
}
