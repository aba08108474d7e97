//! The time course of a trial, at the resolution of a chart: neighbours are merged as more data arrives, histograms as
//! histograms, so that a quantile is always one of real responses.

use hdrhistogram::Histogram;
use lab_archive::{Interval, WindowLine};
use lab_stats::quantile;

/// Most points of a chart; beyond it each two neighbours are merged.
pub(crate) const MOST: usize = 240;
/// Two digits are enough for a chart, and take a tenth of the memory.
const DIGITS: u8 = 2;

/// Windows of a trial, neighbours merged.
#[derive(Debug, Default)]
pub(crate) struct Load {
    stretches: Vec<Stretch>,
    /// Shortest section: each must have enough responses for a quantile.
    least_ms: f64,
    /// Histograms that arrived before their window.
    early: Vec<Interval>,
}

/// A section of a trial.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) start_ms: f64,
    pub(crate) end_ms: f64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Users in a session at its end.
    pub(crate) users: u32,
    /// Sessions that wait for a connection at its end.
    pub(crate) waiting: u64,
    times: Histogram<u64>,
}

impl Stretch {
    fn seconds(&self) -> f64 {
        (self.end_ms - self.start_ms) / 1e3
    }

    /// Its middle on the trial's clock, in s.
    pub(crate) fn middle(&self) -> f64 {
        f64::midpoint(self.start_ms, self.end_ms) / 1e3
    }

    pub(crate) fn answered_per_s(&self) -> Option<f64> {
        lab_stats::ratio(self.answered as f64, self.seconds())
    }

    pub(crate) fn failed_per_s(&self) -> Option<f64> {
        lab_stats::ratio(self.failed as f64, self.seconds())
    }

    /// A quantile of response times; `None` if there are too few.
    pub(crate) fn ms(&self, p: f64) -> Option<f64> {
        quantile(&self.times, p).map(|us| us as f64 / 1e3)
    }

    fn merge(&mut self, next: &Self) {
        self.end_ms = next.end_ms;
        self.answered += next.answered;
        self.failed += next.failed;
        (self.users, self.waiting) = (next.users, next.waiting);
        // Both resize themselves.
        let _ = self.times.add(&next.times);
    }
}

impl Load {
    /// For a trial of this length.
    pub(crate) fn of(length_ms: f64) -> Self {
        Self {
            least_ms: length_ms / (MOST / 4) as f64,
            ..Self::default()
        }
    }

    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Adds a window with so many responses and failures.
    pub(crate) fn window(&mut self, window: &WindowLine, answered: u64, failed: u64) {
        let next = Stretch {
            start_ms: window.start_ms,
            end_ms: window.end_ms,
            answered,
            failed,
            users: window.counts.users,
            waiting: window.counts.waiting,
            times: histogram(),
        };
        match self.stretches.last_mut() {
            Some(last) if last.end_ms - last.start_ms < self.least_ms => last.merge(&next),
            _ => {
                if self.stretches.len() >= MOST {
                    self.halve();
                }
                self.stretches.push(next);
            }
        }
        for early in std::mem::take(&mut self.early) {
            self.times(early);
        }
    }

    /// Adds response times to their window.
    pub(crate) fn times(&mut self, interval: Interval) {
        let middle = f64::midpoint(interval.start_ms as f64, interval.end_ms as f64);
        let at = self.stretches.partition_point(|one| one.end_ms < middle);
        match self.stretches.get_mut(at) {
            Some(stretch) => interval.add_to(&mut stretch.times),
            None => self.early.push(interval),
        }
    }

    fn halve(&mut self) {
        let first = self
            .stretches
            .first()
            .map_or(0.0, |one| one.end_ms - one.start_ms);
        // Whole windows: slightly less than twice the length merges exactly two of them.
        self.least_ms = self.least_ms.max(first) * 1.9;
        self.stretches = halved(std::mem::take(&mut self.stretches), Stretch::merge);
    }
}

/// A histogram that resizes itself.
fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("two digits are allowed")
}

