//! A program of any kind as the system under test: its files, its reset, its start, its readiness.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_host::clock::{Stopwatch, pause};
use lab_host::held::Held;
use lab_study::{CommandSpec, FilledIn, Ready, StopSignal};
use nix::sys::signal::Signal;

use crate::ConductError;
use crate::child::Child;
use crate::readiness::{CONNECT, Readiness};
use crate::start::{self, End, LOOK, Setting, Starting, Stop, System, SystemStart};
use crate::together::{ALL_READY, Part, Together};

/// How long a reset may take.
const RESET_DEADLINE: Duration = Duration::from_secs(300);
/// What who watches several processes may take beside them.
const MARGIN_MS: u64 = 10_000;
/// Free ports that are tried until one still is.
const PORTS_TRIED: usize = 5;
/// How long a reset may take to end when it is given up.
const RESET_GRACE: Duration = Duration::from_secs(1);

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
    /// Where its processes are named, if it has several.
    parts: Option<PathBuf>,
}

/// Makes the files, runs the reset, starts the program, and waits until it is ready.
pub(crate) fn start(
    start: &SystemStart<'_>,
    spec: &CommandSpec,
    interrupt: &AtomicBool,
) -> Result<System, Stop> {
    let port = own_port(start, spec)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let before = spec.before.iter();
    let before: Vec<(String, u16)> = before
        .map(|(name, spec)| Ok((name.clone(), own_port(start, spec)?)))
        .collect::<Result<_, Stop>>()?;
    let users_port = spec.has_users_port().then(free_port).unwrap_or(Ok(0));
    let ports = |users_port| (port, users_port, before);
    let filled = users_port.and_then(|users_port| filled_in(start, ports(users_port)));
    let filled = filled.map_err(|e| start.scratch_error(e))?;
    let port_file = spec.writes_port().then(|| filled.port_file.clone().into());
    let spec = spec.filled(&filled);
    let scratch = PathBuf::from(&filled.scratch);
    let folder = folder_of(&spec, &scratch);
    let all = spec.before.iter().map(|(_, spec)| spec).chain([&spec]);
    for (name, text) in all.flat_map(|spec| &spec.files) {
        make_file(&scratch.join(name), text).map_err(|e| start.scratch_error(e))?;
    }
    File::create(&start.output).map_err(|e| start.scratch_error(e))?;
    let parts = parts(start, &spec, &filled).map_err(|e| start.scratch_error(e))?;
    let starter = Starter {
        start,
        spec,
        folder,
        address,
        port_file,
        filled,
        parts,
    };
    let runner = starter.runner();
    runner.run("reset command", &starter.spec.reset, interrupt)?;
    starter.run(interrupt)
}

/// The port that a process is to listen on, which is free; 0 where it chooses one itself.
fn own_port(start: &SystemStart<'_>, spec: &CommandSpec) -> Result<u16, Stop> {
    if spec.writes_port() {
        return Ok(0);
    }
    let is_taken = |port: u16| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        TcpStream::connect_timeout(&address, CONNECT).is_ok()
    };
    let mut port = 0;
    // What was free a moment ago may be somebody's by now, such as the other system's of a duet.
    for _ in 0..PORTS_TRIED {
        port = match spec.port {
            Some(port) => port,
            None => free_port().map_err(|e| start.scratch_error(e))?,
        };
        if !is_taken(port) {
            return Ok(port);
        }
        if spec.port.is_some() {
            break;
        }
    }
    let what = format!("another program listens on port {port} already");
    Err(Stop::System(what))
}

fn folder_of(spec: &CommandSpec, scratch: &Path) -> PathBuf {
    let folder = spec.folder.as_ref();
    folder.map_or(scratch.to_path_buf(), |folder| scratch.join(folder))
}

