//! Estimates what a comparison of two runs of a study can show, one of each build, before they run.

use lab_analysis::Analysis;
use lab_analysis::model::Measure;
use lab_analysis::power::{Design, EFFECTS, SPREADS};
use lab_stats::between::{self, Blocks, Spread};
use lab_stats::power::Sought;
use lab_stats::unpaired::{least_p, least_units};
use lab_stats::verdict::{ALPHA, LEAST_BLOCKS};

use crate::drafts::drafts;
use crate::inputs::Runs;

/// The power of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoRuns {
    /// The deciding measure and cell with the largest spread; `None` if no run provides one.
    pub told: Option<(Measure, String)>,
    /// The spread of blocks and runs.
    pub spread: Spread,
    /// Number of earlier runs used.
    pub runs: usize,
    /// The part of the comparisons that shows each of [`EFFECTS`].
    pub parts: [f64; EFFECTS.len()],
}

impl TwoRuns {
    /// Estimates it from the `earlier` runs that match the study, the latest last.
    ///
    /// # Errors
    /// The fewest blocks for a verdict, if the design has fewer.
    pub fn of(design: &Design, cells: usize, earlier: &[Analysis]) -> Result<Self, usize> {
        if least_p(design.blocks, design.blocks) > ALPHA {
            return Err(least_units(ALPHA));
        }
        let (told, spread, blocks) = match widest(design, earlier) {
            Some((measure, label, spread, blocks)) => (Some((measure, label)), spread, blocks),
            None => (None, GUESS, Vec::new()),
        };
        let measures = match design.decides {
            Some(_) => 1,
            None => Measure::DECIDING.len(),
        };
        let planned = between::Design {
            blocks: design.blocks,
            one_plan: design.blocks >= LEAST_BLOCKS,
            earlier: &blocks,
            family: measures * cells.max(1),
        };
        let part = |effect| {
            let sought = Sought {
                effect,
                relevant: design.relevant,
                spread: spread.of_blocks,
            };
            between::power(&sought, &spread, &planned, design.seed)
        };
        Ok(Self {
            told,
            spread,
            runs: blocks.iter().map(Vec::len).sum(),
            parts: EFFECTS.map(part),
        })
    }
}

/// A medium spread.
const GUESS: Spread = Spread {
    of_blocks: SPREADS[SPREADS.len() / 2],
    of_runs: None,
};

type Widest = (Measure, String, Spread, Vec<Vec<Blocks>>);

/// The largest spread among the deciding measures, with the blocks of the earlier runs.
fn widest(design: &Design, earlier: &[Analysis]) -> Option<Widest> {
    let latest = std::slice::from_ref(earlier.last()?);
    let runs = Runs {
        a: latest,
        b: latest,
        earlier,
        decides: design.decides,
    };
    let seed = latest[0].study.seed;
    let one_plan =
        design.blocks >= LEAST_BLOCKS && runs.earlier().all(|run| run.study.seed == seed);
    let cells: Vec<_> = latest[0].cells.iter().map(|cell| (cell, cell)).collect();
    let drafts = drafts(&runs, &cells, &runs.deciding().measures, false);
    let told = drafts.into_iter().filter_map(|draft| {
        let spread = Spread::of(&draft.earlier, one_plan)?;
        Some((draft.measure, draft.label, spread, draft.earlier))
    });
    let size = |of: &Widest| of.2.of_runs.unwrap_or_default().hypot(of.2.of_blocks);
    told.max_by(|x, y| size(x).total_cmp(&size(y)))
}
