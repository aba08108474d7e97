//! What a program of a trial is started with, and how it is told that one failed. It starts nothing.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab_client::BaseUrl;
use lab_study::{Preparation, StopSignal};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::child::Child;
use crate::error::{Failed, MachineError};

/// Between two looks at a system that starts.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Lines of its output that a failure shows.
const LAST_LINES: usize = 20;
/// Output that is read for them.
const LAST_BYTES: u64 = 16 << 10;
/// Where programs log that don't print: what syslog writes (rsyslog's and syslog-ng's defaults).
const SYSTEM_LOGS: [&str; 5] = [
    "/var/log/syslog",
    "/var/log/messages",
    "/var/log/daemon.log",
    "/var/log/mail.log",
    "/var/log/mail.err",
];
/// Beginning of the environment variables that would change the child's flags.
const OWN_ENVIRONMENT: &str = "PLIMSOLL_";

/// What programs of a trial are started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// The `plimsoll` binary.
    pub program: PathBuf,
    /// Whether the system speaks TLS.
    pub secure: bool,
    /// Where its users reach it: loopback, where they are on its machine.
    pub address: IpAddr,
    /// Whether they reach it by no other address, even if it says one.
    pub only_there: bool,
    /// Cores that it is on.
    pub cores: Vec<u32>,
    /// The folder of the trial, a whole path, with `data` in it.
    pub folder: PathBuf,
    /// The file that all output goes to.
    pub output: PathBuf,
}

impl Start {
    /// Where the system keeps its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A file beside the data.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn scratch_error(&self, source: io::Error) -> Failed {
        Failed::Fatal(MachineError::Scratch {
            path: self.folder.clone(),
            source,
        })
    }
}

/// What programs beside a system are started with, and what requests to it may name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// What prepares it, with what the trial filled in.
    pub preparation: Preparation,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// The folder that it started in.
    pub folder: PathBuf,
    /// The folder of its data.
    pub scratch: String,
    /// A random text, new in each trial.
    pub secret: String,
    /// The port that users come to; 0 where it is the system's own.
    pub users_port: u16,
    /// Ports of its processes by their names, where these have names.
    pub ports: Vec<(String, u16)>,
}

/// How a system is ended.
#[derive(Debug)]
pub(crate) struct End {
    /// What it is asked with.
    pub(crate) signal: Signal,
    /// How long it may take.
    pub(crate) grace: Duration,
}

/// A server of this machine, by its address.
#[must_use]
pub fn local(address: SocketAddr, secure: bool) -> BaseUrl {
    BaseUrl {
        http: true,
        secure,
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// What a program is asked to end with.
pub(crate) fn signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Int => Signal::SIGINT,
        StopSignal::Quit => Signal::SIGQUIT,
        StopSignal::Hup => Signal::SIGHUP,
    }
}

/// Without what would change the flags of a `plimsoll` that it starts.
pub(crate) fn without_own_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(OWN_ENVIRONMENT) {
            command.env_remove(name);
        }
    }
}

/// How the child ended, if it did: “ended with exit status: 1”.
pub(crate) fn ended(child: &mut Child) -> Option<String> {
    match child.ended() {
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => None,
        Err(e) => Some(format!("can't be watched ({e})")),
    }
}

/// What failed, with the last lines of its output. A program without any may have written to a log of the
/// machine.
pub(crate) fn told(what: &str, output: &Path) -> String {
    let lines = last_lines(output).unwrap_or_default();
    if !lines.is_empty() {
        return format!("{what}; its last lines:\n{lines}");
    }
    let logs = SYSTEM_LOGS.map(Path::new);
    let written = written_since(&logs, output).unwrap_or_default();
    match written.is_empty() {
        true => format!("{what}; it printed nothing"),
        false => format!(
            "{what}; it printed nothing, but this was written to meanwhile: {}",
            written.join(", ")
        ),
    }
}

/// The logs that were written to after the file of the output was made.
fn written_since(logs: &[&Path], output: &Path) -> io::Result<Vec<String>> {
    let began = output.metadata()?.created()?;
    let is_newer = |log: &&&Path| {
        let modified = log.metadata().and_then(|log| log.modified());
        modified.is_ok_and(|modified| modified >= began)
    };
    let newer = logs.iter().filter(is_newer);
    Ok(newer.map(|log| log.display().to_string()).collect())
}

/// A failure of the system with the last lines of its output.
pub(crate) fn failure(what: &str, output: &Path) -> Failed {
    Failed::System(told(what, output))
}

fn last_lines(output: &Path) -> io::Result<String> {
    let mut file = File::open(output)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_last_lines_are_the_last_twenty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        fs::write(&path, text).unwrap();
        let message = told("it failed", &path);
        assert!(
            message.starts_with("it failed; its last lines:\nline 4980\n"),
            "{message}"
        );
        assert!(message.ends_with("line 4999"));
        fs::write(&path, "").unwrap();
        let message = told("it failed", &path);
        assert!(
            message.starts_with("it failed; it printed nothing"),
            "{message}"
        );
        let log = dir.path().join("syslog");
        fs::write(&log, "a line").unwrap();
        let logs = [log.as_path(), Path::new("/no/such/log")];
        let written = written_since(&logs, &path).unwrap();
        assert_eq!(written, [log.display().to_string()]);
    }
}
