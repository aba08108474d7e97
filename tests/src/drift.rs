//! A disturbance that drifts: for a while one part of the time of some cores is taken, then another part of others'. It
//! only draws the duties of cores from a seed; the caller takes the time.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// At most this share of a core is taken, so that its programs make progress.
pub const MOST: f64 = 0.9;
/// Exponential lengths are truncated here, in means, so that none lasts for ever.
const LONGEST: f64 = 8.0;

/// A span in which nothing changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spell {
    /// The length.
    pub length: Duration,
    /// The share of each core's time that is taken.
    pub duties: Vec<f64>,
}

/// Spells without end: each of exponential length, with one duty between none and twice the usual one. Each core is
/// taken with probability one half, and at least one is.
#[derive(Debug)]
pub struct Drift {
    random: Xoshiro256PlusPlus,
    cores: usize,
    duty: f64,
    mean: Duration,
}

impl Drift {
    /// A drift over `cores` cores, at least one.
    #[must_use]
    pub fn new(seed: u64, cores: usize, duty: f64, mean: Duration) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            cores: cores.max(1),
            duty,
            mean,
        }
    }
}

impl Iterator for Drift {
    type Item = Spell;

    fn next(&mut self) -> Option<Spell> {
        let length = exponential(&mut self.random, self.mean);
        let duty = (2.0 * self.duty * unit(&mut self.random)).min(MOST);
        let mut duties = vec![0.0; self.cores];
        while duties.iter().all(|duty| *duty == 0.0) {
            for of in &mut duties {
                let is_taken = self.random.next_u64() >> 63 == 1;
                // Even a duty of 0 must not draw without end.
                *of = if is_taken {
                    duty.max(f64::MIN_POSITIVE)
                } else {
                    0.0
                };
            }
        }
        Some(Spell { length, duties })
    }
}

/// A number in 0…1.
pub fn unit(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// An exponential length with this mean, so that there are long ones, too.
pub fn exponential(random: &mut impl Rng, mean: Duration) -> Duration {
    mean.mul_f64((-(1.0 - unit(random)).ln()).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_secs(8);

    #[test]
    fn a_seed_says_all() {
        let spells =
            |seed: u64| -> Vec<Spell> { Drift::new(seed, 4, 0.3, MEAN).take(50).collect() };
        assert_eq!(spells(3), spells(3));
        assert_ne!(spells(3), spells(4));
    }

    #[test]
    fn duty_and_cores_are_those_that_were_asked_for() {
        for seed in 1..=5 {
            println!("seed {seed}");
            let spells: Vec<Spell> = Drift::new(seed, 2, 0.3, MEAN).take(20_000).collect();
            let n = spells.len() as f64;
            let seconds: f64 = spells.iter().map(|one| one.length.as_secs_f64()).sum();
            // The standard error is 0.7 %.
            assert!((seconds / n / 8.0 - 1.0).abs() < 0.03, "{seconds}");
            for core in 0..2 {
                let taken: Vec<f64> = spells.iter().map(|one| one.duties[core]).collect();
                let on = taken.iter().filter(|duty| **duty > 0.0).count() as f64;
                // One of two cores, or both: two of three choices include it.
                assert!((on / n - 2.0 / 3.0).abs() < 0.02, "{on}");
                let mean = taken.iter().sum::<f64>() / on;
                assert!((mean - 0.3).abs() < 0.01, "{mean}");
                assert!(taken.iter().all(|duty| (0.0..=0.6).contains(duty)));
            }
            assert!(
                spells
                    .iter()
                    .all(|one| one.duties.iter().any(|duty| *duty > 0.0))
            );
        }
        let most = Drift::new(1, 1, 0.9, MEAN).take(1_000);
        assert!(most.flat_map(|one| one.duties).all(|duty| duty <= MOST));
        // With a duty of 0, nothing is taken, and drawing ends.
        let none = Drift::new(1, 3, 0.0, MEAN).take(10);
        assert!(none.flat_map(|one| one.duties).all(|duty| duty < 1e-9));
    }
}
