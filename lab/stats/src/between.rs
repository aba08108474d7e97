//! Two sides of a comparison, each of one run or several, with the variance between runs.
//!
//! All blocks of a run share the boot of the machine, the memory layout, the neighbours, and the day. Permuting blocks
//! between two runs attributes all of that to the difference under test. Two runs of the same build, six blocks each,
//! are then called different in 4 % of cases if runs have no variance of their own, in 17 % if they spread half as much
//! as their blocks, and in 40 % if they spread as much (simulated in `tests/between.rs`). So the run is the unit: a
//! mean per run, Student's t over runs.
//!
//! The spread between runs of one build is estimated from several of them: those of either side, and earlier ones. If
//! there are too few, runs are *assumed* to spread as much as their blocks. Then at most 5 % of false differences are
//! shown if runs spread as much or less, and more if they spread more: reports must state the assumption.
//!
//! Runs with one plan drew the same waits and choices in the same block: the effect of these draws on a figure is the
//! same in all runs, and cancels ([`Between::of_one_plan`]).
//!
//! Source: the random effects model with replication, Searle, Casella & McCulloch, *Variance Components*,
//! 1992, chapter 3; that a benchmark has such levels, Kalibera & Jones, "Rigorous Benchmarking in
//! Reasonable Time", ISMM 2013.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::paired::Bounds;
use crate::power::{Sought, normal};
use crate::student::{p_of, t_of};
use crate::verdict::ALPHA;

/// With fewer degrees of freedom, runs don't determine their spread: t at 5 % is 4.3 with two, 3.2 with three. Evidence
/// of a larger spread than assumed counts all the same.
pub const LEAST_FREEDOM: usize = 3;

/// A run: the results of one cell, block by block, on the scale on which differences are judged.
pub type Blocks = Vec<f64>;

/// The source of the spread between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Several runs of one build.
    Runs,
    /// Blocks within runs: runs are assumed to spread as much.
    Assumed,
}

/// The difference of two sides, and the spread between runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Between {
    /// Mean over the runs of *b* less that over the runs of *a*.
    pub difference: f64,
    /// Standard deviation between runs of one build, without that of their blocks.
    pub spread: f64,
    /// Source of the spread.
    pub basis: Basis,
    /// Runs of builds with at least two runs.
    pub runs: usize,
    standard_error: f64,
    freedom: usize,
}

impl Between {
    /// Compares runs of `b` with runs of `a`. `earlier` are further runs, grouped by build. `None` if a side has no
    /// block, or if no run has two blocks and no build two runs: then the noise is unknown.
    #[must_use]
    pub fn of(a: &[Blocks], b: &[Blocks], earlier: &[Vec<Blocks>]) -> Option<Self> {
        let earlier_runs = earlier.iter().flatten();
        let within = pooled(a.iter().chain(b).chain(earlier_runs).map(Vec::as_slice));
        Self::with(a, b, earlier, within)
    }

    /// Compares runs with one plan: all runs of `a` and `b` have the same blocks in the same order. An effect of a
    /// block on all of them is no noise.
    #[must_use]
    pub fn of_one_plan(a: &[Blocks], b: &[Blocks], earlier: &[Vec<Blocks>]) -> Option<Self> {
        Self::with(a, b, earlier, beside_blocks(&[a, b].concat()))
    }

