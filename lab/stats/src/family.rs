//! The power of several comparisons that are judged together.
//!
//! The p of a family are joint ([`crate::paired::max_t`]), so each comparison reduces the power of the others. With six
//! blocks, a difference that a single comparison shows in 96 of 100 studies is shown in 61 together with eight others,
//! if their noise is independent. Pairs of cells that share a cell share its noise; measures are assumed independent,
//! which is the worst case.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::paired::max_t;
use crate::power::{MOST_BLOCKS, Sought, needed, normal, power};
use crate::verdict::{ALPHA, LEAST_BLOCKS};

/// Simulated studies: the standard error of a power of 0.8 is 0.018.
const STUDIES: usize = 500;
/// Up to this many blocks each simulated study runs the real test. Beyond it, the critical value of the test's
/// statistic is that of studies without a difference: permutations converge to the same, as their distribution becomes
/// normal (Hoeffding, "The Large-Sample Power of Tests Based on Permutations of Observations", Ann. Math. Stat. 23,
/// 1952).
const EXACT_BLOCKS: usize = 9;
/// Studies without a difference for the critical value: the 95th of a hundred has a standard error of 1 % of its rank.
const WITHOUT: usize = 2_000;

/// A comparison of a family: its cells, and its measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The baseline.
    pub a: usize,
    /// The compared cell.
    pub b: usize,
    /// Index of the measure, from 0.
    pub measure: usize,
}

/// Returns the probability that a difference in the first member is shown, if no other differs: a joint p of 0.05 or
/// less, and a mean ratio beyond the smallest relevant one. A family of one uses [`power`].
#[must_use]
pub fn family_power(sought: &Sought, family: &[Member], blocks: usize, seed: u64) -> f64 {
    if family.len() <= 1 {
        return power(sought, blocks, seed);
    }
    if blocks < LEAST_BLOCKS {
        return 0.0;
    }
    let mut studies = Studies::new(family, sought, blocks, seed);
    let critical = (blocks > EXACT_BLOCKS).then(|| studies.critical());
    let least = sought.relevant.ln_1p() * count(blocks);
    let shown = (0..STUDIES)
        .filter(|_| {
            let rows = studies.draw(sought.effect.ln_1p());
            let first = &rows[0];
            if first.iter().sum::<f64>().abs() <= least {
                return false;
            }
            match critical {
                Some(critical) => statistic(first) >= critical,
                None => joint_p(&rows, seed) <= ALPHA,
            }
        })
        .count();
    count(shown) / count(STUDIES)
}

/// Returns the fewest blocks whose [`family_power`] reaches `wanted`; `None` if [`MOST_BLOCKS`] are not enough.
#[must_use]
pub fn family_blocks(sought: &Sought, family: &[Member], wanted: f64, seed: u64) -> Option<usize> {
    needed(sought, &|blocks| {
        family_power(sought, family, blocks, seed) >= wanted
    })
    .filter(|blocks| *blocks <= MOST_BLOCKS)
}

/// Simulates studies of a family, and counts those for which `is_shown` returns true. Its argument has the log ratios
/// by member and block, where the first member has the sought effect. For callers with their own judgement.
pub fn simulate(
    sought: &Sought,
    family: &[Member],
    blocks: usize,
    seed: u64,
    studies: u32,
    mut is_shown: impl FnMut(&[Vec<f64>]) -> bool,
) -> u32 {
    let mut drawn = Studies::new(family, sought, blocks, seed);
    let effect = sought.effect.ln_1p();
    (0..studies)
        .map(|_| u32::from(is_shown(&drawn.draw(effect))))
        .sum()
}

/// Simulated studies of a family.
struct Studies<'a> {
    family: &'a [Member],
    /// Noise by cell and measure, of one block.
    noise: Vec<f64>,
    cells: usize,
    spread: f64,
    blocks: usize,
    random: Xoshiro256PlusPlus,
}

