//! Only this module of the benchmarks reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
