//! When sessions arrive: one seeded stream, from which the driver takes them and the plan counts
//! them.
//!
//! Arrivals are those of a process with one event per unit of time on average, mapped through the
//! rate that the ramp has reached (Lewis & Shedler 1979: a unit-rate process seen through the
//! inverse of the cumulative rate has just that rate). So a ramp of another length moves arrivals
//! and draws none anew.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Purpose, generator, unit};
use crate::load::Spacing;

/// The arrivals of one trial, in order and without end.
///
/// The rate rises in a straight line over the ramp, then stays. Several workers or processes share
/// a stream by each walking all of it and taking every n-th arrival by its number.
#[derive(Debug, Clone)]
pub struct ArrivalStream {
    random: Xoshiro256PlusPlus,
    spacing: Spacing,
    rate_per_s: f64,
    ramp_s: f64,
    /// The unit-rate time of the last event.
    units: f64,
    next: u64,
}

/// One session's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// From 0, in the order of arrival; it names the session's own streams.
    pub number: u64,
    /// After the start of the ramp.
    pub at: Duration,
}

impl ArrivalStream {
    /// The arrivals of `block`; `rate_per_s` is positive and finite, and reached after `ramp`.
    #[must_use]
    pub fn new(seed: u64, block: u32, rate_per_s: f64, spacing: Spacing, ramp: Duration) -> Self {
        Self {
            random: generator(seed, block, 0, Purpose::Arrivals),
            spacing,
            rate_per_s,
            ramp_s: ramp.as_secs_f64(),
            units: 0.0,
            next: 0,
        }
    }

    /// The arrivals to be expected until `time` after the start of the ramp.
    #[must_use]
    pub fn expected(&self, time: Duration) -> f64 {
        let time = time.as_secs_f64();
        if time < self.ramp_s {
            self.rate_per_s * time * time / (2.0 * self.ramp_s)
        } else {
            self.rate_per_s * (time - self.ramp_s / 2.0)
        }
    }

    /// When so many arrivals are to be expected: the inverse of [`ArrivalStream::expected`].
    #[must_use]
    pub fn time_of(&self, units: f64) -> Duration {
        let in_ramp = self.rate_per_s * self.ramp_s / 2.0;
        let seconds = if units < in_ramp {
            (2.0 * self.ramp_s * units / self.rate_per_s).sqrt()
        } else {
            self.ramp_s + (units - in_ramp) / self.rate_per_s
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl Iterator for ArrivalStream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let number = self.next;
        self.next += 1;
        self.units = match self.spacing {
            #[expect(clippy::cast_precision_loss, reason = "a trial has far less than 2^52")]
            Spacing::Constant => number as f64,
            Spacing::Poisson => self.units - (1.0 - unit(&mut self.random)).ln(),
        };
        Some(Arrival {
            number,
            at: self.time_of(self.units),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn stream(rate: f64, spacing: Spacing, ramp: Duration) -> ArrivalStream {
        ArrivalStream::new(1, 0, rate, spacing, ramp)
    }

    fn until(stream: &ArrivalStream, end: Duration) -> usize {
        stream.clone().take_while(|a| a.at < end).count()
    }

    #[test]
    fn constant_arrivals_fill_whole_seconds() {
        let flat = stream(1000.0, Spacing::Constant, Duration::ZERO);
        assert_eq!(until(&flat, 7 * S), 7000);
        let times: Vec<Duration> = flat.map(|a| a.at).take(3).collect();
        assert_eq!(times, [0, 1, 2].map(Duration::from_millis));
        // Half the rate on average over the ramp.
        let ramped = stream(10.0, Spacing::Constant, 4 * S);
        assert_eq!(until(&ramped, 4 * S), 20);
        assert_eq!(until(&ramped, 6 * S), 40);
    }

    #[test]
    fn a_poisson_process_has_its_rate_and_its_spread() {
        // Counts of 1 s at 50/s after a ramp: mean and variance 50, each within five standard errors.
        let poisson = stream(50.0, Spacing::Poisson, 10 * S);
        let mut counts = [0.0_f64; 2000];
        for arrival in poisson {
            let second = arrival.at.as_secs();
            if second >= 2010 {
                break;
            }
            if second >= 10 {
                counts[second as usize - 10] += 1.0;
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 50.0).abs() < 5.0 * (50.0 / n).sqrt(), "{mean}");
        assert!(
            (variance - 50.0).abs() < 5.0 * 50.0 * (2.0 / n).sqrt(),
            "{variance}"
        );
    }

    #[test]
    fn a_stream_is_its_seed_and_block() {
        let times = |seed, block| -> Vec<Duration> {
            let stream = ArrivalStream::new(seed, block, 5.0, Spacing::Poisson, S);
            stream.map(|a| a.at).take(20).collect()
        };
        assert_eq!(times(1, 0), times(1, 0));
        assert_ne!(times(1, 0), times(1, 1));
        assert_ne!(times(1, 0), times(2, 0));
    }

    proptest! {
        #[test]
        fn arrivals_come_in_order_and_as_expected(
            rate in 0.01..10_000.0f64,
            ramp_ms in 0u64..100_000,
            units in 0.0..100_000.0f64,
            poisson in any::<bool>(),
        ) {
            let spacing = if poisson { Spacing::Poisson } else { Spacing::Constant };
            let stream = stream(rate, spacing, Duration::from_millis(ramp_ms));
            let back = stream.expected(stream.time_of(units));
            prop_assert!((back - units).abs() <= 1e-6 * (1.0 + units) * (1.0 + rate), "{back} {units}");
            let mut last = Duration::ZERO;
            for (number, arrival) in stream.take(50).enumerate() {
                prop_assert_eq!(arrival.number, number as u64);
                prop_assert!(arrival.at >= last);
                last = arrival.at;
            }
        }
    }
}
