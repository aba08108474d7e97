//! The crate's only clocks: for the duration of commits and the time of logged changes.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock that starts with the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the clock started.
    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}

/// Microseconds since 1970 by the system clock, which may be set back.
#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
    })
}
