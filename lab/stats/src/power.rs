//! The power of a comparison by simulating the test itself, and the number of blocks that it needs.
//!
//! A study with too few blocks shows nothing, whatever is true. The sufficient number depends on the difference to
//! detect and on the spread of a pair's log ratio over blocks, which an earlier run of the same study provides.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::paired::sign_flip_p;
use crate::student::t_of;
use crate::verdict::{ALPHA, LEAST_BLOCKS};

/// The conventional power (Cohen, *Statistical Power Analysis*, 2nd ed., section 2.4).
pub const USUAL_POWER: f64 = 0.8;
/// Maximum number of blocks considered.
pub const MOST_BLOCKS: usize = 200;

/// Simulated studies: the standard error of a power of 0.8 is 0.013.
const STUDIES: u32 = 1000;
/// Up to this many blocks all sign patterns are used, beyond it a sample of them: the loss of power is about a percent
/// (Jöckel, "Finite sample properties and asymptotic efficiency of Monte Carlo tests", 1986).
const EXACT_BLOCKS: usize = 10;
const PATTERNS: u32 = 499;

/// A difference to detect. All are parts: 0.05 means 5 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sought {
    /// The true difference.
    pub effect: f64,
    /// Differences within this are irrelevant.
    pub relevant: f64,
    /// The standard deviation of a pair's log ratio over blocks.
    pub spread: f64,
}

/// Returns the probability that `blocks` pairs show it: p ≤ 0.05 by the sign-flip test, and a mean ratio beyond the
/// smallest relevant one, for normal log ratios of pairs. 0 with fewer blocks than a verdict needs. For a single
/// comparison; several that are judged together need more blocks ([`crate::family`]).
#[must_use]
pub fn power(sought: &Sought, blocks: usize, seed: u64) -> f64 {
    if blocks < LEAST_BLOCKS {
        return 0.0;
    }
    let Sought {
        effect,
        relevant,
        spread,
    } = *sought;
    let least = relevant.ln_1p() * count(blocks);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let centre = effect.ln_1p();
    let mut differences = vec![0.0; blocks];
    let mut shown = 0_u32;
    for _ in 0..STUDIES {
        for difference in &mut differences {
            *difference = centre + spread * normal(&mut random);
        }
        if differences.iter().sum::<f64>().abs() <= least {
            continue;
        }
        let p = match blocks <= EXACT_BLOCKS {
            true => sign_flip_p(&differences, 0),
            false => sampled_p(&differences, &mut random),
        };
        shown += u32::from(p <= ALPHA);
    }
    f64::from(shown) / f64::from(STUDIES)
}

/// Returns the fewest blocks whose power reaches `wanted`; `None` if [`MOST_BLOCKS`] are not enough, as for an
/// irrelevant difference.
#[must_use]
pub fn needed_blocks(sought: &Sought, wanted: f64, seed: u64) -> Option<usize> {
    needed(sought, &|blocks| power(sought, blocks, seed) >= wanted)
}

/// Returns the fewest blocks that are `enough`, which is monotonic in the number of blocks.
pub(crate) fn needed(sought: &Sought, enough: &dyn Fn(usize) -> bool) -> Option<usize> {
    let Sought {
        effect,
        relevant,
        spread,
    } = *sought;
    if effect <= relevant {
        return None;
    }
    // Power rises with the blocks, and is near that of Student's t (Lehmann, *Nonparametrics*, 1975, section 4.3),
    // which needs about 7.85 (spread ÷ effect)² pairs for a power of 0.8; a mean beyond the smallest relevant
    // difference takes 0.84² (spread ÷ excess)².
    let beyond = effect.ln_1p() - relevant.ln_1p();
    let near = (7.85 * (spread / effect.ln_1p()).powi(2)).max(0.71 * (spread / beyond).powi(2));
    if near.is_nan() || near > 2.0 * count(MOST_BLOCKS) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 400"
    )]
    let (mut few, mut many) = (
        ((near * 0.6) as usize).max(LEAST_BLOCKS - 1),
        ((near * 1.5) as usize + 6).min(MOST_BLOCKS),
    );
    while few >= LEAST_BLOCKS && enough(few) {
        few = (few / 2).max(LEAST_BLOCKS - 1);
    }
    while !enough(many) {
        few = many;
        many = match many {
            MOST_BLOCKS => return None,
            many => (many * 2).min(MOST_BLOCKS),
        };
    }
    while many - few > 1 {
        let middle = usize::midpoint(few, many);
        if enough(middle) {
            many = middle;
        } else {
            few = middle;
        }
    }
    Some(many)
}

