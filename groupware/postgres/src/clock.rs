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

    /// This one, or so long from now if that is earlier.
    pub(crate) fn or_after(self, time: Duration) -> Self {
        Self(self.0.min(now() + time))
    }

    /// The later one.
    pub(crate) fn or_later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
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
pub(crate) fn now() -> Instant {
    Instant::now()
}