/// Writes down the processes of a system that has several, for who starts them.
fn parts(
    start: &SystemStart<'_>,
    spec: &CommandSpec,
    filled: &FilledIn,
) -> io::Result<Option<PathBuf>> {
    if spec.before.is_empty() {
        return Ok(None);
    }
    let part = |(name, spec, port): (&str, &CommandSpec, u16)| -> io::Result<Part> {
        let output = start.scratch.file(&format!("{name}.output"));
        Ok(Part {
            name: name.to_owned(),
            start: spec.start.clone(),
            env: spec.env.clone(),
            folder: folder_of(spec, filled.scratch.as_ref()),
            output: std::path::absolute(output)?,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            secure: false,
            ready: spec.ready.clone(),
            within_ms: spec.ready_within_ms,
            signal: spec.stop_signal,
            grace_ms: spec.stop_grace_ms,
        })
    };
    let before = spec.before.iter().zip(&filled.ports);
    let before = before.map(|((name, spec), (_, port))| (name.as_str(), spec, *port));
    let mut processes = before.map(part).collect::<io::Result<Vec<Part>>>()?;
    let own = part((spec.name.as_deref().unwrap_or("main"), spec, filled.port))?;
    processes.push(Part {
        output: std::path::absolute(&start.output)?,
        secure: start.reach.secure,
        ..own
    });
    let path = start.scratch.file("together.json");
    let json = serde_json::to_vec(&Together { processes }).map_err(io::Error::other)?;
    // Their environments may have secrets in them.
    let mut file = private_file(&path)?;
    file.write_all(&json)?;
    Ok(Some(std::path::absolute(path)?))
}

/// The texts of a trial; the secret is on disk for its owner only.
fn filled_in(
    start: &SystemStart<'_>,
    (port, users_port, ports): (u16, u16, Vec<(String, u16)>),
) -> io::Result<FilledIn> {
    let text = |path: PathBuf| {
        let path = std::path::absolute(path)?;
        path.into_os_string()
            .into_string()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8"))
    };
    let filled = FilledIn {
        port,
        users_port,
        ports,
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

/// How a system is started and ended.
struct Launch {
    argv: Vec<String>,
    ready: Ready,
    within_ms: u64,
    signal: StopSignal,
    grace_ms: u64,
}

impl Starter<'_> {
    fn runner(&self) -> Runner<'_> {
        Runner {
            start: self.start,
            env: &self.spec.env,
            folder: &self.folder,
        }
    }

    /// What is started, and how it is ready and ended: the program, or the one that starts all its processes
    /// and watches them.
    fn launch(&self) -> Launch {
        let spec = &self.spec;
        let Some(parts) = &self.parts else {
            return Launch {
                argv: spec.start.clone(),
                ready: spec.ready.clone(),
                within_ms: spec.ready_within_ms,
                signal: spec.stop_signal,
                grace_ms: spec.stop_grace_ms,
            };
        };
        let all = || spec.before.iter().map(|(_, spec)| spec).chain([spec]);
        let program = self.start.program.display().to_string();
        Launch {
            argv: vec![program, "together".to_owned(), parts.display().to_string()],
            ready: Ready::Log(format!("(?m)^{ALL_READY}$")),
            // It tells by itself who was late, and kills who does not end.
            within_ms: all().map(|one| one.ready_within_ms).sum::<u64>() + MARGIN_MS,
            signal: StopSignal::Term,
            grace_ms: all().map(|one| one.stop_grace_ms).sum::<u64>() + MARGIN_MS,
        }
    }

    fn run(&self, interrupt: &AtomicBool) -> Result<System, Stop> {
        let held = Some(Held::new(true));
        let Launch {
            argv,
            ready,
            within_ms,
            signal,
            grace_ms,
        } = self.launch();
        let child = self.runner().child(&argv, "system", held)?;
        let (output, secure) = (self.start.output.clone(), self.start.reach.secure);
        let readiness = Readiness::new(&ready, output, secure).map_err(Stop::System)?;
        let starting = Starting {
            child,
            output: self.start.output.clone(),
            deadline: Duration::from_millis(within_ms),
            end: End {
                signal: start::signal(signal),
                grace: Duration::from_millis(grace_ms),
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
            readiness.is(address, interrupt).then_some(address)
        })
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
}

/// 128 random bits in hex.
fn random_secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}

fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    writeln!(private_file(path)?, "{secret}")
}

/// A new file that its owner alone may read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
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
