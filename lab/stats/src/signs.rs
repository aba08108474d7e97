//! Sign patterns: all ways to swap the two sides of some blocks, or a seeded sample of them.
//!
//! If two variants don't differ, a block's log ratio is equally likely to have the other sign. A test compares the
//! observed result with those of other signs (Fisher, *The Design of Experiments*, 1935, section 21). This file knows
//! the signs only, not the statistics.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Up to this many blocks all 2^blocks patterns are used: about a million.
pub const EXACT_BLOCKS: usize = 20;

/// Patterns drawn beyond that: a p of 0.05 then has a standard error of 0.0009.
pub const SAMPLED_PATTERNS: usize = 60_000;

/// Walks over the patterns and returns their number. `visit` receives the blocks whose sign changes from the previous
/// pattern; the first pattern, with no sign changed, has an empty slice.
///
/// A pattern and its mirror image give the same two-sided statistic, so the last block's sign is fixed: the walk is
/// over 2^(blocks − 1) patterns in Gray-code order. Beyond [`EXACT_BLOCKS`] it is over the first pattern and
/// [`SAMPLED_PATTERNS`] random ones; counting the first keeps the test valid (Phipson & Smyth, "Permutation P-values
/// Should Never Be Zero", 2010).
pub fn walk(blocks: usize, seed: u64, mut visit: impl FnMut(&[usize])) -> usize {
    visit(&[]);
    if blocks > EXACT_BLOCKS {
        return sample(blocks, seed, visit);
    }
    let patterns = 1_usize << blocks.saturating_sub(1);
    for pattern in 1..patterns {
        // The bit in which neighbours of the reflected binary code differ.
        visit(&[pattern.trailing_zeros() as usize]);
    }
    patterns
}

fn sample(blocks: usize, seed: u64, mut visit: impl FnMut(&[usize])) -> usize {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut changed = Vec::with_capacity(blocks);
    for _ in 0..SAMPLED_PATTERNS {
        // Flipping a random half of the signs of any pattern gives a uniform pattern.
        changed.clear();
        let mut bits = 0;
        for block in 0..blocks {
            if block % 64 == 0 {
                bits = random.next_u64();
            }
            if bits & 1 == 1 {
                changed.push(block);
            }
            bits >>= 1;
        }
        visit(&changed);
    }
    SAMPLED_PATTERNS + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn patterns(blocks: usize) -> BTreeSet<Vec<bool>> {
        let mut signs = vec![false; blocks];
        let mut seen = BTreeSet::new();
        let count = walk(blocks, 1, |changed| {
            for block in changed {
                signs[*block] = !signs[*block];
            }
            assert!(seen.insert(signs.clone()), "a pattern came twice");
        });
        assert_eq!(count, seen.len());
        seen
    }

    #[test]
    fn every_pattern_comes_once() {
        for blocks in 1..=10 {
            let seen = patterns(blocks);
            assert_eq!(seen.len(), 1 << (blocks - 1));
            assert!(seen.iter().all(|signs| !signs[blocks - 1]));
        }
    }

    #[test]
    fn drawn_signs_are_even_and_repeatable() {
        let draw = |seed| {
            let mut signs = [false; 70];
            let mut ones = [0_usize; 70];
            let count = walk(70, seed, |changed| {
                for block in changed {
                    signs[*block] = !signs[*block];
                }
                for (one, sign) in ones.iter_mut().zip(signs) {
                    *one += usize::from(sign);
                }
            });
            (count, ones)
        };
        let (count, ones) = draw(7);
        assert_eq!(count, SAMPLED_PATTERNS + 1);
        // Five standard errors of a fair coin, √(60,000) ÷ 2 each.
        assert!(
            ones.iter().all(|n| n.abs_diff(SAMPLED_PATTERNS / 2) < 613),
            "{ones:?}"
        );
        assert_eq!(draw(7), (count, ones));
        assert_ne!(draw(8).1, ones);
    }
}
