//! The system under test: the groupware server as a child process, and what all systems have in
//! common. It knows no load.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_driver::BaseUrl;
use lab_study::{Engine, GroupwareSpec, MailSpec, SystemSpec};
use nix::sys::signal::Signal;

use crate::ConductError;
use crate::attach::{self, Watched};
use crate::child::Child;
use crate::clock::{Stopwatch, pause};
use crate::command;
use crate::http::{ANSWER, Ask, exchange};
use crate::scratch::Scratch;
use crate::trial::Stop;

/// How long a system may take to accept requests.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long it may take to end when asked.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Between two looks at a system that starts.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Lines of its output that a failure shows.
const LAST_LINES: usize = 20;
/// Output that is read for them.
const LAST_BYTES: u64 = 16 << 10;
/// Beginning of the environment variables that would change the child's flags.
const OWN_ENVIRONMENT: &str = "PLIMSOLL_";

/// How a system is started.
#[derive(Debug)]
pub(crate) struct SystemStart<'a> {
    /// The `plimsoll` binary.
    pub(crate) program: &'a Path,
    pub(crate) spec: &'a SystemSpec,
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
    pub(crate) token: Option<String>,
    pub(crate) output: PathBuf,
}

/// Whose process it is.
#[derive(Debug)]
pub(crate) enum Process {
    /// One that the trial started.
    Own { child: Child, end: End },
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
    /// Starts it and waits until it accepts requests.
    pub(crate) fn start(&self, interrupt: &AtomicBool) -> Result<System, Stop> {
        match self.spec {
            SystemSpec::Groupware(spec) => self.groupware(spec, interrupt),
            SystemSpec::Command(spec) => command::start(self, spec, interrupt),
            SystemSpec::Attach(spec) => attach::start(self, spec, interrupt),
            _ => {
                let problem = "this version can't start such a system".to_owned();
                Err(Stop::Fatal(ConductError::Unsupported(problem)))
            }
        }
    }

