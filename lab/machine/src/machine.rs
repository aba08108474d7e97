//! The machine of a system under test, for a trial.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_archive::{StartingState, SystemHost};
use lab_monitor::Hold;
use lab_study::KernelSetting;
use serde::{Deserialize, Serialize};

use crate::error::Failed;
use crate::start::Setting;

/// The machine that runs a trial's system. Dropped, it stops all that was started on it.
pub trait Machine {
    /// Fills in the addresses of the same system's processes on other machines, by name, before it starts.
    fn knows(&mut self, others: &[(String, SocketAddr)]);

    /// Starts the system, and waits until it accepts requests.
    ///
    /// # Errors
    /// When it does not, with its last lines; when `interrupt` becomes true.
    fn start(&mut self, interrupt: &AtomicBool) -> Result<Started, Failed>;

    /// Runs a command of the preparation to its end: the one at index `at`. `users` is the list of users, a file of the
    /// conductor.
    ///
    /// # Errors
    /// When it fails, or exceeds its deadline; when `interrupt` becomes true.
    fn prepare(&mut self, at: usize, users: &Path, interrupt: &AtomicBool) -> Result<(), Failed>;

    /// Checks the system while it runs; never waits.
    ///
    /// # Errors
    /// When it has ended, with its last lines.
    fn look(&mut self) -> Result<(), Failed>;

    /// The state at the start of the trial, with the settings that its study touches; hashes are empty.
    ///
    /// # Errors
    /// When the machine is lost.
    fn state(&mut self, touched: &[KernelSetting]) -> Result<StartingState, Failed>;

    /// Starts counters that the conductor can't read. `zero` is the trial's 0 in ns of this machine's monotonic clock;
    /// counters are read from then on, every `every`, until `end`.
    ///
    /// # Errors
    /// When the machine is lost.
    fn count(&mut self, zero: u64, every: Duration, end: Duration) -> Result<Counts, Failed>;

    /// Counters received since the last call, in the order of their times.
    fn rows(&mut self) -> Vec<Row>;

    /// Starts to observe the system's environment on its machine, where the conductor can't.
    ///
    /// # Errors
    /// When the machine is lost.
    fn look_around(&mut self) -> Result<(), Failed>;

    /// The system's environment since then; `None` for the conductor's own machine.
    ///
    /// # Errors
    /// When the machine is lost.
    fn looked_around(&mut self) -> Result<Option<SystemHost>, Failed>;

    /// Kernel settings changed for the trial, with the values in force.
    fn kernel(&self) -> BTreeMap<String, String>;

    /// Facts of the file system made for the trial, by name.
    fn storage(&self) -> &[(String, String)];

    /// The processes whose counters the conductor reads; `None` for a remote system.
    fn counted(&self) -> Option<Counted<'_>>;

    /// Its first process and its held processes, if they are on this machine.
    fn processes(&self) -> Vec<u32>;

    /// Pins threads that left these cores to them again; returns how many.
    fn keep_on(&self, cores: &[u32]) -> usize;

    /// Stops the system; returns a sentence if that failed.
    ///
    /// # Errors
    /// When the system had ended before, or its machine was lost; when the machine can't be restored.
    fn stop(&mut self) -> Result<Option<String>, Failed>;
}

/// A system that accepts requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Its listening address.
    pub address: SocketAddr,
    /// The trial's values.
    pub setting: Setting,
}

/// Counters of a remote system's machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Names of its counters; none for the conductor's own machine.
    pub columns: Vec<String>,
    /// Its cores, if there are counters.
    pub cores: Option<u32>,
}

/// Counters at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Time on the trial's clock.
    pub at: Duration,
    /// Values in the order of the names.
    pub values: Vec<Option<f64>>,
}

/// The processes of a system on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The first.
    pub pid: u32,
    /// What holds all its processes.
    pub hold: Option<&'a Hold>,
}