/// Returns the fewest blocks of a duet that show in `wanted` of the studies that two equals are not worse by `margin`,
/// if a pair's log ratio spreads by `spread`; `None` if [`MOST_BLOCKS`] aren't enough.
///
/// By Student's t, which the permutation of labels approximates (Lehmann, *Nonparametrics*, 1975, section 4.3): the
/// bound is t(0.95) standard errors above the estimate, which is at most t(`wanted`) of them above 0, with two groups'
/// degrees of freedom.
#[must_use]
pub fn not_worse_blocks(margin: f64, spread: f64, wanted: f64) -> Option<usize> {
    let enough = |blocks: &usize| {
        let freedom = count(*blocks) - 2.0;
        let needed = t_of(2.0 * ALPHA, freedom) + t_of(2.0 * (1.0 - wanted), freedom);
        margin.ln_1p() / (spread / count(*blocks).sqrt()) >= needed
    };
    (crate::duet::LEAST_BLOCKS..=MOST_BLOCKS).find(enough)
}

/// Returns the spread of a pair's log ratio over blocks, from the values of several cells (rows) in the same blocks
/// (columns): the residual of their logs without the effects of cell and block, times √2. A missing or not positive
/// value excludes its block. `None` with fewer than two cells or blocks.
///
/// Source: the residual of a randomised complete block design; Montgomery, *Design and Analysis of
/// Experiments*, section 4.1.
#[must_use]
pub fn paired_spread(cells: &[Vec<Option<f64>>]) -> Option<f64> {
    let blocks = cells.iter().map(Vec::len).min()?;
    let log = |value: &Option<f64>| value.filter(|v| *v > 0.0 && v.is_finite()).map(f64::ln);
    let whole: Vec<Vec<f64>> = (0..blocks)
        .filter_map(|block| cells.iter().map(|cell| log(&cell[block])).collect())
        .collect();
    let (columns, rows) = (whole.len(), cells.len());
    if columns < 2 || rows < 2 {
        return None;
    }
    let of_cell = |cell: usize| whole.iter().map(|b| b[cell]).sum::<f64>() / count(columns);
    let cell_means: Vec<f64> = (0..rows).map(of_cell).collect();
    let grand = cell_means.iter().sum::<f64>() / count(rows);
    let mut squares = 0.0;
    for block in &whole {
        let mean = block.iter().sum::<f64>() / count(rows);
        let left = block
            .iter()
            .zip(&cell_means)
            .map(|(value, of_cell)| value - of_cell - mean + grand);
        squares += left.map(|rest| rest * rest).sum::<f64>();
    }
    let freedom = count((columns - 1) * (rows - 1));
    Some((2.0 * squares / freedom).sqrt())
}

/// Runs the test on random sign patterns.
fn sampled_p(differences: &[f64], random: &mut Xoshiro256PlusPlus) -> f64 {
    let seen = differences.iter().sum::<f64>().abs() * (1.0 - 1e-12);
    let mut reached = 1_u32;
    for _ in 0..PATTERNS {
        let mut sum = 0.0;
        for chunk in differences.chunks(64) {
            let mut bits = random.next_u64();
            for difference in chunk {
                sum += if bits & 1 == 1 {
                    *difference
                } else {
                    -*difference
                };
                bits >>= 1;
            }
        }
        reached += u32::from(sum.abs() >= seen);
    }
    f64::from(reached) / f64::from(PATTERNS + 1)
}

