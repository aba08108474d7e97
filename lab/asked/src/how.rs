//! How the answers of one ask are read.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_filters::JsonPath;
use serde::{Deserialize, Serialize};

use crate::glob::matches_any;

/// The interval at which counters are read, unless the hold is short or very long.
const EVERY: Duration = Duration::from_secs(10);
/// The minimum number of answers in a hold, unless their interval would be shorter than [`SHORTEST`].
const LEAST_ANSWERS: u32 = 6;
/// The shortest time between two answers of counters.
const SHORTEST: Duration = Duration::from_millis(500);
/// The maximum number of kept answers of an ask; in longer holds, their interval is longer.
const MOST_ANSWERS: u32 = 500;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    /// Rows with a first row of names, separated by commas or tabs.
    Table,
    /// A name and a number on each line.
    Lines,
    /// A JSON document.
    Json,
    /// The text format of Prometheus.
    Prometheus,
}

impl Read {
    /// All forms, by their names in studies.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("table", Self::Table),
        ("lines", Self::Lines),
        ("json", Self::Json),
        ("prometheus", Self::Prometheus),
    ];
}

/// How the answers of an ask are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Their form.
    pub read: Read,
    /// For states: the interval of queries. Each row of an answer counts as the time since the previous answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_ms: Option<u64>,
    /// Patterns of the counters that are kept; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Patterns of columns of a table that are labels although they are numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Units of counters, by patterns of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// Counters of a JSON document by name, with the paths of their numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, JsonPath>,
    /// Whether texts of labels are kept; otherwise a hash replaces them.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub text: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_true(is: &bool) -> bool {
    *is
}

impl How {
    /// Returns the settings for answers of this form, with defaults.
    #[must_use]
    pub fn of(read: Read) -> Self {
        Self {
            read,
            rows_ms: None,
            keep: Vec::new(),
            labels: Vec::new(),
            units: BTreeMap::new(),
            paths: BTreeMap::new(),
            text: true,
        }
    }

    /// Returns the interval of queries during a hold of this length.
    #[must_use]
    pub fn every(&self, hold: Duration) -> Duration {
        match self.rows_ms {
            Some(ms) => Duration::from_millis(ms.max(1)),
            None => kept_every(hold),
        }
    }

    pub(crate) fn keeps(&self, column: &str) -> bool {
        self.keep.is_empty() || matches_any(&self.keep, column)
    }

    /// Returns true if a column of a table is always a label. Ids are numbers that count nothing.
    pub(crate) fn is_label(&self, column: &str) -> bool {
        self.rows_ms.is_some()
            || column.eq_ignore_ascii_case("id")
            || column.to_ascii_lowercase().ends_with("id")
            || matches_any(&self.labels, column)
    }

    /// The unit of a counter, from the study or from its name.
    pub(crate) fn unit(&self, column: &str) -> Option<String> {
        let said = self.units.iter().find(|(pattern, _)| {
            let pattern = std::slice::from_ref(*pattern);
            matches_any(pattern, column)
        });
        match said {
            Some((_, unit)) => Some(unit.clone()),
            None => crate::units::of_name(column).map(str::to_owned),
        }
    }
}

/// Returns the interval of kept answers. Short holds have several, since some begin with a warm-up that counts in no
/// figure.
pub(crate) fn kept_every(hold: Duration) -> Duration {
    let short = (hold / LEAST_ANSWERS).max(SHORTEST);
    EVERY.min(short).max(hold / MOST_ANSWERS)
}
