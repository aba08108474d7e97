//! Runs programs of a trial besides its system, to their end.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_host::clock::{Stopwatch, pause};
use lab_host::held::Held;
use nix::sys::signal::Signal;

use crate::child::Child;
use crate::error::{Failed, MachineError};
use crate::output::Output;
use crate::start::{self, LOOK, Start};

/// Name of a preparation command in messages.
pub const PREPARES: &str = "command of the preparation";
/// Longest run time of a reset, and of each preparation command.
pub(crate) const RESET_DEADLINE: Duration = Duration::from_secs(300);
/// Longest wait for an interrupted reset to end.
const RESET_GRACE: Duration = Duration::from_secs(1);

/// The environment that programs of a trial start in.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a> {
    /// The system's cores and output.
    pub start: &'a Start,
    /// Their environment variables, besides those of this process.
    pub env: &'a [(String, String)],
    /// Their working folder.
    pub folder: &'a Path,
}

impl Runner<'_> {
    /// Runs a program to its end; does nothing if `argv` is empty. `what` is its name in messages.
    ///
    /// # Errors
    /// When it can't be started, fails, or exceeds its deadline; when `interrupt` becomes true.
    pub fn run(&self, what: &str, argv: &[String], interrupt: &AtomicBool) -> Result<(), Failed> {
        match argv.is_empty() {
            true => Ok(()),
            false => self.run_child(what, argv, None, interrupt).map(drop),
        }
    }

    /// Like [`Self::run`], and returns the processes it leaves running, if any: they end with the value.
    pub(crate) fn run_held(
        &self,
        what: &str,
        argv: &[String],
        interrupt: &AtomicBool,
    ) -> Result<Option<Child>, Failed> {
        if argv.is_empty() {
            return Ok(None);
        }
        let held = Some(Held::without_orphans());
        let child = self.run_child(what, argv, held, interrupt)?;
        Ok(child.has_left_any().then_some(child))
    }

    fn run_child(
        &self,
        what: &str,
        argv: &[String],
        held: Option<Held>,
        interrupt: &AtomicBool,
    ) -> Result<Child, Failed> {
        let mut child = self.child(argv, what, held)?;
        let output = &self.start.output;
        let mut bounded = Output::new(output.clone());
        let began = Stopwatch::start();
        let failure = loop {
            bounded.thin();
            match child.own_end() {
                Ok(Some(status)) if status.success() => return Ok(child),
                Ok(Some(status)) => break format!("the {what} ended with {status}"),
                Ok(None) => {}
                Err(e) => break format!("the {what} can't be watched ({e})"),
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Failed::Interrupted);
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

    /// Starts a program; `held` holds all its descendants.
    pub(crate) fn child(
        &self,
        argv: &[String],
        what: &str,
        held: Option<Held>,
    ) -> Result<Child, Failed> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(Failed::System(format!("the {what} names no program")));
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
        let cores = &self.start.cores;
        let started = match held {
            Some(held) => Child::hold(command, cores, held),
            None => Child::start(command, cores),
        };
        started.map_err(|error| {
            if Path::new(program) == self.start.program.as_path() {
                let path = self.start.program.clone();
                return Failed::Fatal(MachineError::Program {
                    path,
                    source: error,
                });
            }
            let folder = self.folder.display();
            let said = format!("the {what} can't be started: {program} in {folder}: {error}");
            Failed::System(said)
        })
    }
}
