//! When samples are taken: random periods, and the seconds without samples. It reads no clock.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The minimum and maximum of a period, as a fraction of the nominal one.
const LEAST: f64 = 0.6;
const MOST: f64 = 1.4;
/// A new period is drawn this often, or every ten periods if that is longer. Setting a period restarts the timer, so a
/// long period would never end if periods were set more often.
const REDRAW: Duration = Duration::from_millis(100);
const PERIODS: f64 = 10.0;
/// One of this number of time units is not sampled.
const BLOCK: u64 = 6;
/// Blocks of a hold, at most. Longer holds have longer units than a second.
const MOST_BLOCKS: u64 = 600;

/// Draws periods.
#[derive(Debug)]
pub(crate) struct Periods {
    random: Xoshiro256PlusPlus,
    nominal_ns: f64,
    redraw: Duration,
}

impl Periods {
    /// Periods that give `rate` samples a second on average.
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        let rate = rate.max(0.1);
        let redraw = REDRAW.max(Duration::from_secs_f64(PERIODS / rate));
        let mut period = 1.0 / rate;
        // The last period before a new one is truncated; a shorter nominal one compensates for it.
        for _ in 0..20 {
            period *= mean_rate(period, redraw.as_secs_f64()) / rate;
        }
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            nominal_ns: period * 1e9,
            redraw,
        }
    }

    /// Returns how long a period is kept.
    pub(crate) fn redraw(&self) -> Duration {
        self.redraw
    }

    /// The next period, in nanoseconds.
    pub(crate) fn draw(&mut self) -> u64 {
        (self.nominal_ns * (LEAST + (MOST - LEAST) * fraction(&mut self.random))) as u64
    }
}

/// Samples a second if a new period between 0.6 and 1.4 times this one is drawn after each `redraw`.
fn mean_rate(period: f64, redraw: f64) -> f64 {
    const STEPS: u32 = 1000;
    let samples = (0..STEPS).map(|step| {
        let place = (f64::from(step) + 0.5) / f64::from(STEPS);
        (redraw / (period * (LEAST + (MOST - LEAST) * place))).floor()
    });
    samples.sum::<f64>() / f64::from(STEPS) / redraw
}

/// Uniform in 0…1.
pub(crate) fn fraction(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The sampled seconds: of each block of six, all but one, which is drawn at random.
#[derive(Debug, Clone)]
pub(crate) struct Switching {
    first: u64,
    /// Seconds of a unit.
    unit: u64,
    /// The unit of each block that isn't sampled.
    off: Vec<u8>,
}

impl Switching {
    /// For a hold that begins at `start`, on the trial's clock.
    pub(crate) fn new(start: Duration, hold: Duration, seed: u64) -> Self {
        let seconds = hold.as_secs().saturating_add(2);
        let unit = seconds.div_ceil(BLOCK * MOST_BLOCKS).max(1);
        let blocks = seconds.div_ceil(BLOCK * unit);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x006f_6666);
        let off = (0..blocks).map(|_| (fraction(&mut random) * BLOCK as f64) as u8);
        Self {
            first: start.as_secs(),
            unit,
            off: off.collect(),
        }
    }

    /// The block of a moment.
    pub(crate) fn block(&self, at: Duration) -> u32 {
        u32::try_from(self.units(at) / BLOCK).unwrap_or(u32::MAX)
    }

    /// Returns true if a moment is sampled.
    pub(crate) fn is_on(&self, at: Duration) -> bool {
        let unit = self.units(at);
        let off = self.off.get((unit / BLOCK) as usize);
        off.is_none_or(|off| u64::from(*off) != unit % BLOCK)
    }

    /// The second that a sample of this moment counts for. Sampling stops slightly after a second ends; samples taken
    /// in that gap count for the second before.
    pub(crate) fn second(&self, at: Duration) -> u32 {
        let mut second = at;
        while !self.is_on(second) && second.as_secs() > self.first {
            second = second.saturating_sub(Duration::from_secs(1));
        }
        // A hold may begin with a second that isn't sampled; then nothing is before it.
        let second = if self.is_on(second) { second } else { at };
        u32::try_from(second.as_secs()).unwrap_or(u32::MAX)
    }

    /// The end of the unit that holds a moment.
    pub(crate) fn next(&self, at: Duration) -> Duration {
        Duration::from_secs(self.first + (self.units(at) + 1) * self.unit)
    }

    fn units(&self, at: Duration) -> u64 {
        at.as_secs().saturating_sub(self.first) / self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_give_the_rate_whatever_it_is() {
        for rate in [1.0, 9.0, 49.0, 99.0, 199.0, 997.0, 4999.0] {
            let mut periods = Periods::new(rate, 7);
            let redraw = periods.redraw().as_nanos() as u64;
            let drawn: Vec<u64> = (0..20_000).map(|_| periods.draw()).collect();
            let samples: u64 = drawn.iter().map(|period| redraw / period).sum();
            let got = samples as f64 / (20_000.0 * periods.redraw().as_secs_f64());
            assert!((got / rate - 1.0).abs() < 0.02, "{got} for {rate}");
            assert!(drawn.iter().all(|period| *period < redraw), "{rate}");
            let spread = drawn.iter().max().unwrap() - drawn.iter().min().unwrap();
            assert!(spread as f64 > 0.7e9 / rate, "{rate}");
        }
    }

    #[test]
    fn one_second_of_six_is_not_sampled() {
        let switching = Switching::new(Duration::from_millis(2500), Duration::from_secs(600), 3);
        let mut off = 0;
        let mut places = [0; 6];
        for block in 0..100 {
            let seconds = (0..6).map(|at| 2 + 6 * block + at);
            let seconds = seconds.filter(|at| !switching.is_on(Duration::from_secs(*at)));
            for second in seconds {
                off += 1;
                places[(second as usize - 2) % 6] += 1;
                assert_eq!(
                    u64::from(switching.block(Duration::from_secs(second))),
                    block
                );
            }
        }
        assert_eq!(off, 100);
        assert!(places.iter().all(|count| *count > 5), "{places:?}");
        let next = switching.next(Duration::from_millis(2500));
        assert_eq!(next, Duration::from_secs(3));
    }

    #[test]
    fn long_holds_have_no_more_blocks() {
        let day = Duration::from_secs(24 * 3600);
        let switching = Switching::new(Duration::ZERO, day, 1);
        assert!(u64::from(switching.block(day)) <= MOST_BLOCKS);
    }
}
