//! The clock: the only place of this crate, and of the crates that run trials, that reads the time or sleeps.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Measures the time since its start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "the clock module")]
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Wall-clock time, RFC 3339 in UTC with whole milliseconds.
pub fn calendar() -> String {
    let now = jiff::Timestamp::now();
    let whole = jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    whole.to_string()
}

/// Wall-clock time in ms since 1970.
pub fn wall_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The machine's monotonic clock in ns, shared by the processes of one time namespace.
pub fn shared() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps between two checks of a condition.
pub fn pause(length: Duration) {
    std::thread::park_timeout(length);
}
