//! What of a session depends on what came: conditions, loops with a bound, retries.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::template::Template;
use crate::wait::Wait;

/// What decides whether, and how often, a step or a group of steps is done.
///
/// Conditions are [`Template::condition`]s, judged by the user's variables as they are then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Control<T = Template> {
    /// It is done where this holds before it begins; `None` always.
    pub when: Option<T>,
    /// It is done again until this holds after a round; `None` does it once (or as often as a step
    /// repeats).
    pub until: Option<Until<T>>,
}

/// The end of a loop.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Until<T = Template> {
    /// What holds then.
    pub condition: T,
    /// Most rounds, at least one.
    pub at_most: u32,
}

/// Neighbouring steps with a control of their own, besides those that each of them may have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Group<T = Template> {
    /// By their places in the session; not empty.
    pub steps: Range<usize>,
    /// Whether and how often they are done, all of them in a row.
    pub control: Control<T>,
}

/// Neighbouring steps whose time together is of interest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// As shown in reports; unique in its session.
    pub name: String,
    /// By their places in the session; not empty, and within another transaction or apart from it.
    pub steps: Range<usize>,
    /// What has one each time.
    #[serde(default)]
    pub each: Round,
}

/// What has a transaction of its own each time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// The session.
    #[default]
    Session,
    /// A round of the [`Group`] around its steps.
    Group,
    /// A round of its step: of a step some of whose requests go out at the same time.
    Step,
}

/// The name of the transaction that spans a whole session.
pub const SESSION: &str = "session";

/// The most transactions within each other, the session not counted.
pub const MAX_TRANSACTION_LEVELS: usize = 8;

/// How often a failed request of a step is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Most times, at least one; the first attempt is none of them.
    pub at_most: u32,
    /// The wait before the first of them, drawn from the user's unplanned waits.
    pub wait: Wait,
    /// Each further wait is drawn anew and multiplied by this once more; at least 1.
    #[serde(default = "one")]
    pub multiplier: f64,
    /// No wait is longer.
    #[serde(default)]
    pub max_wait: Option<Duration>,
    /// Whether it waits for as long as the answer asks (`Retry-After`) where that is longer.
    #[serde(default)]
    pub retry_after: bool,
}

fn one() -> f64 {
    1.0
}

impl Retry {
    /// So many retries, each after this wait.
    #[must_use]
    pub fn new(at_most: u32, wait: Wait) -> Self {
        Self {
            at_most,
            wait,
            multiplier: 1.0,
            max_wait: None,
            retry_after: false,
        }
    }

    /// How long it waits where `drawn` came from its `wait`, after so many retries, and for an answer that asks for
    /// `asked` seconds.
    #[must_use]
    pub fn waits(&self, drawn: Duration, retries: u32, asked: Option<u32>) -> Duration {
        let most = self.max_wait.unwrap_or(LONGEST_WAIT);
        let growth = self
            .multiplier
            .powi(i32::try_from(retries).unwrap_or(i32::MAX));
        let grown = match drawn.is_zero() {
            // However often no wait at all is multiplied.
            true => Duration::ZERO,
            false => {
                Duration::from_secs_f64((drawn.as_secs_f64() * growth).min(most.as_secs_f64()))
            }
        };
        let asked = asked.filter(|_| self.retry_after).unwrap_or_default();
        grown.max(Duration::from_secs(asked.into())).min(most)
    }
}

/// No retry waits longer, whatever its server asks for: a day.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// Who comes in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visitor {
    /// The same user again, with its cookies, its connection, and what it captured.
    #[default]
    Same,
    /// Somebody who was never there: without cookies, on a connection of its own, and with variables
    /// as they were before the first session.
    New,
}

impl<T> Control<T> {
    /// Most rounds where a step without a loop has `repeat` of them.
    #[must_use]
    pub fn most_rounds(&self, repeat: u32) -> u32 {
        self.until.as_ref().map_or(repeat, |until| until.at_most)
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Control<U>, E> {
        let until = self.until.as_ref().map(|until| {
            Ok(Until {
                condition: map(&until.condition)?,
                at_most: until.at_most,
            })
        });
        Ok(Control {
            when: self.when.as_ref().map(&mut *map).transpose()?,
            until: until.transpose()?,
        })
    }
}
