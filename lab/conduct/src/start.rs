//! A system that starts, runs, and is stopped, whichever kind it is. It knows no load.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_driver::BaseUrl;
use lab_host::clock::{Stopwatch, pause};
use lab_host::held::Held;
use lab_monitor::Hold;
use lab_study::{Preparation, ReachSpec, StopSignal, SystemSpec};
use nix::sys::signal::Signal;

use crate::ConductError;
use crate::child::Child;
use crate::output::Output;
use crate::reach::Reach;
use crate::scratch::Scratch;
use crate::watched::Watched;

/// Between two looks at a system that starts.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// How long after the end of its hold, or when it is told to end, a driver may take.
pub(crate) const DRIVER_GRACE: Duration = Duration::from_secs(30);
/// Lines of its output that a failure shows.
const LAST_LINES: usize = 20;
/// Output that is read for them.
const LAST_BYTES: u64 = 16 << 10;
/// Beginning of the environment variables that would change the child's flags.
const OWN_ENVIRONMENT: &str = "PLIMSOLL_";

/// Variables of each user that provisioning gave, by index.
pub(crate) type UserExtra = Vec<Vec<(String, String)>>;

/// Why a trial stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The system under test failed; with its last lines.
    System(String),
    /// A generator process failed; with its last words.
    Generator(String),
    /// A generator on another machine was lost.
    Lost(String),
    /// What the study wants a trial ended by came; what, and when.
    Aborted(String),
    /// The user wants it.
    Interrupted,
    /// The run can't go on.
    Fatal(ConductError),
}

impl Stop {
    /// A generator that is to end, and doesn't. It is told to, and left behind: on a machine whose cores are
    /// all taken it may just not get to it, which is no reason to lose the trials that follow.
    pub(crate) fn overdue() -> Self {
        let seconds = DRIVER_GRACE.as_secs();
        Self::Generator(format!(
            "the load generator had not ended {seconds} s after its hold, as one does that gets no CPU time"
        ))
    }
}

impl<E: Into<ConductError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// How a system is started.
#[derive(Debug)]
pub(crate) struct SystemStart<'a> {
    /// The `plimsoll` binary.
    pub(crate) program: &'a Path,
    pub(crate) spec: &'a SystemSpec,
    /// How its users reach it.
    pub(crate) reach: &'a ReachSpec,
    pub(crate) cores: &'a [u32],
    pub(crate) scratch: &'a Scratch,
    /// The file that its output goes to.
    pub(crate) output: PathBuf,
}

/// A running system that accepts requests.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) process: Process,
    pub(crate) base: BaseUrl,
    pub(crate) address: SocketAddr,
    /// The way to it, once it runs.
    pub(crate) reach: Reach,
    /// With what the trial filled in.
    pub(crate) setting: Setting,
    pub(crate) output: Output,
}

/// What programs beside a system are started with, and what requests to it may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    pub(crate) preparation: Preparation,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    pub(crate) scratch: String,
    pub(crate) secret: String,
    /// The port that users come to; 0 where it is the system's own.
    pub(crate) users_port: u16,
}

/// Whose process it is.
#[derive(Debug)]
pub(crate) enum Process {
    /// One that the trial started.
    Own { child: Box<Child>, end: End },
    /// One that ran before and runs on; `None` where the study does not say which.
    Attached(Option<Watched>),
}

/// How a system is ended.
#[derive(Debug)]
pub(crate) struct End {
    /// What it is asked with.
    pub(crate) signal: Signal,
    /// How long it may take.
    pub(crate) grace: Duration,
}

impl SystemStart<'_> {
    pub(crate) fn scratch_error(&self, source: io::Error) -> Stop {
        Stop::Fatal(ConductError::Scratch {
            path: self.scratch.file(""),
            source,
        })
    }
}

/// A system that does not accept requests yet.
pub(crate) struct Starting {
    pub(crate) child: Child,
    pub(crate) output: PathBuf,
    /// How long it may take to be ready.
    pub(crate) deadline: Duration,
    pub(crate) end: End,
    pub(crate) setting: Setting,
    /// Whether it speaks TLS.
    pub(crate) secure: bool,
}

