//! Arrival times of sessions: one seeded stream, from which the driver takes them and the plan counts them.
//!
//! Arrivals are a process with one event per unit of time on average, mapped through the load's rate at that time
//! (Lewis & Shedler 1979: a unit-rate process seen through the inverse of the cumulative rate has just that rate). So a
//! ramp of another length moves arrivals and draws none again.

use std::sync::Arc;
use std::time::Duration;

use super::ChoiceStream;
use super::profile::Profile;
use crate::data::Data;
use crate::load::Spacing;
use crate::timeline::{Replay, Timeline};

/// The arrivals of one trial, in order and without end, or to the end of a recording.
///
/// Their rate follows a [`Profile`], unless they are recorded. Several workers or processes share a stream: each
/// generates all of it and takes every n-th arrival by its number.
#[derive(Debug, Clone)]
pub struct ArrivalStream(Source);

#[derive(Debug, Clone)]
enum Source {
    Drawn(Drawn),
    Recorded(Replay),
}

#[derive(Debug, Clone)]
struct Drawn {
    random: ChoiceStream,
    spacing: Spacing,
    profile: Profile,
    /// The unit-rate time of the last event.
    units: f64,
    next: u64,
}

/// The start of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// In the order of arrival, from 0, or from the first row of a recording; it names the session's own
    /// streams.
    pub number: u64,
    /// After the start of the ramp, or of the first stage.
    pub at: Duration,
}

impl ArrivalStream {
    /// The arrivals of `block`.
    #[must_use]
    pub fn new(seed: u64, block: u32, spacing: Spacing, profile: Profile) -> Self {
        Self(Source::Drawn(Drawn {
            random: ChoiceStream::of_arrivals(seed, block),
            spacing,
            profile,
            units: 0.0,
            next: 0,
        }))
    }

    /// The arrivals of a recording with these rows.
    #[must_use]
    pub fn recorded(timeline: &Timeline, data: Option<&Arc<Data>>) -> Self {
        Self(Source::Recorded(Replay::new(timeline, data)))
    }
}

impl Iterator for ArrivalStream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match &mut self.0 {
            Source::Drawn(drawn) => Some(drawn.draw()),
            Source::Recorded(replay) => {
                let (number, at) = replay.advance()?;
                Some(Arrival { number, at })
            }
        }
    }
}

impl Drawn {
    fn draw(&mut self) -> Arrival {
        let number = self.next;
        self.next += 1;
        self.units = match self.spacing {
            #[expect(clippy::cast_precision_loss, reason = "a trial has far less than 2^52")]
            Spacing::Constant | Spacing::Recorded => number as f64,
            Spacing::Poisson => self.units - (1.0 - self.random.unit()).ln(),
        };
        Arrival {
            number,
            at: self.profile.time_of(self.units),
        }
    }
}

#[cfg(test)]
mod tests;
