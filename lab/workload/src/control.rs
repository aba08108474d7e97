//! The control flow of a session that depends on responses: conditions, bounded loops, retries.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::template::Template;
use crate::wait::Wait;

/// Decides whether, and how often, a step or a group of steps runs.
///
/// Conditions are [`Template::condition`]s, evaluated with the user's variables at that time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Control<T = Template> {
    /// The condition to start; `None` always starts.
    pub when: Option<T>,
    /// Repeats until the condition holds after a round; `None` runs it once (or as often as a step repeats).
    pub until: Option<Until<T>>,
}

/// The end of a loop.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Until<T = Template> {
    /// The condition that ends the loop.
    pub condition: T,
    /// Most rounds, at least one.
    pub at_most: u32,
}

/// Neighbouring steps with a control of their own, besides those that each of them may have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Group<T = Template> {
    /// Their indices in the session; not empty.
    pub steps: Range<usize>,
    /// Whether and how often they run, all of them in sequence.
    pub control: Control<T>,
}

/// Neighbouring steps that are timed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// The name in reports; unique in its session.
    pub name: String,
    /// Their indices in the session; not empty, and nested in another transaction or disjoint from it.
    pub steps: Range<usize>,
    /// The unit of repetition.
    #[serde(default)]
    pub each: Round,
}

/// The unit of which each repetition has a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// The session.
    #[default]
    Session,
    /// A round of the [`Group`] around its steps.
    Group,
    /// A round of its step, some of whose requests are parallel.
    Step,
}

/// The name of the transaction that spans a whole session.
pub const SESSION: &str = "session";

/// Deepest nesting of transactions, without the session.
pub const MAX_TRANSACTION_LEVELS: usize = 8;

/// The retries of a failed request of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Most retries, at least one; the first attempt does not count.
    pub at_most: u32,
    /// The wait before the first retry, drawn from the user's unplanned waits.
    pub wait: Wait,
    /// Each further wait is drawn again and multiplied by this once more; at least 1.
    #[serde(default = "one")]
    pub multiplier: f64,
    /// The longest wait.
    #[serde(default)]
    pub max_wait: Option<Duration>,
    /// True if it waits as long as the response's `Retry-After` if that is longer.
    #[serde(default)]
    pub retry_after: bool,
}

fn one() -> f64 {
    1.0
}

impl Retry {
    /// At most so many retries, each after this wait.
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

    /// The wait after so many retries, if `drawn` is from its `wait` and the response requests `asked` seconds.
    #[must_use]
    pub fn waits(&self, drawn: Duration, retries: u32, asked: Option<u32>) -> Duration {
        let most = self.max_wait.unwrap_or(LONGEST_WAIT);
        let growth = self
            .multiplier
            .powi(i32::try_from(retries).unwrap_or(i32::MAX));
        let grown = match drawn.is_zero() {
            // A zero wait stays zero however often it is multiplied.
            true => Duration::ZERO,
            false => {
                Duration::from_secs_f64((drawn.as_secs_f64() * growth).min(most.as_secs_f64()))
            }
        };
        let asked = asked.filter(|_| self.retry_after).unwrap_or_default();
        grown.max(Duration::from_secs(asked.into())).min(most)
    }
}

/// The longest wait of a retry, whatever its server requests: a day.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// The user of each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visitor {
    /// The same user again, with its cookies, its connection, and what it captured.
    #[default]
    Same,
    /// A new user: without cookies, on a connection of its own, and with variables as before the first session.
    New,
}

impl<T> Control<T> {
    /// Most rounds; a step without a loop has `repeat` of them.
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
