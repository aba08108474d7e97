//! What a study of this many blocks can show, before it runs: the smallest p of a pair, and the blocks that a
//! difference needs by the spread of pairs, beside all that is judged together with it. This module knows no words and
//! no times.

use std::collections::BTreeMap;

use lab_plan::{Cell, Decides, Factor, Question, VARIANT};
use lab_stats::exchange::Exchange;
use lab_stats::family::{Member, family_blocks, family_power};
use lab_stats::moderated::detectable;
use lab_stats::power::{
    MOST_BLOCKS, Sought, USUAL_POWER, needed_blocks, not_worse_blocks, paired_spread,
};
use lab_stats::unpaired::least_p;
use lab_stats::verdict::ALPHA;
use lab_trial::as_f64;

use crate::compare::{MOST_PAIRS, baseline};
use crate::model::{Analysis, Measure, Verdict};

/// The smallest relevant difference of a function, as a fraction of the smallest relevant difference of the whole.
pub(crate) const OF_SMALLEST: f64 = 0.25;

/// The difference that four of five studies find in a function with this share of the CPU time, as a part of all CPU
/// time. `samples` are those of a trial; `smallest` is the smallest relevant difference of the whole. `None` with too
/// few blocks.
#[must_use]
pub fn detectable_in_function(
    share: f64,
    samples: f64,
    blocks: usize,
    smallest: f64,
) -> Option<f64> {
    detectable(share, samples, blocks).map(|part| part.max(OF_SMALLEST * smallest))
}

/// The assumed differences, as parts.
pub const EFFECTS: [f64; 3] = [0.02, 0.05, 0.10];
/// The assumed spreads if there is no earlier run.
pub const SPREADS: [f64; 3] = [0.02, 0.03, 0.05];
/// The measures whose spread an earlier run shows.
const MEASURES: [Measure; 4] = [
    Measure::Mean,
    Measure::P95,
    Measure::Throughput,
    Measure::Cpu,
];

/// The design of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The number of its blocks.
    pub blocks: usize,
    /// Differences within this part count as none.
    pub relevant: f64,
    /// Seed of the simulated studies.
    pub seed: u64,
    /// The comparisons that decide together; see [`family`].
    pub family: Vec<Member>,
    /// The deciding measure, if the study names one.
    pub decides: Option<Decides>,
    /// Whether the variants run two at a time.
    pub duet: bool,
}

impl Design {
    /// Blocks in which an unchanged build is shown not to be worse, by the spread of pairs.
    #[must_use]
    pub fn unchanged(&self, spread: f64) -> Needed {
        let found = not_worse_blocks(self.relevant, spread, USUAL_POWER);
        found.map_or(Needed::MoreThan(MOST_BLOCKS), Needed::Blocks)
    }
}

/// The comparisons that decide the answer of a study: every cell with its baseline, along the variants if there are
/// any, in each deciding measure. `users` returns the number of users of a cell: throughput follows it.
#[must_use]
pub fn family(question: &Question, users: &dyn Fn(&Cell) -> Option<u32>) -> Vec<Member> {
    let cells = &question.cells;
    let has_variants = question.matrix.iter().any(|factor| factor.name == VARIANT);
    let decides = |factor: &&Factor| !has_variants || factor.name == VARIANT;
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for factor in question.matrix.iter().filter(decides) {
        for (b, cell) in cells.iter().enumerate() {
            let a = baseline(factor, cell);
            let a = a.and_then(|a| cells.iter().position(|other| *other == a));
            pairs.extend(a.map(|a| (a, b)));
        }
    }
    pairs.truncate(MOST_PAIRS);
    let of_pair = |(a, b): (usize, usize)| {
        let same_users = users(&cells[a]) == users(&cells[b]);
        let measures = match question.decides {
            // The mean as well; see `Deciding`.
            None if same_users => Measure::DECIDING.len() + usize::from(question.duet),
            _ => 1,
        };
        (0..measures).map(move |measure| Member { a, b, measure })
    };
    pairs.into_iter().flat_map(of_pair).collect()
}

/// The power of a design.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// Whether its blocks are enough for any verdict.
    pub reach: Reach,
    /// The blocks that differences need.
    pub needed: NeededBlocks,
    /// The power of its blocks, if they are enough for any verdict and a spread is known.
    pub shown: Option<Shown>,
}

/// The part of the studies that show a difference, beside all that is judged together with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    /// The source of the spread; `None` for a guess.
    pub measure: Option<Measure>,
    /// The spread of pairs.
    pub spread: f64,
    /// For each of [`EFFECTS`].
    pub parts: [f64; EFFECTS.len()],
}

/// Whether there are enough blocks for any verdict on a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// Enough.
    Verdict {
        /// The p if all blocks agree: the smallest that the sign-flip test can give.
        p: f64,
    },
    /// Too few.
    NoVerdict {
        /// The minimum number of blocks.
        least_blocks: usize,
        /// The limit that p must be below.
        alpha: f64,
    },
}

