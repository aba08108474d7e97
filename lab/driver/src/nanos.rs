//! Spans of time as plain numbers, for the hot path.

use std::time::Duration;

/// A point or a span of time on a worker's clock.
pub(crate) type Nanos = u64;

/// A duration in nanoseconds, at most [`u64::MAX`].
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
