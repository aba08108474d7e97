//! The only module that reads the clock: deadlines for the database.

use std::time::{Duration, Instant};

/// The time at which a wait ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline after this time from now.
    pub(crate) fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// Returns this deadline, or the one after this time from now if that is earlier.
    pub(crate) fn or_after(self, time: Duration) -> Self {
        Self(self.0.min(now() + time))
    }

    /// Returns the later deadline.
    pub(crate) fn or_later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Returns the remaining time.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(now())
    }

    /// Returns true if no time is left.
    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
