//! Measured times corrected for a delay of the measuring program.
//!
//! Measured times are sums, M = T + D: the true time, and a delay that was sampled separately and is independent of it.
//! Then `F_M(x) = Σ P(D = d) · F_T(x − d)`. At least half of the delays are no longer than their median, so `F_T`
//! follows from left to right: forward substitution in a triangular system, in which an error at one place is never
//! amplified later.

use hdrhistogram::Histogram;

/// Bins of a time's distribution up to its median, and the maximum over all.
const TO_MEDIAN: u64 = 64;
const MOST: u64 = 1 << 14;

/// Measured times, and their estimate without delays.
#[derive(Debug, Clone)]
pub struct Undelayed {
    width: f64,
    /// The common part of all delays, and their mean, both beyond the usual delay.
    shift: f64,
    mean: f64,
    /// Cumulative fractions of the measured times, and of the same without delays, up to the end of each bin.
    measured: Vec<f64>,
    undelayed: Vec<f64>,
}

impl Undelayed {
    /// Corrects `measured` times up to their `most`-quantile for `delays`; a delay up to `usual` is normal and is not
    /// removed. `None` without times or delays. All in one unit.
    #[must_use]
    pub fn new(
        measured: &Histogram<u64>,
        delays: &Histogram<u64>,
        usual: u64,
        most: f64,
    ) -> Option<Self> {
        if measured.is_empty() || delays.is_empty() {
            return None;
        }
        let last = measured.value_at_quantile(most);
        let width = (measured.value_at_quantile(0.5) / TO_MEDIAN)
            .max(last / MOST)
            .max(1);
        let common = delays.value_at_quantile(0.5).max(usual);
        let beyond = delays.iter_recorded().map(|delay| {
            let beyond = delay.value_iterated_to().saturating_sub(usual);
            exact(beyond) * part_of(delay.count_since_last_iteration(), delays.len())
        });
        let mean = beyond.sum();
        let places = usize::try_from(last / width + 1).ok()?;
        let counts = |histogram: &Histogram<u64>, less: u64| {
            let mut counts = vec![0_u64; places];
            for value in histogram.iter_recorded() {
                let at = value.value_iterated_to().saturating_sub(less) / width;
                if let Some(count) = usize::try_from(at).ok().and_then(|at| counts.get_mut(at)) {
                    *count += value.count_since_last_iteration();
                }
            }
            counts
        };
        let up_to = counts(measured, 0).into_iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let measured = up_to
            .map(|count| part_of(count, measured.len()))
            .collect::<Vec<_>>();
        let of_delays = counts(delays, common).into_iter();
        let delays: Vec<f64> = of_delays
            .map(|count| part_of(count, delays.len()))
            .collect();
        Some(Self {
            width: exact(width),
            shift: exact(common - usual),
            mean,
            undelayed: undelayed(&measured, &delays),
            measured,
        })
    }

    /// Returns how much the delays increased the `p`-quantile; `None` beyond the covered times.
    #[must_use]
    pub fn added(&self, p: f64) -> Option<f64> {
        let measured = self.quantile(&self.measured, p)?;
        let undelayed = self.quantile(&self.undelayed, p)?;
        Some((measured - undelayed + self.shift).min(measured))
    }

    /// Returns how much the delays increased the mean.
    #[must_use]
    pub fn added_to_mean(&self) -> f64 {
        self.mean
    }

    /// Times are uniform within their bin.
    fn quantile(&self, cumulated: &[f64], p: f64) -> Option<f64> {
        let at = cumulated.partition_point(|part| *part < p);
        let upper = *cumulated.get(at)?;
        let lower = at.checked_sub(1).map_or(0.0, |below| cumulated[below]);
        let within = crate::ratio(p - lower, upper - lower).unwrap_or_default();
        Some((exact(at as u64) + within) * self.width)
    }
}

/// Forward substitution; corrects results that only noise can cause (a fraction that falls, or is less than that
/// measured with delays).
fn undelayed(measured: &[f64], delays: &[f64]) -> Vec<f64> {
    let (none, longer) = delays.split_first().expect("a place at least");
    let longer = longer.iter().zip(1..).filter(|(part, _)| **part > 0.0);
    let longer: Vec<(f64, usize)> = longer.map(|(part, by)| (*part, by)).collect();
    let mut found = Vec::with_capacity(measured.len());
    let mut last = 0.0_f64;
    for (at, measured) in measured.iter().enumerate() {
        let before = longer.iter().take_while(|(_, by)| *by <= at);
        let delayed: f64 = before.map(|(part, by)| part * found[at - by]).sum();
        last = ((measured - delayed) / none).clamp(last.max(*measured), 1.0);
        found.push(last);
    }
    found
}