impl<'a> Studies<'a> {
    fn new(family: &'a [Member], sought: &Sought, blocks: usize, seed: u64) -> Self {
        let most = |of: fn(&Member) -> usize| family.iter().map(of).max().unwrap_or_default() + 1;
        let cells = most(|member| member.a.max(member.b));
        Self {
            family,
            noise: vec![0.0; cells * most(|member| member.measure)],
            cells,
            spread: sought.spread,
            blocks,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Returns log ratios by member and block; the first member's are larger by `effect`. A pair's spread is that of
    /// two cells.
    fn draw(&mut self, effect: f64) -> Vec<Vec<f64>> {
        let of_cell = self.spread / std::f64::consts::SQRT_2;
        let mut rows = vec![Vec::with_capacity(self.blocks); self.family.len()];
        for _ in 0..self.blocks {
            for value in &mut self.noise {
                *value = of_cell * normal(&mut self.random);
            }
            for (at, (row, member)) in rows.iter_mut().zip(self.family).enumerate() {
                let of = |cell: usize| self.noise[member.measure * self.cells + cell];
                let shift = if at == 0 { effect } else { 0.0 };
                row.push(of(member.b) - of(member.a) + shift);
            }
        }
        rows
    }

    /// Returns the 95th percentile of the largest statistic of all members, over studies without a difference.
    fn critical(&mut self) -> f64 {
        let largest =
            |rows: Vec<Vec<f64>>| rows.iter().map(|row| statistic(row)).fold(0.0, f64::max);
        let mut all: Vec<f64> = (0..WITHOUT).map(|_| largest(self.draw(0.0))).collect();
        all.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank among 2000"
        )]
        let rank = ((1.0 - ALPHA) * count(WITHOUT)) as usize;
        all[rank.min(WITHOUT - 1)]
    }
}

/// Returns the test's statistic: |Σd| ÷ √Σd².
fn statistic(row: &[f64]) -> f64 {
    let scale = row.iter().map(|d| d * d).sum::<f64>().sqrt();
    if scale > 0.0 {
        row.iter().sum::<f64>().abs() / scale
    } else {
        0.0
    }
}

fn joint_p(rows: &[Vec<f64>], seed: u64) -> f64 {
    let some = |row: &Vec<f64>| row.iter().copied().map(Some).collect();
    let rows: Vec<Vec<Option<f64>>> = rows.iter().map(some).collect();
    max_t(&rows, seed).first().map_or(1.0, |first| first.joint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{USUAL_POWER, needed_blocks};

    const SOUGHT: Sought = Sought {
        effect: 0.05,
        relevant: 0.02,
        spread: 0.02,
    };

    /// Returns this many comparisons of measures, all of the same two cells.
    fn measures(n: usize) -> Vec<Member> {
        let member = |measure| Member {
            a: 0,
            b: 1,
            measure,
        };
        (0..n).map(member).collect()
    }

    #[test]
    fn company_costs_power() {
        let alone = family_power(&SOUGHT, &measures(1), 6, 7);
        let beside = family_power(&SOUGHT, &measures(9), 6, 7);
        // Figures of an independent simulation: 0.96 alone, 0.61 with eight others.
        assert!((alone - 0.95).abs() < 0.04, "{alone}");
        assert!((beside - 0.61).abs() < 0.08, "{beside}");
        let blocks = |n| family_blocks(&SOUGHT, &measures(n), USUAL_POWER, 7).unwrap();
        assert_eq!(Some(blocks(1)), needed_blocks(&SOUGHT, USUAL_POWER, 7));
        assert!(blocks(1) < blocks(9), "{} {}", blocks(1), blocks(9));
    }

    /// The two ways to judge a study agree where their ranges meet.
    #[test]
    fn what_the_statistic_must_reach_is_what_permutations_ask_for() {
        let wide = Sought {
            spread: 0.04,
            ..SOUGHT
        };
        for n in [2, 6] {
            let (family, mut exact, mut near) = (measures(n), 0, 0);
            let mut studies = Studies::new(&family, &wide, 12, 11);
            let critical = studies.critical();
            for _ in 0..400 {
                let rows = studies.draw(0.05);
                exact += usize::from(joint_p(&rows, 1) <= ALPHA);
                near += usize::from(statistic(&rows[0]) >= critical);
            }
            println!(
                "{n} together, seed 11: {exact} of 400 by permutations, {near} by the statistic"
            );
            assert!(exact.abs_diff(near) < 24, "{exact} {near}");
        }
    }

    #[test]
    fn without_a_difference_one_in_twenty_at_most() {
        let none = Sought {
            effect: 0.0,
            relevant: 0.0,
            spread: 0.03,
        };
        for blocks in [6, 20] {
            let wrong = family_power(&none, &measures(4), blocks, 13);
            // One of four.
            assert!(wrong < 0.05, "{wrong} with {blocks} blocks");
        }
    }
}
