//! The one place that reads the clock: how long commits take.

use std::time::{Duration, Instant};

/// A steady clock that starts with the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since it started.
    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}