/// Blocks that each difference of [`EFFECTS`] needs.
#[derive(Debug, Clone, PartialEq)]
pub enum NeededBlocks {
    /// By the spread of an earlier run.
    ByRun(Vec<OfMeasure>),
    /// By assumed spreads: per spread of [`SPREADS`], in the order of [`EFFECTS`].
    ByGuess([[Needed; EFFECTS.len()]; SPREADS.len()]),
}

/// A row of [`NeededBlocks::ByRun`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfMeasure {
    /// The source of the differences.
    pub measure: Measure,
    /// Whether it decides, together with all others that do; else the figures are of one comparison alone.
    pub decides: bool,
    /// Their spread, and the blocks that each of [`EFFECTS`] needs; `None` if the run lacks it.
    pub found: Option<(f64, [Needed; EFFECTS.len()])>,
}

/// The blocks for a difference to be shown in four of five studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// This many.
    Blocks(usize),
    /// More than the maximum that is tried.
    MoreThan(usize),
    /// No number is enough: the difference is within the margin that counts as none.
    Irrelevant,
}

/// The spread of differences in an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Spreads {
    /// The standard deviation of a pair's log ratio over blocks by measure, if the run has it.
    pub by_measure: Vec<(Measure, Option<f64>)>,
    /// For a duet: the same for pairs that ran at once, window by window, in the deciding measures.
    pub of_duet: Option<f64>,
    /// Whether they are of exactly the requested cells.
    pub same_cells: bool,
}

impl Power {
    /// The power of `design`, by the spreads of an earlier run if there is one.
    #[must_use]
    pub fn of(design: &Design, earlier: Option<&Spreads>) -> Self {
        let needed = match earlier {
            Some(spreads) => NeededBlocks::ByRun(by_run(design, spreads)),
            None => {
                let of_spread = |spread| of_effects(design, &design.family, spread);
                NeededBlocks::ByGuess(SPREADS.map(of_spread))
            }
        };
        Self {
            reach: Reach::of(design.blocks, design.duet),
            shown: shown(design, &needed),
            needed,
        }
    }
}

impl Reach {
    fn of(blocks: usize, duet: bool) -> Self {
        let least_blocks = Exchange::least_blocks(duet);
        if blocks < least_blocks {
            return Self::NoVerdict {
                least_blocks,
                alpha: ALPHA,
            };
        }
        if duet {
            let on_left = blocks / 2;
            let p = least_p(on_left, blocks - on_left);
            return Self::Verdict { p };
        }
        // Of all sign patterns, two are as extreme: all blocks one way, and all the other.
        let p = 2.0 * 0.5_f64.powi(i32::try_from(blocks).unwrap_or(i32::MAX));
        Self::Verdict { p }
    }
}

fn by_run(design: &Design, spreads: &Spreads) -> Vec<OfMeasure> {
    let named = design.decides.map(Measure::from);
    let decides = |measure: Measure| match named {
        Some(named) => named == measure,
        None => Measure::DECIDING.contains(&measure),
    };
    let row = |(measure, spread): &(Measure, Option<f64>)| {
        let decides = decides(*measure);
        let family = if decides { &design.family[..] } else { &[] };
        OfMeasure {
            measure: *measure,
            decides,
            found: spread.map(|spread| (spread, of_effects(design, family, spread))),
        }
    };
    let mut rows: Vec<OfMeasure> = spreads.by_measure.iter().map(row).collect();
    rows.sort_by_key(|row| !row.decides);
    rows
}

/// The power of the design's blocks for the first deciding measure, or by a middling guess.
fn shown(design: &Design, needed: &NeededBlocks) -> Option<Shown> {
    let (measure, spread) = match needed {
        NeededBlocks::ByGuess(_) => (None, SPREADS[SPREADS.len() / 2]),
        NeededBlocks::ByRun(rows) => {
            let mut known = rows.iter().filter(|row| row.decides);
            known.find_map(|row| Some((Some(row.measure), row.found?.0)))?
        }
    };
    let part = |effect| {
        let sought = Sought {
            effect,
            relevant: design.relevant,
            spread,
        };
        family_power(&sought, &design.family, design.blocks, design.seed)
    };
    let least = Exchange::least_blocks(design.duet);
    (design.blocks >= least && !design.family.is_empty()).then(|| Shown {
        measure,
        spread,
        parts: EFFECTS.map(part),
    })
}

fn of_effects(design: &Design, family: &[Member], spread: f64) -> [Needed; EFFECTS.len()] {
    let relevant = design.relevant;
    EFFECTS.map(|effect| {
        let sought = Sought {
            effect,
            relevant,
            spread,
        };
        let blocks = match family {
            [] | [_] => needed_blocks(&sought, USUAL_POWER, design.seed),
            family => family_blocks(&sought, family, USUAL_POWER, design.seed),
        };
        match blocks {
            Some(blocks) => Needed::Blocks(blocks.max(Exchange::least_blocks(design.duet))),
            None if effect <= relevant => Needed::Irrelevant,
            None => Needed::MoreThan(MOST_BLOCKS),
        }
    })
}

