//! The clock: the only place of this crate, and of who runs trials, that reads the time or lets it pass.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Counts from its making.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Counts from now on.
    #[expect(clippy::disallowed_methods, reason = "the clock module")]
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// What it has counted.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The calendar's time, RFC 3339 in UTC with whole milliseconds.
pub fn calendar() -> String {
    let now = jiff::Timestamp::now();
    let whole = jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    whole.to_string()
}

/// The calendar's time in ms since 1970.
pub fn wall_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The machine's monotonic clock in ns, which its processes of one time namespace share.
pub fn shared() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Lets a little time pass between two looks at a condition.
pub fn pause(length: Duration) {
    std::thread::park_timeout(length);
}
