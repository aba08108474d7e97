//! The answer of a run, or of two runs beside each other, to the study's question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::Measure;

/// The answer to the study's question, by the deciding measures alone. All other measures are exploratory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// The answer in one sentence that can stand above everything else.
    pub sentence: String,
    /// The deciding measures, in the order of importance.
    pub decided_by: Vec<Measure>,
    /// Whether the study names the measure; otherwise the default measures decide.
    pub named: bool,
    /// Whether *b* must not be worse than *a*, as for variants and runs. Between the levels of a factor, a difference
    /// of either sign is an answer.
    pub is_gate: bool,
}

/// The decision on a question. Only `could_not_tell`, `not_answered`, and `worse` are no success; all others have been
/// shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Worse in a deciding measure, beyond noise and by a relevant difference.
    Worse,
    /// No verdict: the study asks for one, but has too few blocks.
    NotAnswered,
    /// Inconclusive: the noise leaves room for a relevant difference.
    CouldNotTell,
    /// Better in a deciding measure, and not worse in any other.
    Better,
    /// Equal in all deciding measures, within the equivalence margin.
    Equal,
    /// Shown not to be worse by a relevant difference; it may be better.
    NotWorse,
    /// The levels of a factor are shown to differ, or to be equal; the study does not state which should be better.
    Told,
}

impl Decision {
    /// Returns true if the question has an answer.
    #[must_use]
    pub fn is_known(self) -> bool {
        !matches!(self, Self::NotAnswered | Self::CouldNotTell)
    }
}