impl Spreads {
    /// The spreads in a run, for the usual measures and the one that `decides`: over the `planned` cells if the run has
    /// two of them or more, else over all of its cells.
    #[must_use]
    pub fn of(analysis: &Analysis, planned: &[&Cell], decides: Option<Decides>) -> Self {
        let (rows, same_cells) = match rows(analysis, &|cell| planned.contains(&cell)) {
            rows if rows.len() > 1 => (rows, true),
            _ => (rows(analysis, &|_| true), false),
        };
        let spread = |measure| (measure, spread(analysis, &rows, measure));
        Self {
            by_measure: decides
                .map(Measure::from)
                .filter(|named| !MEASURES.contains(named))
                .into_iter()
                .chain(MEASURES)
                .map(spread)
                .collect(),
            of_duet: of_duet(analysis),
            same_cells,
        }
    }
}

/// The spread of a duet's pairs within each of the two assignments of sides.
fn of_duet(analysis: &Analysis) -> Option<f64> {
    let blocks = &analysis.duet.as_ref()?.blocks;
    let (mut squares, mut freedom) = (0.0, 0.0);
    for side in [false, true] {
        let of_side = blocks.iter().filter(|block| block.a_is_left == side);
        let logs: Vec<f64> = of_side
            .filter_map(|block| Some(block.ratio?.ln()))
            .collect();
        let mean = lab_stats::paired::mean(&logs)?;
        squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        freedom += as_f64(logs.len() as u64) - 1.0;
    }
    lab_stats::ratio(squares, freedom).map(f64::sqrt)
}

/// Places of a cell's valid trials, by block.
type Row = BTreeMap<u32, usize>;
/// Rows by label; a control is a row of its own.
type Rows = BTreeMap<(String, bool), Row>;

/// The rows of all requested cells.
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
        family: Vec::new(),
        decides: None,
        duet: false,
    };

    #[test]
    fn the_fewest_blocks_with_a_verdict_reach_p_below_alpha() {
        let p = |blocks, duet| match Reach::of(blocks, duet) {
            Reach::Verdict { p } => Some(p),
            Reach::NoVerdict { .. } => None,
        };
        for duet in [false, true] {
            let least = Exchange::least_blocks(duet);
            assert_eq!(p(least - 1, duet), None);
            assert!(p(least, duet).is_some_and(|p| p < ALPHA));
        }
        assert_eq!(p(8, false), Some(2.0 / 256.0));
        assert_eq!(p(8, true), Some(2.0 / 70.0));
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
            of_duet: None,
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

    /// Cells of a factor `n` with this many levels, in this many blocks.
    fn question(levels: i64, decides: Option<Decides>) -> Question {
        let level = lab_plan::Level::Int;
        Question {
            matrix: vec![Factor {
                name: "n".to_owned(),
                levels: (1..=levels).map(level).collect(),
            }],
            cells: (1..=levels)
                .map(|n| Cell::from([("n".to_owned(), level(n))]))
                .collect(),
            decides,
            ..Question::default()
        }
    }

    #[test]
    fn what_decides_together_are_all_pairs_in_all_measures_that_decide() {
        let members = |levels, decides, users: &dyn Fn(&Cell) -> Option<u32>| {
            family(&question(levels, decides), users).len()
        };
        let same = |_: &Cell| Some(5);
        assert_eq!(members(2, None, &same), 2);
        assert_eq!(members(4, None, &same), 6);
        assert_eq!(members(4, Some(Decides::ResponseP95), &same), 3);
        // Throughput follows the number of users.
        let other = |cell: &Cell| Some(u32::from(cell["n"] == lab_plan::Level::Int(1)));
        assert_eq!(members(2, None, &other), 1);
        assert_eq!(members(1, None, &same), 0);
    }

    /// Compares the plan's figure with the analysis of simulated studies.
    #[test]
    fn the_analysis_shows_as_often_as_the_plan_says() {
        use lab_stats::family::simulate;
        const STUDIES: u32 = 300;
        for (levels, decides, blocks) in [
            (2, None, 6),
            (4, None, 6),
            (4, Some(Decides::ResponseP95), 8),
            (3, None, 12),
        ] {
            let design = Design {
                blocks,
                family: family(&question(levels, decides), &|_| Some(5)),
                decides,
                ..DESIGN
            };
            let sought = Sought {
                effect: 0.05,
                relevant: design.relevant,
                spread: 0.03,
            };
            let said = family_power(&sought, &design.family, blocks, design.seed);
            let found = simulate(&sought, &design.family, blocks, 17, STUDIES, |rows| {
                crate::compare::first_is_shown(rows, design.relevant)
            });
            let found = f64::from(found) / f64::from(STUDIES);
            println!(
                "{} together, {blocks} blocks, seed 17: {found:.2} shown, {said:.2} said",
                design.family.len()
            );
            // Three standard errors of both simulations.
            assert!((said - found).abs() < 0.11, "{said} {found}");
        }
    }
}