fn part_of(count: u64, of: u64) -> f64 {
    exact(count) / exact(of)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times stay far below 2^52"
)]
fn exact(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a low-discrepancy sequence in [0, 1] that is independent of `index / count`.
    fn draw(index: u64) -> f64 {
        (exact(index) * 0.618_033_988_749_895).fract()
    }

    /// Returns true times, measured times, and separate samples of the delay.
    fn measured(
        time: impl Fn(f64) -> f64,
        delay: impl Fn(f64) -> f64,
    ) -> (Histogram<u64>, Histogram<u64>, Histogram<u64>) {
        let [mut truth, mut all, mut delays] = [(); 3].map(|()| Histogram::new(3).unwrap());
        for index in 0..100_000 {
            let time = time(exact(index) / 1e5);
            truth.record(time as u64).unwrap();
            all.record((time + delay(draw(index))) as u64).unwrap();
        }
        for index in 0..5_000 {
            delays.record(delay(draw(index)) as u64).unwrap();
        }
        (truth, all, delays)
    }

    /// Returns the largest error of the estimated delay, as a part of the measured time.
    fn worst(time: impl Fn(f64) -> f64, delay: impl Fn(f64) -> f64, at: &[f64]) -> f64 {
        let (truth, all, delays) = measured(time, delay);
        let found = Undelayed::new(&all, &delays, 0, 0.99).unwrap();
        let error = |p: &f64| {
            let [truth, all] = [&truth, &all].map(|one| one.value_at_quantile(*p) as f64);
            (found.added(*p).unwrap() - (all - truth)).abs() / all
        };
        at.iter().map(error).fold(0.0, f64::max)
    }

    fn spread(draw: f64) -> f64 {
        500.0 * (-(1.0 - draw).ln()).exp().min(60.0)
    }

    const ALL: [f64; 3] = [0.5, 0.95, 0.99];

    #[test]
    fn what_stalls_add_is_found() {
        let stalls = |draw: f64| if draw < 0.015 { draw * 500_000.0 } else { 40.0 };
        assert!(
            worst(|_| 500.0, stalls, &ALL) < 0.03,
            "a server without spread"
        );
        assert!(worst(spread, stalls, &ALL) < 0.05, "and one with");
        let two = |draw: f64| if draw < 0.9 { 300.0 } else { 5_000.0 };
        assert!(
            worst(two, stalls, &[0.5, 0.95]) < 0.03,
            "quick and slow answers"
        );
    }

    #[test]
    fn what_each_time_has_is_found() {
        let some = |draw: f64| 200.0 + draw * 100.0;
        assert!(
            worst(spread, some, &ALL) < 0.08,
            "half of a narrow spread is common to all"
        );
        let (_, all, delays) = measured(spread, |_| 80.0);
        let usual = Undelayed::new(&all, &delays, 100, 0.99).unwrap();
        assert_eq!(usual.added(0.5), Some(0.0), "what is usual stays in");
        assert!(usual.added_to_mean().abs() < f64::EPSILON);
        let beyond = Undelayed::new(&all, &delays, 50, 0.99).unwrap();
        assert!((beyond.added_to_mean() - 30.0).abs() < 0.5);
    }

    #[test]
    fn nothing_is_found_of_nothing() {
        let none = Histogram::new(3).unwrap();
        let (_, all, delays) = measured(spread, |_| 1.0);
        assert!(Undelayed::new(&none, &delays, 0, 0.99).is_none());
        assert!(Undelayed::new(&all, &none, 0, 0.99).is_none());
        let found = Undelayed::new(&all, &delays, 0, 0.95).unwrap();
        assert_eq!(found.added(0.99), None, "beyond what was looked at");
    }

    #[test]
    fn times_of_any_size_are_looked_at_in_bounded_work() {
        let wide = |draw: f64| if draw < 0.6 { 1.0 } else { 1e12 * draw };
        let (_, all, delays) = measured(wide, wide);
        let found = Undelayed::new(&all, &delays, 0, 0.99).unwrap();
        assert!(found.measured.len() as u64 <= MOST + 1);
        assert!(found.added(0.95).is_some_and(|added| added >= 0.0));
    }
}
