//! The clock: the only place of this crate that reads the time.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the clock module")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
