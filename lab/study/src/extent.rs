//! How large a load can be, and how long its parts last at a speed.

use std::time::Duration;

/// Fewest and most virtual users of a trial.
pub(crate) const USERS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Longest ramp, longest hold, and longest stage.
pub(crate) const MAX_PHASE: Duration = Duration::from_secs(30 * 86_400);

/// A time at a speed.
pub(crate) fn milliseconds(time: Duration, speed: f64) -> u64 {
    (time.as_secs_f64() * 1e3 / speed).round() as u64
}
