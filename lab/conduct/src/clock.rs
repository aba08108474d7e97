//! The clock: the only place of this crate that reads the time or lets it pass.

use std::time::{Duration, Instant};

/// Counts from its making.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the clock module")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The calendar's time, RFC 3339 in UTC with whole milliseconds.
pub(crate) fn calendar() -> String {
    let now = jiff::Timestamp::now();
    let whole = jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    whole.to_string()
}

/// The calendar's time in ms since 1970.
pub(crate) fn wall_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Lets a little time pass between two looks at a condition.
pub(crate) fn pause(length: Duration) {
    std::thread::park_timeout(length);
}
