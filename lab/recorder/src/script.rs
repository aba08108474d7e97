//! What scripts say of a trial as a whole, besides its requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The maximum number of names of values that are not counted, for each worker.
const MAX_NAMES: usize = 50;
/// The name of further ones.
const OTHER_NAMES: &str = "other names";
/// The maximum number of characters of a name or a reason.
const MAX_TEXT: usize = 1_000;

/// A fact about a trial that a script caused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptNote {
    /// The script ends the test (`test.abort`), for this reason.
    Aborted(String),
    /// The script fails the test (`test.fail`), for this reason.
    Failed(String),
    /// Values of a check or a metric are in no figure of it.
    NotCounted {
        /// The name of the check or the metric.
        name: String,
        /// How many.
        values: u64,
    },
}

impl ScriptNote {
    /// Returns the note with its text replaced.
    #[must_use]
    pub fn map(self, replaced: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Aborted(reason) => Self::Aborted(replaced(&reason)),
            Self::Failed(reason) => Self::Failed(replaced(&reason)),
            Self::NotCounted { name, values } => Self::NotCounted {
                name: replaced(&name),
                values,
            },
        }
    }
}

/// The notes of a worker: scripts may repeat them in each session.
#[derive(Debug, Default)]
pub(crate) struct ScriptNotes {
    has_aborted: bool,
    has_failed: bool,
    not_counted: BTreeMap<String, u64>,
}

impl ScriptNotes {
    /// Returns the note of the first `test.abort`.
    pub(crate) fn aborted(&mut self, reason: &str) -> Option<ScriptNote> {
        let is_first = !std::mem::replace(&mut self.has_aborted, true);
        is_first.then(|| ScriptNote::Aborted(shortened(reason)))
    }

    /// Returns the note of the first `test.fail`.
    pub(crate) fn failed(&mut self, reason: &str) -> Option<ScriptNote> {
        let is_first = !std::mem::replace(&mut self.has_failed, true);
        is_first.then(|| ScriptNote::Failed(shortened(reason)))
    }

    /// Counts a value that is in no figure. The number of names is limited, except for those of known measures, whose
    /// thresholds depend on it.
    pub(crate) fn not_counted(&mut self, name: &str, is_measure: bool) {
        if let Some(values) = self.not_counted.get_mut(name) {
            *values += 1;
            return;
        }
        let is_full = !is_measure && self.not_counted.len() >= MAX_NAMES;
        let name = if is_full { OTHER_NAMES } else { name };
        *self.not_counted.entry(name.to_owned()).or_default() += 1;
    }

    /// Returns the notes of the values that are in no figure.
    pub(crate) fn take_not_counted(&mut self) -> impl Iterator<Item = ScriptNote> + use<> {
        let all = std::mem::take(&mut self.not_counted).into_iter();
        all.map(|(name, values)| ScriptNote::NotCounted {
            name: shortened(&name),
            values,
        })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_notes_are_bounded() {
        let mut notes = ScriptNotes::default();
        assert_eq!(notes.failed("a"), Some(ScriptNote::Failed("a".to_owned())));
        assert_eq!(notes.failed("b"), None);
        let long = "x".repeat(2 * MAX_TEXT);
        assert_eq!(
            notes.aborted(&long),
            Some(ScriptNote::Aborted(shortened(&long)))
        );
        assert_eq!(notes.aborted("b"), None);
        for round in 0..2 * MAX_NAMES {
            notes.not_counted(&format!("name {round}"), false);
            notes.not_counted("name 0", false);
        }
        let all: Vec<ScriptNote> = notes.take_not_counted().collect();
        let values = all.iter().map(|note| match note {
            ScriptNote::NotCounted { values, .. } => *values,
            _ => 0,
        });
        assert_eq!(values.sum::<u64>(), 4 * MAX_NAMES as u64, "none is lost");
        assert_eq!(all.len(), MAX_NAMES + 1);
    }
}
