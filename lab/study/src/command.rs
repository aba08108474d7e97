//! A program of any kind as the system under test: as written, and resolved in one cell.
//!
//! The port and the scratch folder are known only when a trial starts. Until then the texts keep the
//! placeholders `{{ port }}` and `{{ scratch }}`, so that a plan reads like its study.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use lab_language::host::HostTemplate;
use lab_language::{CellError, Optional, Setting, TextError, machine::argument, units};
use serde::{Deserialize, Serialize};

use crate::model::{Cell, Level};
use crate::preparation::{Preparation, PreparationTemplate};

/// The names that a trial fills in.
pub(crate) const FILLED_IN: [&str; 7] = [
    "port",
    "scratch",
    "secret",
    "secret_file",
    "port_file",
    "plimsoll",
    "address",
];
pub(crate) const PORT: &str = "{{ port }}";
pub(crate) const SCRATCH: &str = "{{ scratch }}";
pub(crate) const SECRET: &str = "{{ secret }}";
pub(crate) const SECRET_FILE: &str = "{{ secret_file }}";
pub(crate) const PORT_FILE: &str = "{{ port_file }}";
/// The port to which a preset directs users, where it differs from the port used for the preparation.
pub(crate) const USERS_PORT: &str = "{{ users_port }}";
/// The suffix of a process name that stands for its port.
pub(crate) const OF_PORT: &str = "_port";
/// The suffix of a process name that stands for the address of its machine.
pub(crate) const OF_ADDRESS: &str = "_address";
/// The program that conducts, which a preset may start.
pub(crate) const PROGRAM: &str = "{{ program }}";
/// The program itself, as studies name it.
const PLIMSOLL: &str = "{{ plimsoll }}";
/// The address at which users reach the system's machine.
pub(crate) const ADDRESS: &str = "{{ address }}";
/// Longest time for any action of a command outside the load.
const MAX_TIME: Duration = Duration::from_secs(3600);
const DEFAULT_WITHIN: Duration = Duration::from_secs(30);
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// A program as the system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The signal that asks it to end.
    pub stop_signal: StopSignal,
    /// How long that may take.
    pub stop_grace_ms: u64,
    /// The preparation before the load.
    #[serde(default, skip_serializing_if = "Preparation::is_empty")]
    pub preparation: Preparation,
    /// The preset that it was built from, where a study names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetUse>,
    /// Its name among the processes of the system, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Processes of the system that are started before it, in their order, by name; each is ready before the
    /// next one starts. They have no processes before them, and nothing is prepared by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<(String, CommandSpec)>,
}

/// A preset, as used by a study.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PresetUse {
    /// Settings for the archive's reader.
    pub settings: BTreeMap<String, String>,
    /// Sentences about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The values that a trial fills in.
#[derive(Debug, Clone, Default)]
pub struct FilledIn {
    /// A free port; 0 for a program that chooses one itself.
    pub port: u16,
    /// Another one, for users.
    pub users_port: u16,
    /// The ports of the processes before it, by name.
    pub ports: Vec<(String, u16)>,
    /// A folder that is fresh for each trial.
    pub scratch: String,
    /// A random text, new in each trial.
    pub secret: String,
    /// A file that holds the secret.
    pub secret_file: String,
    /// The file that a program which chooses its port writes it to.
    pub port_file: String,
    /// The program that conducts.
    pub program: String,
    /// The address at which users reach the machine: 127.0.0.1 if they are on it.
    pub address: String,
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
    /// Returns true if it chooses its port itself, and writes it to a file.
    #[must_use]
    pub fn writes_port(&self) -> bool {
        let names = |text: &String| text.contains(PORT_FILE);
        self.start.iter().any(names)
            || self.env.iter().any(|(_, text)| names(text))
            || self.files.iter().any(|(_, text)| names(text))
    }

    /// Returns true if users connect to a port of their own.
    #[must_use]
    pub fn has_users_port(&self) -> bool {
        self.start.iter().any(|text| text.contains(USERS_PORT))
    }

    /// Returns the command with the trial's values filled in, in all texts.
    #[must_use]
    pub fn filled(&self, with: &FilledIn) -> Self {
        self.with_texts(&|text| {
            let ports = with.ports.iter();
            let text = ports.fold(text.clone(), |text, (name, port)| {
                text.replace(&port_of(name), &port.to_string())
            });
            text.replace(PORT, &with.port.to_string())
                .replace(USERS_PORT, &with.users_port.to_string())
                .replace(SCRATCH, &with.scratch)
                .replace(SECRET, &with.secret)
                .replace(SECRET_FILE, &with.secret_file)
                .replace(PORT_FILE, &with.port_file)
                .replace(PROGRAM, &with.program)
                .replace(PLIMSOLL, &with.program)
                .replace(ADDRESS, &with.address)
        })
    }

