//! An ask in one cell, as a plan keeps it.

use std::time::Duration;

use lab_asked::How;
use serde::{Deserialize, Serialize};

/// The maximum length of a program's name or an address in a description.
const MOST_LETTERS: usize = 30;

/// A query to a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskSpec {
    /// Its name, such as `db.statements`.
    pub name: String,
    /// The source of the answer.
    pub by: By,
    /// How answers are read.
    #[serde(flatten)]
    pub how: How,
}

/// The source of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A program with its arguments, which prints the answer.
    Command(Vec<String>),
    /// An address.
    Http(String),
}

impl AskSpec {
    /// Returns the query with the trial's values filled in, by name.
    #[must_use]
    pub fn filled(&self, with: &[(String, String)]) -> Self {
        let fill = |text: &String| {
            with.iter().fold(text.clone(), |text, (name, value)| {
                text.replace(&filled_in(name), value)
            })
        };
        Self {
            name: self.name.clone(),
            by: match &self.by {
                By::Command(argv) => By::Command(argv.iter().map(fill).collect()),
                By::Http(url) => By::Http(fill(url)),
            },
            how: self.how.clone(),
        }
    }

    /// A line for the reader of a plan: `db.waits: psql every 1 s, states`.
    #[must_use]
    pub fn words(&self, hold: Duration) -> String {
        let by = match &self.by {
            By::Command(argv) => argv.first().map_or("", String::as_str),
            By::Http(url) => url,
        };
        let by: String = by.chars().take(MOST_LETTERS).collect();
        let every = self.how.every(hold).as_secs_f64();
        let kind = match self.how.rows_ms {
            Some(_) => "states",
            None => "counters",
        };
        format!("{}: {by} every {every} s, {kind}", self.name)
    }
}

/// The placeholder in a text until a trial fills in the value.
#[must_use]
pub fn filled_in(name: &str) -> String {
    format!("{{{{ {name} }}}}")
}
