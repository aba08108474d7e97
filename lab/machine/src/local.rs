//! This machine, as the host of a system.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_archive::{StartingState, SystemHost};
use lab_host::held::Held;
use lab_study::{CommandSpec, KernelSetting};
use nix::sys::signal::Signal;

use crate::child::Child;
use crate::command::{self, Running};
use crate::error::Failed;
use crate::machine::{Counted, Counts, Machine, Row, Started};
use crate::output::Output;
use crate::preparing;
use crate::runner::{PREPARES, Runner};
use crate::start::{self, End, Setting, Start};
use crate::state::starting_state;

/// Longest wait for a system to end after the conductor is gone.
const GONE_GRACE: Duration = Duration::from_secs(10);
/// Longest wait for the processes of its preparation to end.
const BESIDE_GRACE: Duration = Duration::from_secs(10);

/// This machine, for one trial: a program of any kind is its system.
#[derive(Debug)]
pub struct Local {
    start: Start,
    spec: CommandSpec,
    running: Option<Running>,
    /// Processes that its preparation left running; the system may need them.
    reset_children: Vec<Child>,
    setting: Setting,
    output: Output,
}

impl Local {
    /// For a trial whose system is this program.
    #[must_use]
    pub fn new(start: Start, spec: CommandSpec) -> Self {
        Self {
            output: Output::new(start.output.clone()),
            start,
            spec,
            running: None,
            reset_children: Vec::new(),
            setting: Setting::default(),
        }
    }

    /// Number of cores that its system is started on.
    pub(crate) fn cores(&self) -> u32 {
        u32::try_from(self.start.cores.len()).unwrap_or(u32::MAX)
    }

    fn held(&self) -> Option<&Held> {
        self.running.as_ref()?.child.held()
    }
}

/// Remaining time for a system to end.
fn left(grace: Duration, gone: &AtomicBool) -> Duration {
    match gone.load(Ordering::Relaxed) {
        true => grace.min(GONE_GRACE),
        false => grace,
    }
}

impl Machine for Local {
    fn knows(&mut self, others: &[(String, SocketAddr)]) {
        self.spec = self.spec.beside(others);
    }

    fn start(&mut self, interrupt: &AtomicBool) -> Result<Started, Failed> {
        let beside = &mut self.reset_children;
        let (running, started) = command::start(&self.start, &self.spec, beside, interrupt)?;
        self.running = Some(running);
        self.setting = started.setting.clone();
        Ok(started)
    }

    fn prepare(&mut self, at: usize, users: &Path, interrupt: &AtomicBool) -> Result<(), Failed> {
        let users = users.to_string_lossy();
        let Some(argv) = preparing::command(&self.setting.preparation, at, &users) else {
            let what = format!("no command prepares the system at place {at}");
            return Err(Failed::System(what));
        };
        let runner = Runner {
            start: &self.start,
            env: &self.setting.env,
            folder: &self.setting.folder,
        };
        let left = runner.run_held(PREPARES, &argv, interrupt)?;
        self.reset_children.extend(left);
        Ok(())
    }

    fn look(&mut self) -> Result<(), Failed> {
        self.output.thin();
        let child = self.running.as_mut().map(|running| &mut running.child);
        match child.and_then(start::ended) {
            Some(end) => Err(start::failure(
                &format!("the system {end} during the trial"),
                &self.start.output,
            )),
            None => Ok(()),
        }
    }

    fn state(&mut self, touched: &[KernelSetting]) -> Result<StartingState, Failed> {
        Ok(starting_state(&self.start.data(), touched.iter()))
    }

    fn count(&mut self, _zero: u64, _every: Duration, _end: Duration) -> Result<Counts, Failed> {
        // The conductor reads the counters of its own machine.
        Ok(Counts::default())
    }

    fn rows(&mut self) -> Vec<Row> {
        Vec::new()
    }

    fn look_around(&mut self) -> Result<(), Failed> {
        Ok(())
    }

    fn looked_around(&mut self) -> Result<Option<SystemHost>, Failed> {
        // The conductor observes its own machine.
        Ok(None)
    }

    fn kernel(&self) -> BTreeMap<String, String> {
        // The run sets them, and has their journal.
        BTreeMap::new()
    }

    fn storage(&self) -> &[(String, String)] {
        // The run owns the trial's folder.
        &[]
    }

    fn counted(&self) -> Option<Counted<'_>> {
        let running = self.running.as_ref()?;
        Some(Counted {
            pid: running.child.id(),
            hold: self.held().map(Held::hold),
        })
    }

    fn processes(&self) -> Vec<u32> {
        let held = self.held().map(Held::members);
        let held = held.into_iter().flatten();
        let held = held.filter_map(|pid| u32::try_from(pid).ok());
        let first = self.running.as_ref().map(|running| running.child.id());
        let beside = self.reset_children.iter().filter_map(Child::held);
        let beside = beside.flat_map(Held::members);
        let all = first.into_iter().chain(held);
        all.chain(beside.filter_map(|pid| u32::try_from(pid).ok()))
            .collect()
    }

    fn keep_on(&self, cores: &[u32]) -> usize {
        self.held().map_or(0, |held| held.keep_on(cores))
    }

    fn stop(&mut self) -> Result<Option<String>, Failed> {
        Ok(self.end(&AtomicBool::new(false)))
    }
}

impl Local {
    /// Stops the system, if one runs, sooner once the conductor is gone, then the processes of its preparation. Returns
    /// a sentence if that failed.
    pub(crate) fn end(&mut self, gone: &AtomicBool) -> Option<String> {
        let running = self.running.take();
        let said = running.and_then(|running| ended(running, gone));
        for child in self.reset_children.drain(..).rev() {
            // A process that ignores the signal is killed.
            let _killed = child.stop_within(Signal::SIGTERM, || left(BESIDE_GRACE, gone));
        }
        said
    }
}

fn ended(Running { child, end }: Running, gone: &AtomicBool) -> Option<String> {
    let End { signal, grace } = end;
    match child
        .stop_within(signal, || left(grace, gone))
        .ok()
        .flatten()
    {
        None => Some(format!(
            "The system did not end within {grace:?} and was killed."
        )),
        // A process without a handler ends by the signal itself.
        Some(status) if status.signal() == Some(signal as i32) => None,
        Some(status) if status.success() => None,
        Some(status) => Some(format!(
            "The system ended with {status} when it was asked to end by {signal}."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_nobody_wants_any_more_has_less_time_to_end() {
        let gone = AtomicBool::new(false);
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(600));
        assert_eq!((left(short, &gone), left(long, &gone)), (short, long));
        gone.store(true, Ordering::Relaxed);
        assert_eq!((left(short, &gone), left(long, &gone)), (short, GONE_GRACE));
    }
}
