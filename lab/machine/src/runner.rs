//! Programs of a trial that run beside its system, to their end.

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

/// What a command that prepares a system is called in words.
pub const PREPARES: &str = "command of the preparation";
/// How long a reset may take, and each command that prepares a system.
pub(crate) const RESET_DEADLINE: Duration = Duration::from_secs(300);
/// How long a reset may take to end when it is given up.
const RESET_GRACE: Duration = Duration::from_secs(1);

/// What programs of a trial are started with.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a> {
    /// With the system's cores and output.
    pub start: &'a Start,
    /// Their environment, beside that of this process.
    pub env: &'a [(String, String)],
    /// The folder that they start in.
    pub folder: &'a Path,
}

impl Runner<'_> {
    /// Runs a program to its end; none where there is no text. `what` it is called in words.
    ///
    /// # Errors
    /// When it can't be started, or does not end well, or in time; when `interrupt` becomes true.
    pub fn run(&self, what: &str, argv: &[String], interrupt: &AtomicBool) -> Result<(), Failed> {
        match argv.is_empty() {
            true => Ok(()),
            false => self.run_child(what, argv, None, interrupt).map(drop),
        }
    }

    /// The same, with what it leaves running, if anything: that ends with the value.
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

    /// Starts a program; `held` keeps all together that it starts.
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
