//! The processes of one system: each starts when the one before is ready, and all are watched until one of them ends or
//! all are stopped. It is a program of its own (`plimsoll together`), so that a system of several processes is one
//! process to the conductor. It knows no load.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_host::clock::{Stopwatch, pause};
use lab_host::cores;
use lab_study::{Ready, StopSignal};
use serde::{Deserialize, Serialize};

use crate::child::Child;
use crate::output::Output;
use crate::readiness::Readiness;
use crate::start::{self, LOOK};

/// The last line of the output when all processes are ready.
pub(crate) const ALL_READY: &str = "all processes of the system are ready";
/// Interval between checks that all still run.
const WATCH: Duration = Duration::from_millis(100);

/// The processes of a system, in their order; users connect to the last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Together {
    pub(crate) processes: Vec<Part>,
}

/// One process, with all values filled in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) start: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) secure: bool,
    pub(crate) ready: Ready,
    pub(crate) within_ms: u64,
    pub(crate) signal: StopSignal,
    pub(crate) grace_ms: u64,
}

/// A running process.
struct Running<'a> {
    part: &'a Part,
    child: Child,
    output: Output,
}

/// Starts the processes that `file` names, and watches them until `interrupt` becomes true. Calls `tell` when all are
/// ready.
///
/// # Errors
/// In words, with the last lines of its output: which process did not start, was not ready in time, or ended.
pub fn together(
    file: &Path,
    tell: &mut dyn FnMut(&str),
    interrupt: &AtomicBool,
) -> Result<(), String> {
    let named = |error: io::Error| format!("{}: {error}", file.display());
    let text = fs::read(file).map_err(named)?;
    let together: Together =
        serde_json::from_slice(&text).map_err(|error| named(io::Error::other(error)))?;
    let mut running = Vec::new();
    let result = run(&together.processes, &mut running, tell, interrupt);
    // A process ends before those that it needs.
    for one in running.into_iter().rev() {
        let grace = Duration::from_millis(one.part.grace_ms);
        let _killed = one.child.stop(start::signal(one.part.signal), grace);
    }
    result
}

fn run<'a>(
    parts: &'a [Part],
    running: &mut Vec<Running<'a>>,
    tell: &mut dyn FnMut(&str),
    interrupt: &AtomicBool,
) -> Result<(), String> {
    for part in parts {
        let child = begin(part)?;
        let output = Output::new(part.output.clone());
        running.push(Running {
            part,
            child,
            output,
        });
        if !await_ready(part, running, interrupt)? {
            return Ok(());
        }
    }
    tell(ALL_READY);
    while !interrupt.load(Ordering::Relaxed) {
        all_run(running, "")?;
        pause(WATCH);
    }
    Ok(())
}

fn begin(part: &Part) -> Result<Child, String> {
    let failed = |error: io::Error| {
        let program = part.start.first().map_or("", String::as_str);
        let folder = part.folder.display();
        format!(
            "{} can't be started: {program} in {folder}: {error}",
            part.name
        )
    };
    let output = File::options().append(true).create(true).open(&part.output);
    let output = output.map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let mut words = part.start.iter();
    let program = words.next();
    let program = program.ok_or_else(|| format!("{} names no program", part.name))?;
    let mut command = Command::new(program);
    start::without_own_environment(&mut command);
    command
        .args(words)
        .envs(part.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&part.folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    let cores = cores::allowed().map_err(|error| failed(error.into()))?;
    Child::start(command, &cores).map_err(failed)
}

/// Waits until the process started last is ready; false when interrupted.
fn await_ready(
    part: &Part,
    running: &mut [Running<'_>],
    interrupt: &AtomicBool,
) -> Result<bool, String> {
    let readiness = Readiness::new(&part.ready, part.output.clone(), part.secure)
        .map_err(|why| format!("{}: {why}", part.name))?;
    let began = Stopwatch::start();
    let within = Duration::from_millis(part.within_ms);
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(false);
        }
        all_run(running, " before all were ready")?;
        if readiness.is(part.address, interrupt) {
            return Ok(true);
        }
        if began.elapsed() > within {
            return Err(told(part, &format!("was not ready within {within:?}")));
        }
        pause(LOOK);
    }
}

/// Checks the processes, and bounds the output of each.
fn all_run(running: &mut [Running<'_>], when: &str) -> Result<(), String> {
    for one in running {
        one.output.thin();
        match one.child.ended() {
            Ok(None) => {}
            Ok(Some(status)) => return Err(told(one.part, &format!("ended with {status}{when}"))),
            Err(error) => return Err(format!("{} can't be watched ({error})", one.part.name)),
        }
    }
    Ok(())
}

/// A message about a process, with its last lines.
fn told(part: &Part, what: &str) -> String {
    start::told(&format!("{} {what}", part.name), &part.output)
}
