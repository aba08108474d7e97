//! A program of any kind as the system under test: its files, its reset, its start, its readiness.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_host::clock::{Stopwatch, pause};
use lab_host::held::Held;
use lab_study::{CommandSpec, FilledIn, Ready, StopSignal, as_host};

use crate::child::Child;
use crate::error::Failed;
use crate::machine::Started;
use crate::output::Output;
use crate::readiness::{CONNECT, Readiness};
use crate::runner::Runner;
use crate::start::{self, End, LOOK, Setting, Start};
use crate::together::{ALL_READY, Part, Together};

/// Time that the supervisor of several processes may take in addition.
const MARGIN_MS: u64 = 10_000;
/// Number of free ports to try.
const PORTS_TRIED: usize = 5;

/// A command about to start in a trial.
struct Starter<'a> {
    start: &'a Start,
    /// With port and scratch folder filled in.
    spec: CommandSpec,
    folder: PathBuf,
    address: SocketAddr,
    /// The file for its address, if it chooses the address itself.
    port_file: Option<PathBuf>,
    filled: FilledIn,
    /// The file that lists its processes, if it has several.
    parts: Option<PathBuf>,
}

/// A running system, and how to stop it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) end: End,
}

/// Makes the files, runs the reset, starts the program, and waits until it is ready. Processes that the reset leaves
/// running are added to `beside`.
pub(crate) fn start(
    start: &Start,
    spec: &CommandSpec,
    beside: &mut Vec<Child>,
    interrupt: &AtomicBool,
) -> Result<(Running, Started), Failed> {
    let port = own_port(start, spec)?;
    let address = SocketAddr::from((start.address, port));
    let before = spec.before.iter();
    let before: Vec<(String, u16)> = before
        .map(|(name, spec)| Ok((name.clone(), own_port(start, spec)?)))
        .collect::<Result<_, Failed>>()?;
    let users_port = spec.has_users_port().then(|| free_port(start.address));
    let users_port = users_port.unwrap_or(Ok(0));
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
    beside.extend(runner.run_held("reset command", &starter.spec.reset, interrupt)?);
    starter.run(interrupt)
}

/// A free port for a process to listen on; 0 if it chooses one itself.
fn own_port(start: &Start, spec: &CommandSpec) -> Result<u16, Failed> {
    if spec.writes_port() {
        return Ok(0);
    }
    let is_taken = |port: u16| {
        let address = SocketAddr::from((start.address, port));
        TcpStream::connect_timeout(&address, CONNECT).is_ok()
    };
    let mut port = 0;
    // A port that was free may be taken by now, for example by the other system of a duet.
    for _ in 0..PORTS_TRIED {
        port = match spec.port {
            Some(port) => port,
            None => free_port(start.address).map_err(|e| start.scratch_error(e))?,
        };
        if !is_taken(port) {
            return Ok(port);
        }
        if spec.port.is_some() {
            break;
        }
    }
    let what = format!("another program listens on port {port} already");
    Err(Failed::System(what))
}

fn folder_of(spec: &CommandSpec, scratch: &Path) -> PathBuf {
    let folder = spec.folder.as_ref();
    folder.map_or(scratch.to_path_buf(), |folder| scratch.join(folder))
}

/// Writes the processes of a system that has several to a file for the supervisor.
fn parts(start: &Start, spec: &CommandSpec, filled: &FilledIn) -> io::Result<Option<PathBuf>> {
    if spec.before.is_empty() {
        return Ok(None);
    }
    let part = |(name, spec, port): (&str, &CommandSpec, u16)| Part {
        name: name.to_owned(),
        start: spec.start.clone(),
        env: spec.env.clone(),
        folder: folder_of(spec, filled.scratch.as_ref()),
        output: start.file(&format!("{name}.output")),
        address: SocketAddr::from((start.address, port)),
        secure: false,
        ready: spec.ready.clone(),
        within_ms: spec.ready_within_ms,
        signal: spec.stop_signal,
        grace_ms: spec.stop_grace_ms,
    };
    let before = spec.before.iter().zip(&filled.ports);
    let before = before.map(|((name, spec), (_, port))| (name.as_str(), spec, *port));
    let mut processes: Vec<Part> = before.map(part).collect();
    let own = part((spec.name.as_deref().unwrap_or("main"), spec, filled.port));
    processes.push(Part {
        output: std::path::absolute(&start.output)?,
        secure: start.secure,
        ..own
    });
    let path = start.file("together.json");
    let json = serde_json::to_vec(&Together { processes }).map_err(io::Error::other)?;
    // Their environments may contain secrets.
    let mut file = private_file(&path)?;
    file.write_all(&json)?;
    Ok(Some(path))
}

