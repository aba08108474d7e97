//! A program of any kind as the system under test: its files, its reset, its start, its readiness.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_client::{Tls, TlsOptions};
use lab_host::clock::{Stopwatch, pause};
use lab_host::held::Held;
use lab_study::{CommandSpec, FilledIn, Ready, StopSignal};
use nix::sys::signal::Signal;
use regex::Regex;

use crate::ConductError;
use crate::child::Child;
use crate::http::{Ask, Client};
use crate::start::{self, End, LOOK, Setting, Starting, Stop, System, SystemStart};

/// How long a reset may take.
const RESET_DEADLINE: Duration = Duration::from_secs(300);
/// How long a reset may take to end when it is given up.
const RESET_GRACE: Duration = Duration::from_secs(1);
/// Output in which a line of readiness is looked for.
const READY_BYTES: u64 = 4 << 20;
/// Longest wait for one connection while it starts.
const CONNECT: Duration = Duration::from_secs(1);

/// What programs of a trial are started with.
pub(crate) struct Runner<'a> {
    pub(crate) start: &'a SystemStart<'a>,
    pub(crate) env: &'a [(String, String)],
    pub(crate) folder: &'a Path,
}

/// A command about to start in a trial.
struct Starter<'a> {
    start: &'a SystemStart<'a>,
    /// With port and scratch folder filled in.
    spec: CommandSpec,
    folder: PathBuf,
    address: SocketAddr,
    /// Where it writes its address, if it chooses that itself.
    port_file: Option<PathBuf>,
    filled: FilledIn,
}

/// Makes the files, runs the reset, starts the program, and waits until it is ready.
pub(crate) fn start(
    start: &SystemStart<'_>,
    spec: &CommandSpec,
    interrupt: &AtomicBool,
) -> Result<System, Stop> {
    let port = match spec.port {
        _ if spec.writes_port() => 0,
        Some(port) => port,
        None => free_port().map_err(|e| start.scratch_error(e))?,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if port > 0 && TcpStream::connect_timeout(&address, CONNECT).is_ok() {
        let what = format!("another program listens on port {port} already");
        return Err(Stop::System(what));
    }
    let users_port = spec.has_users_port().then(free_port).unwrap_or(Ok(0));
    let filled = users_port.and_then(|users_port| filled_in(start, port, users_port));
    let filled = filled.map_err(|e| start.scratch_error(e))?;
    let port_file = spec.writes_port().then(|| filled.port_file.clone().into());
    let spec = spec.filled(&filled);
    let scratch = PathBuf::from(&filled.scratch);
    let folder = spec
        .folder
        .as_ref()
        .map_or(scratch.clone(), |folder| scratch.join(folder));
    for (name, text) in &spec.files {
        make_file(&scratch.join(name), text).map_err(|e| start.scratch_error(e))?;
    }
    File::create(&start.output).map_err(|e| start.scratch_error(e))?;
    let starter = Starter {
        start,
        spec,
        folder,
        address,
        port_file,
        filled,
    };
    let runner = starter.runner();
    runner.run("reset command", &starter.spec.reset, interrupt)?;
    starter.run(interrupt)
}

/// The texts of a trial; the secret is on disk for its owner only.
fn filled_in(start: &SystemStart<'_>, port: u16, users_port: u16) -> io::Result<FilledIn> {
    let text = |path: PathBuf| {
        let path = std::path::absolute(path)?;
        path.into_os_string()
            .into_string()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8"))
    };
    let filled = FilledIn {
        port,
        users_port,
        scratch: text(start.scratch.data())?,
        secret: random_secret()?,
        secret_file: text(start.scratch.file("secret"))?,
        port_file: text(start.scratch.file("port"))?,
        program: start.program.display().to_string(),
    };
    write_secret(filled.secret_file.as_ref(), &filled.secret)?;
    Ok(filled)
}

impl Runner<'_> {
    /// Runs a program to its end; none where there is no text.
    pub(crate) fn run(
        &self,
        what: &str,
        argv: &[String],
        interrupt: &AtomicBool,
    ) -> Result<(), Stop> {
        if argv.is_empty() {
            return Ok(());
        }
        let mut child = self.child(argv, what, None)?;
        let output = &self.start.output;
        let began = Stopwatch::start();
        let failure = loop {
            match child.ended() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => break format!("the {what} ended with {status}"),
                Ok(None) => {}
                Err(e) => break format!("the {what} can't be watched ({e})"),
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            if began.elapsed() > RESET_DEADLINE {
                let seconds = RESET_DEADLINE.as_secs();
                break format!("the {what} did not end within {seconds} s");
            }
            pause(LOOK);
        };
        let _ = child.stop(Signal::SIGTERM, RESET_GRACE);
        Err(start::failure(&failure, output))
    }

    /// Starts a program; `held` keeps all together that it starts.
    fn child(&self, argv: &[String], what: &str, held: Option<Held>) -> Result<Child, Stop> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(Stop::System(format!("the {what} names no program")));
        };
        let open = || OpenOptions::new().append(true).open(&self.start.output);
        let (output, errors) = open()
            .and_then(|output| Ok((output, open()?)))
            .map_err(|e| self.start.scratch_error(e))?;
        let mut command = Command::new(program);
        start::without_own_environment(&mut command);
        command
            .args(arguments)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let cores = self.start.cores;
        let started = match held {
            Some(held) => Child::hold(command, cores, held),
            None => Child::start(command, cores),
        };
        started.map_err(|error| {
            if Path::new(program) == self.start.program {
                let path = self.start.program.to_path_buf();
                return Stop::Fatal(ConductError::Program {
                    path,
                    source: error,
                });
            }
            let folder = self.folder.display();
            let said = format!("the {what} can't be started: {program} in {folder}: {error}");
            Stop::System(said)
        })
    }
}

