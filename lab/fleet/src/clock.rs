//! The clock: the only place of this crate that reads the time.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Reads the monotonic clock, which all processes in one time namespace share.
pub(crate) fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// The same in ns; they last for 584 years.
pub(crate) fn nanos() -> u64 {
    u64::try_from(now().as_nanos()).unwrap_or(u64::MAX)
}
