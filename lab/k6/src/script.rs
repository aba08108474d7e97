//! What is known of a script, and what is made of it.

use std::time::Duration;

use lab_import::quick::ConnectOptions;
use serde_json::Value;

/// A script to be run.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    /// The name of the study.
    pub name: String,
    /// The beginning of the names of workload files.
    pub prefix: String,
    /// The file of the script, relative to the study's folder.
    pub file: String,
    /// The text of the script, for the lines of its options.
    pub text: &'a str,
    /// The value of its `options`.
    pub options: &'a Value,
    /// The names of its requests.
    pub steps: &'a [String],
    /// The names of its groups.
    pub groups: &'a [String],
    /// The names of its metrics.
    pub metrics: &'a [String],
    /// The server.
    pub url: String,
    /// The server's process, if it runs here.
    pub pid: Option<u32>,
    /// The connection settings of the server.
    pub reach: ConnectOptions,
    /// The load by flags.
    pub flags: Flags,
}

/// A load by flags, in place of the script's options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// Users.
    pub vus: Option<u32>,
    /// The time at full load.
    pub duration: Option<Duration>,
    /// Sessions of all users together.
    pub iterations: Option<u32>,
}

/// The files for a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The study.
    pub study: String,
    /// The workloads: file names and texts.
    pub workloads: Vec<(String, String)>,
    /// The thresholds of checks and metrics, which no study has.
    pub limits: Vec<Limit>,
    /// What differs from k6 in this script's options.
    pub notes: Vec<String>,
}

/// A threshold of a check or of a metric of the script.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The name of its measure.
    pub measure: String,
    /// The figure: `rate`, `avg`, `p(95)`, `count`.
    pub figure: String,
    /// `<`, `<=`, `>`, `>=`.
    pub operator: String,
    /// The limit.
    pub limit: f64,
    /// As written, with the metric.
    pub text: String,
}

impl Limit {
    /// Returns true if a value meets the limit.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        match self.operator.as_str() {
            "<" => value < self.limit,
            "<=" => value <= self.limit,
            ">" => value > self.limit,
            _ => value >= self.limit,
        }
    }
}

/// An option that can't be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The line of the option in the script, if it was found.
    pub line: Option<usize>,
    /// What can't be run.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Script<'_> {
    /// Returns a refusal of an option, with the line where its name stands.
    pub(crate) fn refused(&self, name: &str, message: String, help: &str) -> Refused {
        let mut lines = self.text.lines();
        let line = lines.position(|line| line.contains(name));
        Refused {
            line: line.map(|at| at + 1),
            message,
            help: help.to_owned(),
        }
    }
}
