//! The only code that reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the time in seconds since 1970.
pub fn unix_seconds() -> i64 {
    i64::try_from(since_1970().as_secs()).unwrap_or(i64::MAX)
}

/// Returns the time in microseconds since 1970.
pub fn unix_micros() -> i64 {
    i64::try_from(since_1970().as_micros()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "this is the one clock")]
fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// A monotonic clock that begins at its start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the clock.
    #[expect(clippy::disallowed_methods, reason = "this is the one clock")]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Returns the time since the start.
    #[expect(clippy::disallowed_methods, reason = "this is the one clock")]
    pub fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }
}