    fn with(
        a: &[Blocks],
        b: &[Blocks],
        earlier: &[Vec<Blocks>],
        within: Option<Pooled>,
    ) -> Option<Self> {
        let (mean_a, mean_b) = (mean(&means(a))?, mean(&means(b))?);
        let builds = || [a, b].into_iter().chain(earlier.iter().map(Vec::as_slice));
        let of_build: Vec<Vec<f64>> = builds().map(means).collect();
        let between = pooled(of_build.iter().map(Vec::as_slice));
        // The contributions of the variance between blocks, and between runs, to a mean over runs.
        let blocks = of_blocks(a) + of_blocks(b);
        let runs = 1.0 / count(means(a).len()) + 1.0 / count(means(b).len());
        let noise = within.map_or(0.0, |within| within.variance * blocks);
        let told = between.map(|between| (between.variance * runs).max(noise));
        let assumed = within.map(|within| within.variance * (runs + blocks));
        let enough = between.filter(|between| between.freedom >= LEAST_FREEDOM);
        let (squared, freedom, basis) = match (enough, within) {
            (Some(between), _) => (told?, between.freedom, Basis::Runs),
            (None, Some(within)) => {
                let squared = assumed?.max(told.unwrap_or_default());
                (squared, within.freedom, Basis::Assumed)
            }
            (None, None) => (told?, between?.freedom, Basis::Runs),
        };
        Some(Self {
            difference: mean_b - mean_a,
            spread: ((squared - noise).max(0.0) / runs).sqrt(),
            basis,
            runs: of_build.iter().map(Vec::len).filter(|runs| *runs > 1).sum(),
            standard_error: squared.sqrt(),
            freedom,
        })
    }

    /// Returns the two-sided p of this difference under the null hypothesis.
    #[must_use]
    pub fn p(&self) -> f64 {
        if self.difference == 0.0 {
            return 1.0;
        }
        p_of(self.difference / self.standard_error, count(self.freedom))
    }

    /// Returns the differences that aren't rejected at `alpha`.
    #[must_use]
    pub fn interval(&self, alpha: f64) -> Bounds {
        let half = match self.standard_error > 0.0 {
            true => t_of(alpha, count(self.freedom)) * self.standard_error,
            false => 0.0,
        };
        Bounds {
            low: self.difference - half,
            high: self.difference + half,
        }
    }
}

/// Standard deviations of blocks within their run, and of runs of one build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of blocks.
    pub of_blocks: f64,
    /// Between runs; `None` if there are too few, so that it is assumed to be that of blocks.
    pub of_runs: Option<f64>,
}

impl Spread {
    /// Estimates the spread from `runs`, grouped by build; `None` if no run has two blocks. With `one_plan`, if all
    /// have equally many blocks, an effect of a block on all of them is no noise.
    #[must_use]
    pub fn of(runs: &[Vec<Blocks>], one_plan: bool) -> Option<Self> {
        let all = || runs.iter().flatten();
        let is_even = all().all(|run| all().next().is_some_and(|one| one.len() == run.len()));
        let beside = (one_plan && is_even).then(|| beside_blocks(&runs.concat()));
        let within = beside
            .flatten()
            .or_else(|| pooled(all().map(Vec::as_slice)))?;
        let of_build: Vec<Vec<f64>> = runs.iter().map(|build| means(build)).collect();
        let between = pooled(of_build.iter().map(Vec::as_slice));
        let enough = between.filter(|between| between.freedom >= LEAST_FREEDOM);
        let noise = within.variance * of_blocks(&runs.concat()) * count(all().count());
        Some(Self {
            of_blocks: within.variance.sqrt(),
            of_runs: enough.map(|between| (between.variance - noise).max(0.0).sqrt()),
        })
    }
}

/// A planned comparison of two runs, one of each build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design<'a> {
    /// Blocks of each run.
    pub blocks: usize,
    /// Whether both will have one plan.
    pub one_plan: bool,
    /// See [`Between::of`].
    pub earlier: &'a [Vec<Blocks>],
    /// Comparisons that are tested together.
    pub family: usize,
}

/// Simulated comparisons: the standard error of a power of 0.8 is 0.013.
const STUDIES: u32 = 1000;

