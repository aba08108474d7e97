//! What of a session depends on what came: conditions, loops with a bound, retries.

use std::ops::Range;

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
    /// The wait before each, drawn from the user's unplanned waits.
    pub wait: Wait,
}

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
