//! The one place where the benchmarks read the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