/// Returns the probability that a difference is shown, by the test over runs, which is the stricter one, and by the
/// first step of [`holm`]. `sought.spread` is ignored in favour of `spread`.
#[must_use]
pub fn power(sought: &Sought, spread: &Spread, design: &Design<'_>, seed: u64) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let of_runs = spread.of_runs.unwrap_or(spread.of_blocks);
    let mut run = |centre: f64| -> [Blocks; 1] {
        let centre = centre + of_runs * normal(&mut random);
        let blocks = (0..design.blocks).map(|_| centre + spread.of_blocks * normal(&mut random));
        [blocks.collect()]
    };
    let shown = (0..STUDIES).filter(|_| {
        let (a, b) = (run(0.0), run(sought.effect.ln_1p()));
        let between = match design.one_plan {
            true => Between::of_one_plan(&a, &b, design.earlier),
            false => Between::of(&a, &b, design.earlier),
        };
        between.is_some_and(|between| {
            between.p() * count(design.family) <= ALPHA
                && between.difference.abs() > sought.relevant.ln_1p()
        })
    });
    count(shown.count()) / f64::from(STUDIES)
}

/// Adjusts several p so that each bounds the probability of any false difference among all. Source: Holm, "A Simple
/// Sequentially Rejective Multiple Test Procedure", Scand. J. Statist. 6 (1979).
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|x, y| p[*x].total_cmp(&p[*y]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(p[at] * count(p.len() - rank)).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

/// A variance pooled over groups with their own means.
#[derive(Clone, Copy)]
struct Pooled {
    variance: f64,
    freedom: usize,
}

fn pooled<'a>(groups: impl Iterator<Item = &'a [f64]>) -> Option<Pooled> {
    let (mut squares, mut freedom) = (0.0, 0);
    for group in groups.filter(|group| group.len() > 1) {
        let mean = mean(group)?;
        squares += group
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        freedom += group.len() - 1;
    }
    (freedom > 0).then(|| Pooled {
        variance: squares / count(freedom),
        freedom,
    })
}

/// Returns the residual variance of the two-way layout of runs with equally many blocks, without the effects of runs
/// and of blocks.
fn beside_blocks(runs: &[Blocks]) -> Option<Pooled> {
    let blocks = runs.iter().map(Vec::len).min()?;
    let of_block = |block: usize| mean(&runs.iter().map(|run| run[block]).collect::<Vec<_>>());
    let of_blocks: Vec<f64> = (0..blocks).map(of_block).collect::<Option<_>>()?;
    let left = |run: &Blocks| -> Blocks {
        let values = run.iter().zip(&of_blocks);
        values.map(|(value, block)| value - block).collect()
    };
    let left: Vec<Blocks> = runs.iter().map(left).collect();
    let found = pooled(left.iter().map(Vec::as_slice))?;
    let freedom = (runs.len() - 1) * (blocks - 1);
    (freedom > 0).then(|| Pooled {
        variance: found.variance * count(found.freedom) / count(freedom),
        freedom,
    })
}

