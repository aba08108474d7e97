//! A series of counters: a column, and the labels that distinguish its counters.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most letters of a label's text that are kept.
const MOST_LETTERS: usize = 300;

/// A counter of the system, identified by its column and labels.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Series {
    /// The name of the column or of the metric.
    pub column: String,
    /// The names and texts of the labels, in the order of the response; labels without text are excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
}

impl Series {
    /// A counter without labels.
    #[must_use]
    pub fn of(column: &str) -> Self {
        Self {
            column: column.to_owned(),
            labels: Vec::new(),
        }
    }

    /// The same labels with another column.
    pub(crate) fn sibling(&self, column: &str) -> Self {
        Self {
            column: column.to_owned(),
            labels: self.labels.clone(),
        }
    }
}

/// As Prometheus writes it: `calls{query="select …"}`.
impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.column)?;
        if self.labels.is_empty() {
            return Ok(());
        }
        let labels = self.labels.iter();
        let labels: Vec<String> = labels
            .map(|(name, text)| {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{name}=\"{text}\"")
            })
            .collect();
        write!(f, "{{{}}}", labels.join(","))
    }
}

/// Returns the text of a label as it is kept: one line of printable letters, not too long. `None` for an empty one.
pub(crate) fn label(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut kept = String::new();
    let mut letters = 0;
    for word in words.filter(|word| !word.is_empty()) {
        if letters > 0 {
            kept.push(' ');
            letters += 1;
        }
        for c in word.chars() {
            if letters >= MOST_LETTERS {
                kept.push('…');
                return Some(kept);
            }
            kept.push(c);
            letters += 1;
        }
    }
    (!kept.is_empty()).then_some(kept)
}

/// Returns the replacement of a text that is not kept: the same for the same text.
pub(crate) fn hashed(text: &str) -> String {
    let hash = lab_filters::sha256(text.as_bytes());
    format!("#{}", &hash[..8])
}

/// Returns the start and the end of a long text: a statement ends with its conditions.
pub(crate) fn shortened(text: &str, letters: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= letters {
        return text.to_owned();
    }
    let each = letters.saturating_sub(3) / 2;
    let begin: String = all[..each].iter().collect();
    let end: String = all[all.len() - each..].iter().collect();
    format!("{} … {}", begin.trim_end(), end.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_one_line_of_bounded_length() {
        assert_eq!(
            label("select  1\n\tfrom x").as_deref(),
            Some("select 1 from x")
        );
        assert_eq!(label(" \n"), None);
        let long = label(&"é".repeat(1000)).unwrap();
        assert_eq!(long.chars().count(), MOST_LETTERS + 1);
    }

    #[test]
    fn a_counter_is_written_as_prometheus_does() {
        let mut series = Series::of("calls");
        assert_eq!(series.to_string(), "calls");
        series
            .labels
            .push(("query".to_owned(), "select \"x\"".to_owned()));
        assert_eq!(series.to_string(), "calls{query=\"select \\\"x\\\"\"}");
    }
}
