//! Seeded noise for simulations; seeds are printed, so that a failure can be repeated.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// In (0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub(crate) fn normals(&mut self, n: usize, mean: f64, sd: f64) -> Vec<f64> {
        (0..n).map(|_| mean + sd * self.normal()).collect()
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }
}

/// How far a proportion lies from what it should be, `p`, and three standard errors of it.
pub(crate) fn within(hits: usize, n: usize, p: f64) -> (f64, f64) {
    let part = hits as f64 / n as f64;
    (part - p, 3.0 * (p * (1.0 - p) / n as f64).sqrt())
}