/// Returns the mean of each run with at least one block.
fn means(runs: &[Blocks]) -> Vec<f64> {
    runs.iter().filter_map(|blocks| mean(blocks)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    crate::paired::mean(values)
}

/// Returns the variance of a mean over runs, for a block variance of 1 and none between runs.
fn of_blocks(runs: &[Blocks]) -> f64 {
    let some = || runs.iter().filter(|blocks| !blocks.is_empty());
    let each: f64 = some().map(|blocks| 1.0 / count(blocks.len())).sum();
    each / count(some().count()).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn without_other_runs_they_are_assumed_to_spread_as_blocks_do() {
        // Both runs have the variance 1 within: 1 · (1 + 1 + 1/3 + 1/3), four degrees of freedom.
        let found = Between::of(&[vec![1.0, 2.0, 3.0]], &[vec![4.0, 5.0, 6.0]], &[]).unwrap();
        assert!(close(found.difference, 3.0) && found.basis == Basis::Assumed);
        assert!(close(found.spread, 1.0) && found.runs == 0);
        let bounds = found.interval(0.05);
        let half = t_of(0.05, 4.0) * (8.0_f64 / 3.0).sqrt();
        assert!(close(bounds.low, 3.0 - half) && close(bounds.high, 3.0 + half));
        assert!(found.p() > 0.1);
    }

    #[test]
    fn what_blocks_do_to_all_runs_of_a_plan_is_no_noise() {
        // Differences by block 2, 3, 4: their variance is 1, so a run's own is 1/2, with two degrees of freedom.
        let (a, b) = (vec![10.0, 50.0, 90.0], vec![12.0, 53.0, 94.0]);
        let found = Between::of_one_plan(&[a], &[b], &[]).unwrap();
        assert!(close(found.difference, 3.0) && found.basis == Basis::Assumed);
        assert!(close(found.spread, 0.5_f64.sqrt()));
        let half = t_of(0.05, 2.0) * (0.5 * (2.0 + 2.0 / 3.0_f64)).sqrt();
        assert!(close(found.interval(0.05).high, 3.0 + half));
        assert_eq!(Between::of_one_plan(&[vec![1.0]], &[vec![2.0]], &[]), None);
    }

    #[test]
    fn runs_tell_their_spread() {
        let run = |mean: f64| vec![mean - 0.01, mean + 0.01];
        // Means 1, 2, 3 of an earlier build, and 1, 3 of a: pooled (2 + 2) ÷ 3.
        let earlier = vec![vec![run(1.0), run(2.0), run(3.0)]];
        let found = Between::of(&[run(1.0), run(3.0)], &[run(5.0)], &earlier).unwrap();
        assert_eq!((found.basis, found.runs), (Basis::Runs, 5));
        assert!(close(found.difference, 3.0));
        let error = (4.0_f64 / 3.0 * 1.5).sqrt();
        assert!(close(
            found.interval(0.05).high,
            3.0 + t_of(0.05, 3.0) * error
        ));
    }

    #[test]
    fn runs_and_blocks_spread_apart() {
        let run = |mean: f64| vec![mean - 0.01, mean + 0.01];
        let told = Spread::of(&[[1.0, 2.0, 3.0, 4.0].map(run).to_vec()], false).unwrap();
        assert!(close(told.of_blocks, 0.0002_f64.sqrt()), "{told:?}");
        // The variance of 1, 2, 3, 4 is 5/3, of which 0.0001 are the blocks'.
        assert!(close(
            told.of_runs.unwrap(),
            (5.0_f64 / 3.0 - 0.0001).sqrt()
        ));
        let few = Spread::of(&[[1.0, 2.0, 3.0].map(run).to_vec()], true).unwrap();
        assert!(few.of_runs.is_none() && few.of_blocks < 1e-9, "{few:?}");
        assert_eq!(Spread::of(&[vec![vec![1.0]]], true), None);
    }

    #[test]
    fn too_few_runs_only_widen() {
        let run = |mean: f64| vec![mean - 0.01, mean, mean + 0.01];
        let alone = Between::of(&[run(1.0)], &[run(2.0)], &[]).unwrap();
        let beside = Between::of(&[run(0.5), run(1.5)], &[run(2.0)], &[]).unwrap();
        assert_eq!(beside.basis, Basis::Assumed);
        assert!(beside.spread > 10.0 * alone.spread, "{beside:?}");
    }

    #[test]
    fn nothing_to_tell_by() {
        assert_eq!(Between::of(&[], &[vec![1.0, 2.0]], &[]), None);
        assert_eq!(Between::of(&[vec![]], &[vec![1.0, 2.0]], &[]), None);
        assert_eq!(Between::of(&[vec![1.0]], &[vec![2.0]], &[]), None);
        // All blocks are equal: any difference is certain, and so is equality.
        let same = Between::of(&[vec![1.0; 4]], &[vec![1.0; 4]], &[]).unwrap();
        assert!(close(same.p(), 1.0) && close(same.interval(0.05).high, 0.0));
        let apart = Between::of(&[vec![1.0; 4]], &[vec![2.0; 4]], &[]).unwrap();
        assert!(close(apart.p(), 0.0));
    }

    #[test]
    fn holm_as_computed_by_hand() {
        let adjusted = holm(&[0.04, 0.01, 0.03]);
        for (found, expected) in adjusted.iter().zip([0.06, 0.03, 0.06]) {
            assert!(close(*found, expected), "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }
}