impl Starter<'_> {
    fn runner(&self) -> Runner<'_> {
        Runner {
            start: self.start,
            env: &self.spec.env,
            folder: &self.folder,
        }
    }

    fn run(&self, interrupt: &AtomicBool) -> Result<System, Stop> {
        let held = Some(Held::new(true));
        let child = self.runner().child(&self.spec.start, "system", held)?;
        let expression = match &self.spec.ready {
            Ready::Log(expression) => Some(
                Regex::new(expression)
                    .map_err(|e| Stop::System(format!("its readiness can't be told: {e}")))?,
            ),
            Ready::Port | Ready::Http { .. } => None,
        };
        let starting = Starting {
            child,
            output: self.start.output.clone(),
            deadline: Duration::from_millis(self.spec.ready_within_ms),
            end: End {
                signal: signal(self.spec.stop_signal),
                grace: Duration::from_millis(self.spec.stop_grace_ms),
            },
            setting: Setting {
                preparation: self.spec.preparation.clone(),
                env: self.spec.env.clone(),
                folder: self.folder.clone(),
                scratch: self.filled.scratch.clone(),
                secret: self.filled.secret.clone(),
                users_port: self.filled.users_port,
            },
            secure: self.start.reach.secure,
        };
        starting.wait(interrupt, || {
            let address = self.address()?;
            let ready = match (&self.spec.ready, &expression) {
                (Ready::Http { path, status }, _) => {
                    let client = self.client(address);
                    answers(client, path, status, interrupt)
                }
                (_, Some(expression)) => self.said(expression),
                _ => TcpStream::connect_timeout(&address, CONNECT).is_ok(),
            };
            ready.then_some(address)
        })
    }

    /// One that asks whether it is ready; whose certificate it shows is the users' business.
    fn client(&self, address: SocketAddr) -> Client {
        let base = start::local(address, self.start.reach.secure);
        let any = TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        };
        Client::new(base, address, Tls::new(any))
    }

    /// Where it listens, once that is known.
    fn address(&self) -> Option<SocketAddr> {
        let Some(file) = &self.port_file else {
            return Some(self.address);
        };
        let text = fs::read_to_string(file).ok()?;
        let text = text.trim();
        let port = || text.parse().ok().map(|port| (Ipv4Addr::LOCALHOST, port));
        text.parse().ok().or_else(|| port().map(SocketAddr::from))
    }

    fn said(&self, expression: &Regex) -> bool {
        let read = || {
            let mut bytes = Vec::new();
            let output = File::open(&self.start.output)?;
            output.take(READY_BYTES).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        read().is_ok_and(|bytes| expression.is_match(&String::from_utf8_lossy(&bytes)))
    }
}

fn answers(
    mut client: Client,
    path: &str,
    status: &std::ops::RangeInclusive<u16>,
    interrupt: &AtomicBool,
) -> bool {
    let asked = client.exchange(&Ask::get(path, CONNECT), interrupt);
    asked.is_ok_and(|answer| status.contains(&answer.status))
}

/// 128 random bits in hex.
fn random_secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
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

/// A port that is free at this moment.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// One that begins as a script does can be started.
fn make_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(mode)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn signal(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::SIGTERM,
        StopSignal::Int => Signal::SIGINT,
        StopSignal::Quit => Signal::SIGQUIT,
        StopSignal::Hup => Signal::SIGHUP,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_random_and_private() {
        let (a, b) = (random_secret().unwrap(), random_secret().unwrap());
        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_secret(&path, &a).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
