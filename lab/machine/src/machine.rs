//! The machine of a system under test, as a trial has it.

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

/// A machine on which a trial has its system. Dropped, it ends all that was started on it.
pub trait Machine {
    /// Fills in where processes of the same system on other machines listen, by name, before it starts.
    fn knows(&mut self, others: &[(String, SocketAddr)]);

    /// Starts the system, and waits until it accepts requests.
    ///
    /// # Errors
    /// When it does not, with its last lines; when `interrupt` becomes true.
    fn start(&mut self, interrupt: &AtomicBool) -> Result<Started, Failed>;

    /// Runs a command that prepares the system, to its end: the one at this place among what prepares it. `users` is the
    /// list of users, a file of whoever conducts.
    ///
    /// # Errors
    /// When it does not end well, or not in time; when `interrupt` becomes true.
    fn prepare(&mut self, at: usize, users: &Path, interrupt: &AtomicBool) -> Result<(), Failed>;

    /// Looks after the system while it runs; never waits.
    ///
    /// # Errors
    /// When it has ended, with its last lines.
    fn look(&mut self) -> Result<(), Failed>;

    /// The state that the trial begins in, with the settings that its study touches; hashes are empty.
    ///
    /// # Errors
    /// When the machine is lost.
    fn state(&mut self, touched: &[KernelSetting]) -> Result<StartingState, Failed>;

    /// Begins to count what whoever conducts can't count. `zero` is the trial's 0 in
    /// ns of this machine's monotonic clock; counters are read from then on, so often, until the end.
    ///
    /// # Errors
    /// When the machine is lost.
    fn count(&mut self, zero: u64, every: Duration, end: Duration) -> Result<Counts, Failed>;

    /// Counters that have come since the last call, in the order of their times.
    fn rows(&mut self) -> Vec<Row>;

    /// Begins to look at what surrounds the system on its machine, where whoever conducts can't.
    ///
    /// # Errors
    /// When the machine is lost.
    fn look_around(&mut self) -> Result<(), Failed>;

    /// What surrounded the system since then; `None` of the machine that whoever conducts looks at.
    ///
    /// # Errors
    /// When the machine is lost.
    fn looked_around(&mut self) -> Result<Option<SystemHost>, Failed>;

    /// Kernel settings that it changed for the trial, with the values in force.
    fn kernel(&self) -> BTreeMap<String, String>;

    /// What is told of the file system that it made for the trial, by name.
    fn storage(&self) -> &[(String, String)];

    /// What is counted of it by whoever conducts: nothing of a system that does not run on its machine.
    fn counted(&self) -> Option<Counted<'_>>;

    /// Its first process, and those that it holds, where they are on this machine.
    fn processes(&self) -> Vec<u32>;

    /// Puts threads back on these cores that left them; how many did.
    fn keep_on(&self, cores: &[u32]) -> usize;

    /// Ends the system; a sentence if that did not go well.
    ///
    /// # Errors
    /// When the system had ended before, or its machine was lost; when that can't be left as it was.
    fn stop(&mut self) -> Result<Option<String>, Failed>;
}

/// A system that accepts requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Where it listens.
    pub address: SocketAddr,
    /// What the trial filled in.
    pub setting: Setting,
}

/// What is counted on the machine of a system, where that is another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Names of its counters; none of the machine that whoever conducts counts on.
    pub columns: Vec<String>,
    /// Its cores, where there are counters.
    pub cores: Option<u32>,
}

/// Counters of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// On the trial's clock.
    pub at: Duration,
    /// In the order of their names.
    pub values: Vec<Option<f64>>,
}

/// The processes of a system on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The first.
    pub pid: u32,
    /// What holds all of them.
    pub hold: Option<&'a Hold>,
}