impl Starting {
    /// Waits until `ready` tells the address.
    pub(crate) fn wait(
        mut self,
        interrupt: &AtomicBool,
        ready: impl Fn() -> Option<SocketAddr>,
    ) -> Result<System, Stop> {
        let began = Stopwatch::start();
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            if let Some(end) = ended(&mut self.child) {
                return Err(failure(
                    &format!("the system {end} before it was ready"),
                    &self.output,
                ));
            }
            if let Some(address) = ready() {
                return Ok(System {
                    process: Process::Own {
                        child: Box::new(self.child),
                        end: self.end,
                    },
                    base: local(address, self.secure),
                    address,
                    reach: Reach::default(),
                    setting: self.setting,
                    output: Output::new(self.output),
                });
            }
            if began.elapsed() > self.deadline {
                let what = format!("the system was not ready within {:?}", self.deadline);
                return Err(failure(&what, &self.output));
            }
            pause(LOOK);
        }
    }
}

/// A server of this machine, by its address.
pub(crate) fn local(address: SocketAddr, secure: bool) -> BaseUrl {
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

impl System {
    /// Its first process, where it is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.process {
            Process::Own { child, .. } => Some(child.id()),
            Process::Attached(watched) => watched.map(|watched| watched.pid),
        }
    }

    /// What holds its processes, where the trial started it.
    pub(crate) fn hold(&self) -> Option<&Hold> {
        match &self.process {
            Process::Own { child, .. } => child.held().map(Held::hold),
            Process::Attached(_) => None,
        }
    }

    /// Its first process, and those that it holds.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let held = match &self.process {
            Process::Own { child, .. } => child.held().map(Held::members),
            Process::Attached(_) => None,
        };
        let held = held.into_iter().flatten();
        let held = held.filter_map(|pid| u32::try_from(pid).ok());
        self.pid().into_iter().chain(held).collect()
    }

    /// Puts threads back on the system's cores that left them; how many did.
    pub(crate) fn keep_on(&self, cores: &[u32]) -> usize {
        match &self.process {
            Process::Own { child, .. } => child.held().map_or(0, |held| held.keep_on(cores)),
            Process::Attached(_) => 0,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is prepared.
    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Where its users send their requests.
    pub(crate) fn users_base(&self) -> BaseUrl {
        let (own, http) = (self.base.clone(), false);
        match self.setting.users_port {
            0 => own,
            port => BaseUrl { http, port, ..own },
        }
    }

    /// An error with its last lines, if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Stop> {
        match &mut self.process {
            Process::Own { child, .. } => match ended(child) {
                Some(end) => Err(failure(
                    &format!("the system {end} during the trial"),
                    &self.output.path,
                )),
                None => Ok(()),
            },
            Process::Attached(watched) => match watched.and_then(|watched| watched.ended()) {
                Some(end) => Err(Stop::System(format!("the system {end} during the trial"))),
                None => Ok(()),
            },
        }
    }

    /// Ends it, where the trial started it; a sentence if that did not go well.
    pub(crate) fn stop(self) -> Option<String> {
        let Process::Own { child, end } = self.process else {
            return None;
        };
        let End { signal, grace } = end;
        match child.stop(signal, grace).ok().flatten() {
            None => Some(format!(
                "The system did not end within {grace:?} and was killed."
            )),
            // One that has no handler ends by the signal itself.
            Some(status) if status.signal() == Some(signal as i32) => None,
            Some(status) if status.success() => None,
            Some(status) => Some(format!(
                "The system ended with {status} when it was asked to end by {signal}."
            )),
        }
    }
}

/// How the child ended, if it did: “ended with exit status: 1”.
fn ended(child: &mut Child) -> Option<String> {
    match child.ended() {
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => None,
        Err(e) => Some(format!("can't be watched ({e})")),
    }
}

/// A failure of the system with the last lines of its output.
pub(crate) fn failure(what: &str, output: &Path) -> Stop {
    let lines = last_lines(output).unwrap_or_default();
    if lines.is_empty() {
        return Stop::System(format!("{what}; it printed nothing"));
    }
    Stop::System(format!("{what}; its last lines:\n{lines}"))
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
        let Stop::System(message) = failure("it failed", &path) else {
            panic!()
        };
        assert!(
            message.starts_with("it failed; its last lines:\nline 4980\n"),
            "{message}"
        );
        assert!(message.ends_with("line 4999"));
        fs::write(&path, "").unwrap();
        let Stop::System(message) = failure("it failed", &path) else {
            panic!()
        };
        assert_eq!(message, "it failed; it printed nothing");
    }
}
