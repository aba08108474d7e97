//! The one place that reads the clock: how long the database is waited for.

use std::time::{Duration, Instant};

/// A moment until which something is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub(crate) fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// What is left of it.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(now())
    }

    /// Whether nothing is.
    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
fn now() -> Instant {
    Instant::now()
}