    /// Fills in the addresses of processes on other machines, by name, in all texts.
    #[must_use]
    pub fn beside(&self, others: &[(String, SocketAddr)]) -> Self {
        self.with_texts(&|text| {
            others.iter().fold(text.clone(), |text, (name, at)| {
                text.replace(&port_of(name), &at.port().to_string())
                    .replace(&address_of(name), &as_host(at.ip()))
            })
        })
    }

    /// Applies `text` to all texts, also to those of the processes before it.
    fn with_texts(&self, text: &dyn Fn(&String) -> String) -> Self {
        let pair = |(name, value): &(String, String)| (name.clone(), text(value));
        Self {
            start: self.start.iter().map(text).collect(),
            env: self.env.iter().map(pair).collect(),
            folder: self.folder.as_ref().map(text),
            files: self.files.iter().map(pair).collect(),
            port: self.port,
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
            preparation: self.preparation.with_commands(&text),
            preset: self.preset.clone(),
            name: self.name.clone(),
            before: {
                let before = self.before.iter();
                let changed = |(name, spec): &(String, Self)| (name.clone(), spec.with_texts(text));
                before.map(changed).collect()
            },
        }
    }

    /// Returns true if any text of it, or of the processes before it, contains `what`.
    pub(crate) fn names(&self, what: &str) -> bool {
        let seen = RefCell::new(false);
        let _same = self.with_texts(&|text| {
            *seen.borrow_mut() |= text.contains(what);
            text.clone()
        });
        seen.into_inner()
    }
}

/// An address as a host is written before a port.
#[must_use]
pub fn as_host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
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
    pub(crate) preparation: PreparationTemplate,
    /// The machine of one of several processes, and the settings around it.
    pub(crate) host: HostTemplate,
    /// Its name among the processes of the system, where there are several.
    pub(crate) name: Option<String>,
    /// The processes that start before it.
    pub(crate) before: Vec<(String, CommandTemplate)>,
}

impl CommandTemplate {
    pub(crate) fn spec_at(&self, cell: &Cell, port: &str) -> Result<CommandSpec, CellError> {
        let mut cell = cell.clone();
        let texts_of = [
            port,
            SCRATCH,
            SECRET,
            SECRET_FILE,
            PORT_FILE,
            PLIMSOLL,
            ADDRESS,
        ];
        for (name, text) in FILLED_IN.into_iter().zip(texts_of) {
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
            folder: self.folder.value(cell, folder)?,
            files: pairs(&self.files, cell)?,
            port: port.map(|port| port as u16),
            ready: self.ready(cell)?,
            ready_within_ms: within.as_millis() as u64,
            reset: texts(&self.reset, cell)?,
            stop_signal: signal.unwrap_or(StopSignal::Term),
            stop_grace_ms: grace.as_millis() as u64,
            preparation: self.preparation.spec(cell)?,
            preset: None,
            name: None,
            before: Vec::new(),
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

/// Returns the placeholder for the port of a process.
pub(crate) fn port_of(name: &str) -> String {
    format!("{{{{ {name}{OF_PORT} }}}}")
}

/// Returns the placeholder for the address of its machine, if that is another one.
pub(crate) fn address_of(name: &str) -> String {
    format!("{{{{ {name}{OF_ADDRESS} }}}}")
}

fn texts(settings: &[Setting], cell: &Cell) -> Result<Vec<String>, CellError> {
    settings.iter().map(|s| s.value(cell, argument)).collect()
}

fn pairs(settings: &[(String, Setting)], cell: &Cell) -> Result<Vec<(String, String)>, CellError> {
    let pair = |(name, s): &(String, Setting)| Ok((name.clone(), s.value(cell, argument)?));
    settings.iter().map(pair).collect()
}

fn folder(written: &str) -> Result<String, TextError> {
    if written.trim().is_empty() {
        let error = TextError::new("this names no folder", 0..written.len());
        return Err(error.help("leave `folder` out for the trial's scratch folder"));
    }
    argument(written)
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
    // Each line of a regular expression's error is about the same text; the last one names the fault.
    let filled = text
        .replace(PORT, "1")
        .replace(SCRATCH, "/")
        .replace(SECRET, "0");
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
