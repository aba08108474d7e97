//! The inputs to start a program of a trial, and the message when it fails. It starts nothing.

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

/// Interval between two checks of a starting system.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Last lines of its output in a failure message.
const LAST_LINES: usize = 20;
/// Bytes of output read for them.
const LAST_BYTES: u64 = 16 << 10;
/// Logs of programs that don't print: those that syslog writes (rsyslog's and syslog-ng's defaults).
const SYSTEM_LOGS: [&str; 5] = [
    "/var/log/syslog",
    "/var/log/messages",
    "/var/log/daemon.log",
    "/var/log/mail.log",
    "/var/log/mail.err",
];
/// Prefix of the environment variables that would change the child's flags.
const OWN_ENVIRONMENT: &str = "PLIMSOLL_";

/// Inputs to start programs of a trial.
#[derive(Debug, Clone)]
pub struct Start {
    /// The `plimsoll` binary.
    pub program: PathBuf,
    /// True if the system speaks TLS.
    pub secure: bool,
    /// The address where its users reach it: loopback, if they are on its machine.
    pub address: IpAddr,
    /// True if they reach it at no other address, even if it reports one.
    pub only_there: bool,
    /// Its cores.
    pub cores: Vec<u32>,
    /// The folder of the trial, an absolute path, with `data` in it.
    pub folder: PathBuf,
    /// The file for all output.
    pub output: PathBuf,
}

impl Start {
    /// The folder for the system's data.
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

/// Values for programs besides a system, and for requests to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Its preparation, with the trial's values filled in.
    pub preparation: Preparation,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// Its working folder.
    pub folder: PathBuf,
    /// The folder of its data.
    pub scratch: String,
    /// A random text, new in each trial.
    pub secret: String,
    /// The port for users; 0 if it is the system's own.
    pub users_port: u16,
    /// Ports of its named processes, by name.
    pub ports: Vec<(String, u16)>,
}

/// How to stop a system.
#[derive(Debug)]
pub(crate) struct End {
    /// The signal to send.
    pub(crate) signal: Signal,
    /// Longest wait for its end.
    pub(crate) grace: Duration,
}

/// A server of this machine, by its address.
#[must_use]
pub fn local(address: SocketAddr, secure: bool) -> BaseUrl {
    BaseUrl {
        http: true,
        datagrams: false,
        secure,
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// The Unix signal of a [`StopSignal`].
pub(crate) fn signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Int => Signal::SIGINT,
        StopSignal::Quit => Signal::SIGQUIT,
        StopSignal::Hup => Signal::SIGHUP,
    }
}

/// Removes the variables that would change the flags of a child `plimsoll`.
pub(crate) fn without_own_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(OWN_ENVIRONMENT) {
            command.env_remove(name);
        }
    }
}

/// How the child ended, if it has: “ended with exit status: 1”.
pub(crate) fn ended(child: &mut Child) -> Option<String> {
    match child.ended() {
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => None,
        Err(e) => Some(format!("can't be watched ({e})")),
    }
}

/// A failure message with the last lines of the output. A program without output may have written to a log of the
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

/// The logs written since the file of the output was made.
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
