//! The counters of one answer, as they are found in it.

use std::collections::HashMap;

use crate::how::How;
use crate::series::{Series, hashed, label};

/// Most counters of an answer.
pub(crate) const MOST_READ: usize = 20_000;
/// Most labels of a counter.
const MOST_LABELS: usize = 16;

/// The counters of one answer, each once, in the order of the answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reading {
    /// Their values; finite numbers.
    pub(crate) values: Vec<(Series, f64)>,
    /// The number of dropped entries, beyond the maximum number of counters.
    pub(crate) left_out: u64,
}

/// Why an answer has no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The answer has another form.
    #[error("its answer is not of the form `read: {form}`: {problem}")]
    Form {
        /// The expected form.
        form: &'static str,
        /// The problem.
        problem: String,
    },
    /// The answer has no counter that is kept.
    #[error("its answer has no counter{}", if *.has_keep { " that `keep` names" } else { "" })]
    Empty {
        /// Whether counters are chosen by name.
        has_keep: bool,
    },
}

impl Unreadable {
    pub(super) fn form(form: &'static str, problem: impl ToString) -> Self {
        Self::Form {
            form,
            problem: problem.to_string(),
        }
    }
}

/// Counters in the order of the answer. Counters with the same labels are added up.
pub(super) struct Found<'h> {
    pub(super) how: &'h How,
    pub(super) reading: Reading,
    places: HashMap<Series, usize>,
}

impl<'h> Found<'h> {
    pub(super) fn new(how: &'h How) -> Self {
        Self {
            how,
            reading: Reading::default(),
            places: HashMap::new(),
        }
    }

    /// Adds a counter that is kept.
    pub(super) fn add(&mut self, column: &str, labels: &[(String, String)], value: f64) {
        if !value.is_finite() || !self.how.keeps(column) {
            return;
        }
        self.add_kept(column, labels, value);
    }

    pub(super) fn add_kept(&mut self, column: &str, labels: &[(String, String)], value: f64) {
        let Some(column) = label(column) else { return };
        let series = Series {
            column,
            labels: labels.to_vec(),
        };
        match self.places.get(&series) {
            Some(place) => self.reading.values[*place].1 += value,
            None if self.places.len() >= MOST_READ => self.reading.left_out += 1,
            None => {
                self.places
                    .insert(series.clone(), self.reading.values.len());
                self.reading.values.push((series, value));
            }
        }
    }

    /// Returns labels as they are kept. `is_text` selects the labels replaced by a hash where texts are off.
    pub(super) fn labels<'t>(
        &self,
        labels: impl Iterator<Item = (&'t str, &'t str, bool)>,
    ) -> Vec<(String, String)> {
        let kept = labels.filter_map(|(name, text, is_text)| {
            let text = label(text)?;
            let text = match self.how.text || !is_text {
                true => text,
                false => hashed(&text),
            };
            Some((label(name)?, text))
        });
        kept.take(MOST_LABELS).collect()
    }
}

/// Parses a number as servers print it. Words that Rust accepts as numbers (`inf`, `nan`) are rejected.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let first = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !first.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}
