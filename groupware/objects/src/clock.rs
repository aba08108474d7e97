//! The crate's only clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
