//! Studies and workloads for scripts in the form of k6: its options as text. It reads no script and runs none.

mod load;
pub mod summary;
mod thresholds;

use std::fmt::Write as _;
use std::time::Duration;

use lab_units::yaml::{comment, short_name, text};
use serde_json::Value;

use lab_import::quick::{Reach, system};
use load::{Scenario, scenarios};

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
    pub reach: Reach,
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

/// Options without a counterpart, each with what to do.
const REFUSED: [(&str, &str); 4] = [
    ("rps", "use a scenario `constant-arrival-rate`"),
    ("ext", "leave it out: there is no cloud"),
    ("blacklistIPs", "leave the requests out of the script"),
    ("blockHostnames", "leave the requests out of the script"),
];

/// Returns the study and the workloads for a script.
///
/// # Errors
/// All options that can't be run.
pub fn files(script: &Script<'_>) -> Result<Made, Vec<Refused>> {
    let mut refused = Vec::new();
    for (name, help) in REFUSED {
        if script.options.get(name).is_some() {
            let message = format!("the option `{name}` has no counterpart here");
            refused.push(script.refused(name, message, help));
        }
    }
    let mut notes = Vec::new();
    let scenarios = scenarios(script, &mut refused);
    let (thresholds, limits) = thresholds::thresholds(script, &scenarios, &mut notes);
    if !refused.is_empty() {
        return Err(refused);
    }
    let mut workloads: Vec<(String, String)> = Vec::new();
    for one in &scenarios {
        let file = one.workload_file(&script.prefix);
        if workloads.iter().all(|(known, _)| *known != file) {
            workloads.push((file, workload(script, one)));
        }
    }
    let mut study = comment(0, &format!("Made by plimsoll from {}.", script.file));
    let _ = writeln!(study, "study: {}", short_name(&script.name, "script"));
    let title = format!("{} at {}", script.file, script.url);
    let _ = writeln!(study, "title: {}", text(&title));
    let first = workloads.first().map_or("", |(file, _)| file.as_str());
    let _ = writeln!(study, "workload: {}", text(&format!("./{first}")));
    study.push_str(&system(&script.url, script.pid, &script.reach));
    study.push_str(&load::load(&scenarios, &script.prefix));
    study.push_str(&thresholds);
    Ok(Made {
        study,
        workloads,
        limits,
        notes,
    })
}

/// Returns the workload of a scenario.
fn workload(script: &Script<'_>, scenario: &Scenario) -> String {
    let mut out = comment(0, &format!("Made by plimsoll from {}.", script.file));
    let name = format!("{}-{}", script.name, scenario.function);
    let name = match scenario.function.as_str() {
        "default" => script.name.clone(),
        _ => name,
    };
    let _ = writeln!(out, "workload: {}", short_name(&name, "script"));
    let _ = writeln!(
        out,
        "session: {{ script: {}, function: {} }}",
        text(&script.file),
        text(&scenario.function)
    );
    out
}

impl Script<'_> {
    /// Returns a refusal of an option, with the line where its name stands.
    fn refused(&self, name: &str, message: String, help: &str) -> Refused {
        let mut lines = self.text.lines();
        let line = lines.position(|line| line.contains(name));
        Refused {
            line: line.map(|at| at + 1),
            message,
            help: help.to_owned(),
        }
    }
}
