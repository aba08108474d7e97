//! Seeded noise for simulations; seeds are printed, so that a failure can be repeated.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self::quiet(seed)
    }

    /// Does not report the seed; the caller does.
    pub(crate) fn quiet(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number in (0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub(crate) fn normals(&mut self, n: usize, mean: f64, sd: f64) -> Vec<f64> {
        (0..n).map(|_| mean + sd * self.normal()).collect()
    }

    /// Returns a count with this mean: by its waiting times, or for large means by the transformed rejection of Hörmann
    /// ("The Transformed Rejection Method for Generating Poisson Random Variables", 1993).
    pub(crate) fn poisson(&mut self, mean: f64) -> f64 {
        if mean < 20.0 {
            let (floor, mut product, mut events) = ((-mean).exp(), self.unit(), 0.0);
            while product > floor {
                product *= self.unit();
                events += 1.0;
            }
            return events;
        }
        let b = 0.931 + 2.53 * mean.sqrt();
        let a = -0.059 + 0.024_83 * b;
        let inverse_alpha = 1.123_9 + 1.132_8 / (b - 3.4);
        loop {
            let u = self.unit() - 0.5;
            let v = self.unit();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
            if us >= 0.07 && v <= 0.927_7 - 3.622_4 / (b - 2.0) {
                return k;
            }
            if k < 0.0 || (us < 0.013 && v > us) {
                continue;
            }
            let log = (v * inverse_alpha / (a / (us * us) + b)).ln();
            if log <= k * mean.ln() - mean - log_factorial(k) {
                return k;
            }
        }
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }
}

/// Returns the distance of a proportion from its expected value `p`, and three standard errors of it.
pub(crate) fn within(hits: usize, n: usize, p: f64) -> (f64, f64) {
    let part = hits as f64 / n as f64;
    (part - p, 3.0 * (p * (1.0 - p) / n as f64).sqrt())
}

/// Returns ln n!, by Stirling's series; exact enough above 5, and below it by the product.
fn log_factorial(n: f64) -> f64 {
    if n < 6.0 {
        return (1..=n as u32).map(|i| f64::from(i).ln()).sum();
    }
    (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}
