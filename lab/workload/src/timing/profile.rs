//! The rate of arrivals over time, and their expected number.

use std::sync::Arc;
use std::time::Duration;

use crate::stage::Stage;

/// A rate that is constant or changes linearly, section by section.
#[derive(Debug, Clone)]
pub struct Profile(Arc<[Stretch]>);

#[derive(Debug, Clone, Copy)]
struct Stretch {
    start_s: f64,
    /// Infinite for the last one.
    length_s: f64,
    from_per_s: f64,
    to_per_s: f64,
    /// Expected arrivals before it.
    before: f64,
}

impl Profile {
    /// A rate that rises from 0 over the ramp, then is constant; it is positive and finite.
    #[must_use]
    pub fn ramp(rate_per_s: f64, ramp: Duration) -> Self {
        let rise = (ramp.as_secs_f64(), 0.0, rate_per_s);
        Self::of([rise, (f64::INFINITY, rate_per_s, rate_per_s)])
    }

    /// The rates of stages; after the last nothing arrives.
    #[must_use]
    pub fn stages(stages: &[Stage]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a stage lasts 30 days at most")]
        let stretch = |stage: &Stage| (stage.length_ms as f64 / 1e3, stage.from, stage.to);
        let nothing = (f64::INFINITY, 0.0, 0.0);
        Self::of(stages.iter().map(stretch).chain([nothing]))
    }

    /// A profile of lengths in s with the rates at both of their ends.
    fn of(parts: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let (mut start_s, mut before) = (0.0, 0.0);
        let stretch = |(length_s, from_per_s, to_per_s): (f64, f64, f64)| {
            let this = Stretch {
                start_s,
                length_s,
                from_per_s,
                to_per_s,
                before,
            };
            start_s += length_s;
            before += length_s * f64::midpoint(from_per_s, to_per_s);
            this
        };
        Self(parts.into_iter().map(stretch).collect())
    }

    /// The expected arrivals until `time` after the start.
    #[must_use]
    pub fn expected(&self, time: Duration) -> f64 {
        let time = time.as_secs_f64();
        let at = self.0.partition_point(|one| one.start_s <= time);
        let Some(stretch) = self.0.get(at.saturating_sub(1)) else {
            return 0.0;
        };
        let within = time - stretch.start_s;
        let rise = stretch.slope() * within * within / 2.0;
        stretch.before + stretch.from_per_s * within + rise
    }

    /// The time at which so many arrivals are expected: the inverse of [`Profile::expected`], and [`Duration::MAX`]
    /// beyond the last one.
    #[must_use]
    pub fn time_of(&self, units: f64) -> Duration {
        // A section without arrivals starts and ends with the same number.
        let at = self.0.partition_point(|one| one.before <= units);
        let Some(stretch) = self.0.get(at.saturating_sub(1)) else {
            return Duration::MAX;
        };
        let left = (units - stretch.before).max(0.0);
        let (from, slope) = (stretch.from_per_s, stretch.slope());
        // The root of the quadratic equation in the form that is stable where the slope is small.
        let root = from + (from * from + 2.0 * slope * left).max(0.0).sqrt();
        let within = match left > 0.0 || root > 0.0 {
            true => 2.0 * left / root,
            false if stretch.to_per_s > 0.0 => 0.0,
            false => f64::INFINITY,
        };
        let seconds = stretch.start_s + within.min(stretch.length_s);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl Stretch {
    fn slope(&self) -> f64 {
        (self.to_per_s - self.from_per_s) / self.length_s
    }
}