/// Returns a standard normal number by Box and Muller's transform (1958), one of its two.
pub(crate) fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, turn) = (unit(), unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought(effect: f64, spread: f64) -> Sought {
        Sought {
            effect,
            relevant: 0.0,
            spread,
        }
    }

    /// The figures of `docs/judging.md`, compared with the permutation of labels.
    #[test]
    fn equals_are_shown_not_to_be_worse_as_often_as_said() {
        use crate::duet::{Block, interval};
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for (margin, spread, expected) in [(0.05, 0.03, 8), (0.05, 0.06, 12), (0.02, 0.03, 16)] {
            let blocks = not_worse_blocks(margin, spread, USUAL_POWER).unwrap();
            assert_eq!(blocks, expected, "{margin} {spread}");
            let studies = 300;
            let shown = (0..studies).filter(|_| {
                let block = |at: usize| Block {
                    difference: spread * normal(&mut random),
                    swapped: at % 2 == 1,
                };
                let study: Vec<Block> = (0..blocks).map(block).collect();
                interval(&study, 2.0 * ALPHA, 1).high < margin.ln_1p()
            });
            let part = f64::from(u32::try_from(shown.count()).unwrap()) / f64::from(studies);
            println!(
                "seed 7, pairs spread {spread}, {blocks} blocks: {part:.2} not worse by {margin}"
            );
            assert!(part > USUAL_POWER - 0.07, "{part}");
        }
        assert_eq!(not_worse_blocks(0.02, 0.06, USUAL_POWER), Some(59));
        assert_eq!(not_worse_blocks(0.02, 0.5, USUAL_POWER), None);
    }

    /// Six blocks show a difference only if all have one sign: Φ(effect ÷ spread)^6.
    #[test]
    fn six_blocks_show_what_the_formula_says() {
        let cumulative = [
            (0.05, 0.05, 0.8413),
            (0.10, 0.05, 0.9772),
            (0.02, 0.05, 0.6554),
        ];
        for (effect, spread, phi) in cumulative {
            let effect = f64::exp_m1(effect);
            let exact = f64::powi(phi, 6) + f64::powi(1.0 - phi, 6);
            let simulated = power(&sought(effect, spread), 6, 1);
            // Four standard errors.
            let error = 4.0 * (exact * (1.0 - exact) / f64::from(STUDIES)).sqrt();
            assert!((simulated - exact).abs() < error, "{simulated} {exact}");
        }
    }

    #[test]
    fn without_a_difference_one_in_twenty_at_most() {
        for blocks in [6, 9, 12, 30] {
            let wrong = power(&sought(0.0, 0.03), blocks, 7);
            assert!(wrong < 0.05 + 4.0 * 0.007, "{wrong} with {blocks} blocks");
        }
        assert_eq!(power(&sought(0.5, 0.01), 5, 1), 0.0);
    }

    /// For many blocks the test is as powerful as Student's, whose sample size is known: n = 7.85 σ² ÷ δ² + 2 or so.
    #[test]
    fn needed_blocks_are_near_those_of_the_t_test() {
        let needed =
            |effect: f64, spread| needed_blocks(&sought(effect.exp_m1(), spread), USUAL_POWER, 3);
        assert_eq!(needed(0.5, 0.01), Some(LEAST_BLOCKS));
        let found = needed(0.02, 0.03).unwrap();
        assert!((17..=23).contains(&found), "{found}, and 20 by Student's t");
        let found = needed(0.02, 0.05).unwrap();
        assert!((46..=57).contains(&found), "{found}, and 51 by Student's t");
        assert_eq!(needed(0.001, 0.05), None);
    }

    /// Half of all means are beyond a difference that is just relevant.
    #[test]
    fn what_is_hardly_relevant_is_hardly_shown() {
        let sought = |effect| Sought {
            effect,
            relevant: 0.02,
            spread: 0.001,
        };
        let at_the_edge = power(&sought(0.02), 12, 5);
        assert!((at_the_edge - 0.5).abs() < 0.07, "{at_the_edge}");
        assert_eq!(needed_blocks(&sought(0.02), USUAL_POWER, 1), None);
        assert_eq!(
            needed_blocks(&sought(0.03), USUAL_POWER, 1),
            Some(LEAST_BLOCKS)
        );
    }

    #[test]
    fn a_spread_is_what_cell_and_block_leave() {
        // Cell and block effects only: the residual is zero.
        let exact = |cell: f64| -> Vec<Option<f64>> {
            (0..5).map(|b| Some((cell + f64::from(b)).exp())).collect()
        };
        assert!(paired_spread(&[exact(0.0), exact(1.0), exact(3.0)]).unwrap() < 1e-12);
        // Two cells: the standard deviation of the log ratios, 1, −1 and 0 → 1.
        let flat = vec![Some(1.0); 3];
        let other = vec![Some(1f64.exp()), Some((-1f64).exp()), Some(1.0)];
        assert!((paired_spread(&[flat.clone(), other]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(paired_spread(std::slice::from_ref(&flat)), None);
        assert_eq!(
            paired_spread(&[flat.clone(), vec![Some(1.0), None, None]]),
            None
        );
        assert_eq!(
            paired_spread(&[flat, vec![Some(1.0), Some(-1.0), Some(0.0)]]),
            None
        );
    }
}
