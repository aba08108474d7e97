//! Think times and chances in written form: distributions, not draws (see `timing`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// Think time, drawn per user and step from the user's timing stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// No wait.
    None,
    /// A constant time.
    Constant(Duration),
    /// Uniform between the two, first ≤ second.
    Uniform(Duration, Duration),
    /// Exponential with this mean, truncated at ten means.
    Exponential(Duration),
    /// Lognormal with this median and sigma (of the log), truncated at 100 medians.
    Lognormal(Duration, f64),
    /// The seconds in a variable, divided by this speed: see [`crate::scope::UserScope::seconds`]. Unknown to the plan.
    Seconds(Slot, f64),
}

/// The share of the sessions that run a step: see [`crate::timing::SessionChoice`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// Steps of one group share one draw per session, so that they exclude each other.
    pub group: u32,
    /// The step runs when the draw, at least 0 and below 1, is at least this,
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

    /// Returns the mean of its distribution, before truncation; zero if unknown to the plan.
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

    /// Returns the wait of a trial at `speed` times the normal speed.
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

/// Returns a time divided by a speed, a positive number.
#[must_use]
pub fn time_at_speed(time: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(Duration::MAX)
}