fn halved<T>(all: Vec<T>, merge: impl Fn(&mut T, &T)) -> Vec<T> {
    let mut merged: Vec<T> = Vec::with_capacity(MOST);
    for (at, one) in all.into_iter().enumerate() {
        match merged.last_mut() {
            Some(last) if at % 2 == 1 => merge(last, &one),
            _ => merged.push(one),
        }
    }
    merged
}

/// Samples of some counters, neighbours averaged.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    samples: Vec<Sample>,
    /// Samples per point.
    per: usize,
}

#[derive(Debug)]
struct Sample {
    t_ms: f64,
    count: usize,
    /// Sum and number of the values of each counter.
    sums: Vec<(f64, u32)>,
}

impl Counters {
    /// Adds a sample of the same counters each time.
    pub(crate) fn take(&mut self, t_ms: f64, values: &[Option<f64>]) {
        let sums = values
            .iter()
            .map(|v| (v.unwrap_or(0.0), u32::from(v.is_some())));
        let next = Sample {
            t_ms,
            count: 1,
            sums: sums.collect(),
        };
        match self.samples.last_mut() {
            Some(last) if last.count < self.per => last.merge(&next),
            _ => {
                if self.samples.len() >= MOST {
                    self.per = self.per.max(1) * 2;
                    self.samples = halved(std::mem::take(&mut self.samples), Sample::merge);
                }
                self.samples.push(next);
            }
        }
    }

    /// Seconds of the trial's clock, and the mean of a counter.
    pub(crate) fn of(&self, counter: usize) -> impl Iterator<Item = (f64, Option<f64>)> + '_ {
        self.samples.iter().map(move |sample| {
            let sum = sample.sums.get(counter).filter(|(_, n)| *n > 0);
            (sample.t_ms / 1e3, sum.map(|(sum, n)| sum / f64::from(*n)))
        })
    }
}

impl Sample {
    fn merge(&mut self, next: &Self) {
        let all = (self.count + next.count) as f64;
        self.t_ms = (self.t_ms * self.count as f64 + next.t_ms * next.count as f64) / all;
        self.count += next.count;
        for (sum, more) in self.sums.iter_mut().zip(&next.sums) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_counts::WindowCounts;

    use super::*;

    fn window(number: u32) -> WindowLine {
        WindowLine {
            start_ms: f64::from(number) * 100.0,
            end_ms: f64::from(number + 1) * 100.0,
            counts: WindowCounts {
                users: number,
                ..WindowCounts::default()
            },
            ..WindowLine::default()
        }
    }

    #[test]
    fn a_hundred_thousand_windows_are_few_stretches_that_lose_no_count() {
        let mut load = Load::default();
        for number in 0..100_000 {
            load.window(&window(number), 3, 1);
        }
        let stretches = load.stretches();
        assert!(
            (MOST / 2..=MOST).contains(&stretches.len()),
            "{}",
            stretches.len()
        );
        assert_eq!(
            stretches.iter().map(|one| one.answered).sum::<u64>(),
            300_000
        );
        assert_eq!(stretches.iter().map(|one| one.failed).sum::<u64>(), 100_000);
        assert_eq!(stretches.last().unwrap().users, 99_999);
        for pair in stretches.windows(2) {
            assert!((pair[0].end_ms - pair[1].start_ms).abs() < 1e-6);
        }
        let rates = stretches.iter().filter_map(Stretch::answered_per_s);
        assert!(rates.clone().all(|rate| (rate - 30.0).abs() < 1e-9));
    }

    #[test]
    fn counters_are_means_and_gaps_stay_gaps() {
        let mut counters = Counters::default();
        for n in 0..1000 {
            let value = f64::from(n % 2);
            counters.take(f64::from(n) * 1000.0, &[Some(value), None]);
        }
        let means: Vec<_> = counters.of(0).collect();
        assert!(means.len() <= MOST);
        assert!(
            means
                .iter()
                .all(|(_, mean)| mean.is_some_and(|m| (m - 0.5).abs() < 1e-9))
        );
        assert!(counters.of(1).all(|(_, mean)| mean.is_none()));
        assert_eq!(counters.of(7).filter(|(_, mean)| mean.is_some()).count(), 0);
    }
}
