//! The input (a script and its options) and the output (a study) of the conversion.

use std::time::Duration;

use lab_import::quick::ConnectOptions;
use lab_workload::MetricKind;
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
    /// Its measures: its metrics, all checks (`checks`), and each (`check: …`).
    pub measures: &'a [(String, MetricKind)],
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
    /// Whether one user tries the script: nothing is judged, and nothing is noted about the load.
    pub is_attempt: bool,
}

impl Flags {
    /// Whether they replace the script's scenarios and stages. A number of users alone doesn't.
    pub(crate) fn replace_load(&self) -> bool {
        self.duration.is_some() || self.iterations.is_some()
    }
}

/// The files for a script.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyFiles {
    /// The study.
    pub study: String,
    /// The workloads: file names and texts.
    pub workloads: Vec<(String, String)>,
    /// What differs from k6 in this script's options.
    pub notes: Vec<String>,
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
    /// Returns a refusal of an option, with its line; `keys` are the names of the objects around it and its own.
    pub(crate) fn refused(&self, keys: &[&str], message: String, help: &str) -> Refused {
        Refused {
            line: line_of(self.text, keys),
            message,
            help: help.to_owned(),
        }
    }
}

/// Returns the line of the last key that is found, each after the one before.
fn line_of(text: &str, keys: &[&str]) -> Option<usize> {
    let mut found = None;
    for key in keys {
        let mut later = text.lines().enumerate().skip(found.unwrap_or_default());
        let at = later.find(|(_, line)| has_key(line, key));
        found = at.map(|(at, _)| at).or(found);
    }
    found.map(|at| at + 1)
}

/// Whether a line has a property of this name: `vus: 10`, `'vus': 10`.
fn has_key(line: &str, key: &str) -> bool {
    let is_comment = line.trim_start().starts_with("//");
    !is_comment
        && line.match_indices(key).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let is_whole = before.is_none_or(|c| !c.is_alphanumeric() && !"_$-.".contains(c));
            let after = line[at + key.len()..].trim_start_matches(['\'', '"', '`']);
            is_whole && after.trim_start().starts_with(':')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_option_has_its_name_as_a_key() {
        let text = "import next from 'x';\nconst text = a ? ext : 1;\n// vus: 1\n\
                    export const options = {\n  scenarios: {\n    a: { vus: 1 },\n    'b-2': {\n      \
                    executor: 'x',\n      vus: 2,\n  } },\n  'rps': 1 };";
        for (keys, line) in [
            (&["rps"][..], Some(11)),
            (&["vus"], Some(6)),
            (&["scenarios", "b-2", "vus"], Some(9)),
            (&["scenarios", "b-2", "duration"], Some(7)),
            (&["exec"], None),
        ] {
            assert_eq!(line_of(text, keys), line, "{keys:?}");
        }
    }
}
