//! The answer of a run, or of two runs beside each other, to the study's question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::Measure;

/// The answer by the deciding measures alone; others are exploratory and decide nothing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What it comes to.
    pub decision: Decision,
    /// In one sentence, which can stand above everything else.
    pub sentence: String,
    /// The measures that decide, in the order of weight.
    pub decided_by: Vec<Measure>,
    /// Whether the study names the measure; else the usual ones decide.
    pub named: bool,
    /// Whether *b* is meant not to be worse: variants and runs. Of the levels of a factor a difference of
    /// either sign is an answer.
    pub is_gate: bool,
}

/// What a question comes to. Green means shown: of these only [`CouldNotTell`](Self::CouldNotTell),
/// [`NotAnswered`](Self::NotAnswered), and [`Worse`](Self::Worse) don't end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Worse in a deciding measure, beyond noise and by more than what matters.
    Worse,
    /// Too few blocks for a verdict: the question was asked, and nothing speaks to it.
    NotAnswered,
    /// The noise leaves room for a difference that matters.
    CouldNotTell,
    /// Better in a deciding measure, and not worse in any other.
    Better,
    /// Equal in all deciding measures, within what doesn't matter.
    Equal,
    /// Shown not to be worse by as much as matters; it may be better.
    NotWorse,
    /// The levels of a factor differ, or are equal; which of them is meant to be better nobody said.
    Told,
}

impl Decision {
    /// Returns true if the question has an answer.
    #[must_use]
    pub fn is_known(self) -> bool {
        !matches!(self, Self::NotAnswered | Self::CouldNotTell)
    }
}