/// The trial's values for placeholders; the secret's file is readable by its owner only.
fn filled_in(
    start: &Start,
    (port, users_port, ports): (u16, u16, Vec<(String, u16)>),
) -> io::Result<FilledIn> {
    let text = |path: PathBuf| {
        path.into_os_string()
            .into_string()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8"))
    };
    let filled = FilledIn {
        port,
        users_port,
        ports,
        scratch: text(start.data())?,
        secret: random_secret()?,
        secret_file: text(start.file("secret"))?,
        port_file: text(start.file("port"))?,
        program: start.program.display().to_string(),
        address: as_host(start.address),
    };
    write_secret(filled.secret_file.as_ref(), &filled.secret)?;
    Ok(filled)
}

/// How a system is started and stopped.
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

    /// The program to start, its readiness, and its end: the system's own program, or the supervisor of all its
    /// processes.
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
            // The supervisor reports a late process itself, and kills a process that does not end.
            within_ms: all().map(|one| one.ready_within_ms).sum::<u64>() + MARGIN_MS,
            signal: StopSignal::Term,
            grace_ms: all().map(|one| one.stop_grace_ms).sum::<u64>() + MARGIN_MS,
        }
    }

    fn run(&self, interrupt: &AtomicBool) -> Result<(Running, Started), Failed> {
        let launch = self.launch();
        let held = Some(Held::new(true));
        let mut child = self.runner().child(&launch.argv, "system", held)?;
        let (output, secure) = (self.start.output.clone(), self.start.secure);
        let readiness = Readiness::new(&launch.ready, output, secure).map_err(Failed::System)?;
        let within = Duration::from_millis(launch.within_ms);
        let address = self.wait(&mut child, (&readiness, within), interrupt)?;
        let end = End {
            signal: start::signal(launch.signal),
            grace: Duration::from_millis(launch.grace_ms),
        };
        let own = self.spec.name.iter();
        let own = own.map(|name| (name.clone(), address.port()));
        let setting = Setting {
            ports: self.filled.ports.iter().cloned().chain(own).collect(),
            preparation: self.spec.preparation.clone(),
            env: self.spec.env.clone(),
            folder: self.folder.clone(),
            scratch: self.filled.scratch.clone(),
            secret: self.filled.secret.clone(),
            users_port: self.filled.users_port,
        };
        Ok((Running { child, end }, Started { address, setting }))
    }

    /// Waits until it is ready, and returns its address.
    fn wait(
        &self,
        child: &mut Child,
        (readiness, within): (&Readiness, Duration),
        interrupt: &AtomicBool,
    ) -> Result<SocketAddr, Failed> {
        let output = &self.start.output;
        let mut bounded = Output::new(output.clone());
        let began = Stopwatch::start();
        loop {
            bounded.thin();
            if interrupt.load(Ordering::Relaxed) {
                return Err(Failed::Interrupted);
            }
            if let Some(end) = start::ended(child) {
                let what = format!("the system {end} before it was ready");
                return Err(start::failure(&what, output));
            }
            let ready = |address: &SocketAddr| readiness.is(*address, interrupt);
            if let Some(address) = self.address().filter(ready) {
                return Ok(address);
            }
            if began.elapsed() > within {
                let what = format!("the system was not ready within {within:?}");
                return Err(start::failure(&what, output));
            }
            pause(LOOK);
        }
    }

    /// The listening address, once known.
    fn address(&self) -> Option<SocketAddr> {
        let Some(file) = &self.port_file else {
            return Some(self.address);
        };
        let said = said_address(&fs::read_to_string(file).ok()?, self.start.address)?;
        Some(match self.start.only_there {
            true => SocketAddr::new(self.start.address, said.port()),
            false => said,
        })
    }
}

/// Parses the address that a system reports: an address, or a port of this one.
fn said_address(text: &str, address: IpAddr) -> Option<SocketAddr> {
    let text = text.trim();
    let port = || Some(SocketAddr::new(address, text.parse().ok()?));
    text.parse().ok().or_else(port)
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
fn free_port(address: IpAddr) -> io::Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}

/// Makes a file; a file that begins with `#!` is executable.
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

    #[test]
    fn a_system_says_an_address_or_a_port() {
        let address = IpAddr::from([10, 0, 0, 7]);
        let said = |text: &str| said_address(text, address).map(|said| said.to_string());
        assert_eq!(said("8080\n").as_deref(), Some("10.0.0.7:8080"));
        assert_eq!(said("10.9.9.9:80").as_deref(), Some("10.9.9.9:80"));
        assert_eq!(said("soon"), None);
    }
}
