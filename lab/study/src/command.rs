//! A program of any kind as the system under test: as written, and what it comes to in one cell.
//!
//! The port and the scratch folder are known only when a trial starts. Until then they stand in the
//! texts as they were written, `{{ port }}` and `{{ scratch }}`, so that a plan reads like its study.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Cell, Level};
use crate::setting::{CellError, Optional, Setting};
use crate::text_error::TextError;
use crate::units;

/// What a trial fills in, by name.
pub(crate) const FILLED_IN: [&str; 2] = ["port", "scratch"];
const PORT: &str = "{{ port }}";
const SCRATCH: &str = "{{ scratch }}";
/// Longest time for anything a command does beside the load.
const MAX_TIME: Duration = Duration::from_secs(3600);
const DEFAULT_WITHIN: Duration = Duration::from_secs(30);
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// A program as the system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program and its arguments; never empty.
    pub start: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// The folder that it starts in; `None` = the scratch folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Name in the scratch folder, and text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    /// A port that it has of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When it is ready.
    pub ready: Ready,
    /// How long that may take.
    pub ready_within_ms: u64,
    /// A program to run before; empty = none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
    /// What it is asked to end with.
    pub stop_signal: StopSignal,
    /// How long that may take.
    pub stop_grace_ms: u64,
}

/// When a program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// Its port accepts connections.
    Port,
    /// A path answers with one of these statuses.
    Http {
        /// The path.
        path: String,
        /// The statuses.
        status: RangeInclusive<u16>,
    },
    /// Its output matches this regular expression.
    Log(String),
}

/// A signal that asks a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
}

impl CommandSpec {
    /// With the port and the scratch folder of a trial in all texts.
    #[must_use]
    pub fn filled(&self, port: u16, scratch: &str) -> Self {
        let text = |text: &String| {
            text.replace(PORT, &port.to_string())
                .replace(SCRATCH, scratch)
        };
        let pair = |(name, value): &(String, String)| (name.clone(), text(value));
        Self {
            start: self.start.iter().map(text).collect(),
            env: self.env.iter().map(pair).collect(),
            folder: self.folder.as_ref().map(text),
            files: self.files.iter().map(pair).collect(),
            port: Some(port),
            ready: match &self.ready {
                Ready::Port => Ready::Port,
                Ready::Log(expression) => Ready::Log(text(expression)),
                Ready::Http { path, status } => Ready::Http {
                    path: text(path),
                    status: status.clone(),
                },
            },
            ready_within_ms: self.ready_within_ms,
            reset: self.reset.iter().map(text).collect(),
            stop_signal: self.stop_signal,
            stop_grace_ms: self.stop_grace_ms,
        }
    }
}

/// A command, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct CommandTemplate {
    pub(crate) start: Vec<Setting>,
    pub(crate) env: Vec<(String, Setting)>,
    pub(crate) folder: Option<Setting>,
    pub(crate) files: Vec<(String, Setting)>,
    pub(crate) port: Option<Setting>,
    pub(crate) http: Option<Setting>,
    pub(crate) status: Option<Setting>,
    pub(crate) log: Option<Setting>,
    pub(crate) within: Option<Setting>,
    pub(crate) reset: Vec<Setting>,
    pub(crate) signal: Option<Setting>,
    pub(crate) grace: Option<Setting>,
}

impl CommandTemplate {
    pub(crate) fn spec(&self, cell: &Cell) -> Result<CommandSpec, CellError> {
        let mut cell = cell.clone();
        for (name, text) in FILLED_IN.into_iter().zip([PORT, SCRATCH]) {
            cell.insert(name.to_owned(), Level::Text(text.to_owned()));
        }
        let cell = &cell;
        let within = self.within.value(cell, time)?.unwrap_or(DEFAULT_WITHIN);
        let grace = self.grace.value(cell, time)?.unwrap_or(DEFAULT_GRACE);
        let signal = self.signal.value(cell, signal)?;
        let port = self
            .port
            .value(cell, |text| units::whole_number(text, 1..=65_535))?;
        Ok(CommandSpec {
            start: texts(&self.start, cell)?,
            env: pairs(&self.env, cell)?,
            folder: self.folder.value(cell, text)?,
            files: pairs(&self.files, cell)?,
            port: port.map(|port| port as u16),
            ready: self.ready(cell)?,
            ready_within_ms: within.as_millis() as u64,
            reset: texts(&self.reset, cell)?,
            stop_signal: signal.unwrap_or(StopSignal::Term),
            stop_grace_ms: grace.as_millis() as u64,
        })
    }

    fn ready(&self, cell: &Cell) -> Result<Ready, CellError> {
        let status = self.status.value(cell, units::statuses)?;
        if let Some(path) = self.http.value(cell, path)? {
            let status = status.unwrap_or(200..=299);
            return Ok(Ready::Http { path, status });
        }
        let log = self.log.value(cell, expression)?;
        Ok(log.map_or(Ready::Port, Ready::Log))
    }
}

fn texts(settings: &[Setting], cell: &Cell) -> Result<Vec<String>, CellError> {
    settings.iter().map(|s| s.value(cell, text)).collect()
}

fn pairs(settings: &[(String, Setting)], cell: &Cell) -> Result<Vec<(String, String)>, CellError> {
    let pair = |(name, s): &(String, Setting)| Ok((name.clone(), s.value(cell, text)?));
    settings.iter().map(pair).collect()
}

fn text(text: &str) -> Result<String, TextError> {
    match text.find('\0') {
        Some(at) => Err(TextError::new("no program takes a NUL", at..at + 1)),
        None => Ok(text.to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, TextError> {
    units::duration(text, MAX_TIME)
}

fn path(text: &str) -> Result<String, TextError> {
    let odd = |c: char| c.is_control() || c.is_whitespace();
    // The port's own blanks go when it is filled in.
    if text.starts_with('/') && !text.replace(PORT, "").contains(odd) {
        return Ok(text.to_owned());
    }
    let error = TextError::new(format!("`{text}` is no path"), 0..text.len());
    Err(error.help("write `/`, or `/health`"))
}

fn expression(text: &str) -> Result<String, TextError> {
    // Each of a regular expression's lines is a fault of the same text; the last one says which.
    let filled = text.replace(PORT, "1").replace(SCRATCH, "/");
    match regex::Regex::new(&filled) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim();
            let last = last.trim_start_matches("error: ");
            let message = format!("this is no regular expression: {last}");
            Err(TextError::new(message, 0..text.len()))
        }
    }
}

fn signal(text: &str) -> Result<StopSignal, TextError> {
    let name = text.trim().to_ascii_uppercase();
    match name.strip_prefix("SIG").unwrap_or(&name) {
        "TERM" => Ok(StopSignal::Term),
        "INT" => Ok(StopSignal::Int),
        "QUIT" => Ok(StopSignal::Quit),
        "HUP" => Ok(StopSignal::Hup),
        _ => {
            let error = TextError::new(format!("`{text}` asks no program to end"), 0..text.len());
            Err(error.help("the signals are `TERM`, `INT`, `QUIT`, and `HUP`"))
        }
    }
}
