//! Think times and chances as they are written: distributions, not draws (those are `timing`'s).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// Think time, drawn per user and step from the user's timing stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// No wait.
    None,
    /// Always the same.
    Constant(Duration),
    /// Uniform between the two, first ≤ second.
    Uniform(Duration, Duration),
    /// Exponential with this mean, cut at ten means.
    Exponential(Duration),
    /// Lognormal with this median and sigma (of the log), cut at 100 medians.
    Lognormal(Duration, f64),
    /// As many seconds as a variable says, divided by this speed: see [`crate::scope::UserScope::seconds`]. No plan knows it.
    Seconds(Slot, f64),
}

/// The part of the sessions that does a step: see [`crate::timing::SessionChoice`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// Steps of one group share one draw per session, so that one of them excludes the others.
    pub group: u32,
    /// The step is done when the draw, at least 0 and below 1, is at least this,
    pub from: f64,
    /// and below this.
    pub to: f64,
}

impl Wait {
    /// Returns true if the plan knows its distribution.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Seconds(..))
    }

    /// The mean of its distribution, before the cut of its tail; zero of one that no plan knows.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::None | Self::Seconds(..) => Duration::ZERO,
            Self::Constant(d) | Self::Exponential(d) => d,
            Self::Uniform(low, high) => (low + high) / 2,
            Self::Lognormal(median, sigma) => {
                let mean = median.as_secs_f64() * (sigma * sigma / 2.0).exp();
                Duration::try_from_secs_f64(mean).unwrap_or(Duration::MAX)
            }
        }
    }

    /// The wait of a trial that runs `speed` times as fast.
    pub fn at_speed(self, speed: f64) -> Self {
        match self {
            Self::None => Self::None,
            Self::Constant(d) => Self::Constant(time_at_speed(d, speed)),
            Self::Uniform(low, high) => {
                Self::Uniform(time_at_speed(low, speed), time_at_speed(high, speed))
            }
            Self::Exponential(mean) => Self::Exponential(time_at_speed(mean, speed)),
            Self::Lognormal(median, sigma) => Self::Lognormal(time_at_speed(median, speed), sigma),
            Self::Seconds(slot, before) => Self::Seconds(slot, before * speed),
        }
    }
}

/// A time divided by a speed, a positive number.
#[must_use]
pub fn time_at_speed(time: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(Duration::MAX)
}
