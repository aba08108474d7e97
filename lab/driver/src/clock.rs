//! The clock: the only place of this crate that reads the time.
//!
//! Other code receives a [`Clock`], or the nanoseconds read from it. The clock knows nothing of trials but their zero
//! point.

use std::time::{Duration, Instant};

use lab_client::time::{Nanos, nanos};
use nix::time::{ClockId, clock_gettime};

/// The monotonic clock of a trial: 0 is the time of [`crate::Driver::begin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Returns a clock that reads 0 now.
    #[must_use]
    pub fn start() -> Self {
        Self { zero: read() }
    }

    /// Returns a clock whose 0 lies `offset` after this one's.
    #[must_use]
    pub fn shifted(self, offset: Duration) -> Self {
        Self {
            zero: self.zero + offset,
        }
    }

    /// Returns the time since 0; 0 before that.
    #[must_use]
    pub fn now(self) -> Duration {
        read().saturating_duration_since(self.zero)
    }

    /// Returns the monotonic time of 0.
    #[must_use]
    pub fn instant0(self) -> Instant {
        self.zero
    }

    /// Returns the time of day at a time on this clock, in milliseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the clock module")]
    pub(crate) fn unix_ms(self, time: Nanos) -> f64 {
        let now = std::time::SystemTime::now();
        let now = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let ago = self.nanos() as f64 - time as f64;
        (now.as_secs_f64() * 1e3 - ago / 1e6).floor()
    }

    /// Converts a time on this clock to nanoseconds of the machine's monotonic clock, which all its processes share.
    pub(crate) fn to_shared(self, time: Nanos) -> Nanos {
        self.shared_zero().saturating_add(time)
    }

    /// Converts in the other direction; a time before 0 is 0.
    pub(crate) fn at_shared(self, time: Nanos) -> Nanos {
        time.saturating_sub(self.shared_zero())
    }

    /// Returns the time of 0 in nanoseconds of the machine's monotonic clock. The two clocks are read one after the
    /// other: some tens of nanoseconds of error.
    #[must_use]
    pub fn shared_zero(self) -> Nanos {
        shared().saturating_sub(self.nanos())
    }

    /// Returns the nanoseconds since 0; they last for 584 years.
    #[inline]
    pub(crate) fn nanos(self) -> Nanos {
        let passed = read().saturating_duration_since(self.zero);
        passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos())
    }
}

/// `Instant` hides its number, so the kernel's clock is read.
fn shared() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    nanos(now)
}

#[inline]
#[expect(clippy::disallowed_methods, reason = "the clock module")]
fn read() -> Instant {
    #[cfg(test)]
    if let Some(now) = crate::simulation::time::now() {
        return now;
    }
    Instant::now()
}
