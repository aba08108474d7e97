//! The calendar time, for the expiry of cookies. All other time is passed in by the engine.

use std::time::SystemTime;

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the clock module")]
pub(crate) fn unix_seconds() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}
