//! The permutation that tests a comparison: of the signs of blocks, or of a duet's variants between its sides.

use crate::duet::{self, Block};
use crate::paired::{self, Adjusted, Bounds};
use crate::verdict::LEAST_BLOCKS;

/// A difference by block, if the block has one.
pub type ByBlock = [Option<f64>];

/// The test of a run.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// Seed of random patterns.
    pub seed: u64,
    /// For duets: by block, whether the second variant was on the left.
    pub swapped: Option<&'a [bool]>,
}

impl Exchange<'_> {
    /// Creates the test by signs of blocks.
    #[must_use]
    pub fn of_signs(seed: u64) -> Self {
        let swapped = None;
        Self { seed, swapped }
    }

    /// Returns the fewest blocks of a study that can have a verdict.
    #[must_use]
    pub fn least_blocks(is_duet: bool) -> usize {
        match is_duet {
            true => duet::LEAST_BLOCKS,
            false => LEAST_BLOCKS,
        }
    }

    /// Returns true if these blocks can show a difference.
    #[must_use]
    pub fn can_show(&self, by_block: &ByBlock) -> bool {
        match self.swapped {
            None => by_block.iter().flatten().count() >= LEAST_BLOCKS,
            Some(_) => {
                let sides: Vec<bool> = self.blocks(by_block).iter().map(|b| b.swapped).collect();
                duet::can_show(&sides)
            }
        }
    }

    /// Returns p of comparisons that are tested together.
    #[must_use]
    pub fn p(&self, rows: &[Vec<Option<f64>>]) -> Vec<Adjusted> {
        match self.swapped {
            None => paired::max_t(rows, self.seed),
            Some(swapped) => duet::max_t(rows, swapped, self.seed),
        }
    }

    /// Returns the estimated difference.
    #[must_use]
    pub fn centre(&self, by_block: &ByBlock) -> f64 {
        let effects = self
            .swapped
            .and_then(|_| duet::effects(&self.blocks(by_block)));
        match effects {
            Some(effects) => effects.variants,
            None => paired::mean(&values(by_block)).unwrap_or_default(),
        }
    }

    /// Returns the differences that the test doesn't reject.
    #[must_use]
    pub fn interval(&self, by_block: &ByBlock, alpha: f64) -> Bounds {
        match self.swapped {
            None => paired::interval(&values(by_block), alpha, self.seed),
            Some(_) => duet::interval(&self.blocks(by_block), alpha, self.seed),
        }
    }

    fn blocks(&self, by_block: &ByBlock) -> Vec<Block> {
        let swapped = self.swapped.unwrap_or_default();
        let block = |(difference, swapped): (&Option<f64>, &bool)| {
            let (difference, swapped) = ((*difference)?, *swapped);
            Some(Block {
                difference,
                swapped,
            })
        };
        by_block.iter().zip(swapped).filter_map(block).collect()
    }
}

fn values(by_block: &ByBlock) -> Vec<f64> {
    by_block.iter().flatten().copied().collect()
}