    fn groupware(&self, spec: &GroupwareSpec, interrupt: &AtomicBool) -> Result<System, Stop> {
        let token = random_token().map_err(|e| self.scratch_error(e))?;
        let token_file = self.scratch.file("admin-token");
        write_secret(&token_file, &token).map_err(|e| self.scratch_error(e))?;
        let port_file = self.scratch.file("port");
        let output = File::create(&self.output).map_err(|e| self.scratch_error(e))?;
        let errors = output.try_clone().map_err(|e| self.scratch_error(e))?;
        let mut command = Command::new(self.program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(self.scratch.data())
            .arg("--port-file")
            .arg(&port_file)
            .arg("--admin-token-file")
            .arg(&token_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .args(flags(spec))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        without_own_environment(&mut command);
        let child = Child::start(command, self.cores).map_err(|source| {
            Stop::Fatal(ConductError::Program {
                path: self.program.to_path_buf(),
                source,
            })
        })?;
        let starting = Starting {
            child,
            output: self.output.clone(),
            deadline: START_DEADLINE,
            end: End {
                signal: Signal::SIGTERM,
                grace: STOP_GRACE,
            },
            token: Some(token),
        };
        starting.wait(interrupt, || ready(&port_file, interrupt))
    }

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
    pub(crate) token: Option<String>,
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
                        child: self.child,
                        end: self.end,
                    },
                    base: BaseUrl {
                        secure: false,
                        host: address.ip().to_string(),
                        port: address.port(),
                    },
                    address,
                    token: self.token,
                    output: self.output,
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

/// The groupware's address, once it is written and answers.
fn ready(port_file: &Path, interrupt: &AtomicBool) -> Option<SocketAddr> {
    let address: SocketAddr = fs::read_to_string(port_file).ok()?.trim().parse().ok()?;
    let ask = Ask {
        method: "GET",
        path: "/healthz",
        token: None,
        body: &[],
        within: ANSWER,
    };
    let answer = exchange(address, &ask, interrupt).ok()?;
    (answer.status == 200).then_some(address)
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

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its users send their requests.
    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// What the admin API asks for, where there is one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// An error with its last lines, if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Stop> {
        match &mut self.process {
            Process::Own { child, .. } => match ended(child) {
                Some(end) => Err(failure(
                    &format!("the system {end} during the trial"),
                    &self.output,
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

/// The flags of a setting.
fn flags(spec: &GroupwareSpec) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(threads) = spec.http_threads {
        flags.extend(["--http-threads".to_owned(), threads.to_string()]);
    }
    if spec.engine == Engine::Memory {
        flags.extend(["--engine".to_owned(), "memory".to_owned()]);
    }
    if spec.mailbox_pad_bytes > 0 {
        flags.extend([
            "--mailbox-pad".to_owned(),
            spec.mailbox_pad_bytes.to_string(),
        ]);
    }
    if let Some(layout) = spec.lookup_layout {
        flags.extend(["--lookup-layout".to_owned(), layout.name().to_owned()]);
    }
    flags
}

/// The settings for the archive's reader.
pub(crate) fn settings(spec: &SystemSpec) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    if let SystemSpec::Groupware(spec) = spec {
        set("system", "groupware".to_owned());
        let threads = spec
            .http_threads
            .map_or("one per core, no bound".to_owned(), |n| n.to_string());
        set("http_threads", threads);
        let engine = if spec.engine == Engine::Memory {
            "memory"
        } else {
            "sqlite"
        };
        set("engine", engine.to_owned());
        set("mailbox_pad_bytes", spec.mailbox_pad_bytes.to_string());
        if let Some(mail) = spec.mail {
            set("mail_messages", mail.messages.to_string());
            if let Some(bytes) = mail.message_bytes {
                set("mail_message_bytes", bytes.to_string());
            }
        }
    }
    if let SystemSpec::Command(spec) = spec {
        set("system", "command".to_owned());
        set("start", spec.start.join(" "));
        for (name, value) in &spec.env {
            set(&format!("env {name}"), value.clone());
        }
    }
    if let SystemSpec::Attach(spec) = spec {
        set("system", "attached".to_owned());
        set("url", spec.url.clone());
        set("cpus", "not pinned: attached".to_owned());
        if let Some(pid) = spec.pid {
            set("pid", pid.to_string());
        }
    }
    settings
}

/// Whether the lab did not start it.
pub(crate) fn is_attached(spec: &SystemSpec) -> bool {
    matches!(spec, SystemSpec::Attach(_))
}

/// The address of the exporter of its machine, where it has one.
pub(crate) fn exporter(spec: &SystemSpec) -> Option<&str> {
    match spec {
        SystemSpec::Attach(spec) => spec.node_exporter.as_deref(),
        _ => None,
    }
}

/// The bound on requests worked on at once, where the study sets one.
pub(crate) fn http_threads(spec: &SystemSpec) -> Option<u32> {
    match spec {
        SystemSpec::Groupware(spec) => spec.http_threads,
        _ => None,
    }
}

/// Whether it is the groupware server that comes with the lab.
pub(crate) fn is_groupware(spec: &SystemSpec) -> bool {
    matches!(spec, SystemSpec::Groupware(_))
}

/// What each mailbox is filled with.
pub(crate) fn mail(spec: &SystemSpec) -> Option<MailSpec> {
    match spec {
        SystemSpec::Groupware(spec) => spec.mail,
        _ => None,
    }
}

/// Bytes by which each mailbox is padded.
pub(crate) fn mailbox_pad_bytes(spec: &SystemSpec) -> u64 {
    match spec {
        SystemSpec::Groupware(spec) => spec.mailbox_pad_bytes,
        _ => 0,
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

/// 128 random bits in hex.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags() {
        let plain = GroupwareSpec::default();
        assert_eq!(flags(&plain), [] as [String; 0]);
        let mut spec = plain;
        spec.http_threads = Some(80);
        spec.engine = Engine::Memory;
        spec.mailbox_pad_bytes = 5;
        let expected = [
            "--http-threads",
            "80",
            "--engine",
            "memory",
            "--mailbox-pad",
            "5",
        ];
        assert_eq!(flags(&spec), expected);
    }

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

    #[test]
    fn tokens_are_random_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let (a, b) = (random_token().unwrap(), random_token().unwrap());
        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        write_secret(&path, &a).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
