//! The events of a run in progress. It knows no terminal.

use std::path::PathBuf;
use std::time::Duration;

use lab_archive::{ErrorExample, OtherProgram, TrialEnd};
use lab_host::journal::Restored;
use lab_study::model::Cell;
use lab_study::plan::LoadSpec;

use crate::judged::Judged;

/// An event; in order: (`Restored` | `Cleared` | `Gone`)* `RunStarted` (`TrialStarted` `Waiting`* (`Phase` |
/// `CountedThere` | `PartCountedThere` | `SetupProgress` | `Progress` | `Failed` | `Note`)* `TrialDone`)*.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A kernel setting that a killed run had left changed is restored.
    Restored(Restored),
    /// A file system that a killed run had made for a trial is removed.
    Cleared {
        /// Its path.
        path: PathBuf,
        /// The process that had made it.
        pid: u32,
    },
    /// A kernel setting that an earlier run had changed no longer exists, so that its old value can't be restored.
    Gone {
        /// The file.
        path: String,
        /// The old value.
        value: String,
    },
    /// The archive exists and the first trial follows.
    RunStarted {
        /// The archive's folder.
        dir: PathBuf,
        /// Trials of the plan.
        trials: u32,
        /// Trials that earlier attempts completed.
        completed: u32,
        /// Ramps and holds of the others; start and setup are extra.
        planned: Duration,
    },
    /// A trial begins.
    TrialStarted {
        /// Its number in the archive: that in the plan, or a higher one for a repeat.
        id: u32,
        /// The trial of the plan that it repeats.
        attempt_of: Option<u32>,
        /// Trials of the plan.
        of: u32,
        /// Its levels.
        cell: Cell,
        /// True if it is a second run of its cell in its block.
        control: bool,
        /// Its load.
        load: LoadSpec,
    },
    /// The trial waits for an idle machine; about once a second.
    Waiting {
        /// The disturbances, each in words with its limit.
        disturbed_by: Vec<String>,
        /// The busiest other programs.
        programs: Vec<OtherProgram>,
        /// Maximum remaining wait.
        left: Duration,
    },
    /// Counters of the remote host of the system are available.
    CountedThere {
        /// Its cores.
        cores: u32,
    },
    /// Counters of the remote host of a part of the system are available.
    PartCountedThere {
        /// The part's name.
        part: String,
        /// The cores of its host.
        cores: u32,
    },
    /// The trial enters a phase.
    Phase(Phase),
    /// Progress of the setup.
    SetupProgress {
        /// 0-based number of the setup step.
        step: u32,
        /// Number of setup steps.
        steps: u32,
        /// Users that have completed it.
        users_done: u32,
        /// Answered requests of the setup so far.
        transactions: u64,
        /// Failed ones.
        errors: u64,
    },
    /// A request failed; an example of its kind.
    Failed(ErrorExample),
    /// Progress of ramp or hold; about once a second.
    Progress(Progress),
    /// A trial is in the archive.
    TrialDone {
        /// Its number in the archive.
        id: u32,
        /// How it ended.
        end: TrialEnd,
        /// Answered requests, ramp included.
        transactions: u64,
        /// Failed ones.
        errors: u64,
        /// From the start of its system to the end.
        took: Duration,
        /// Its outcome.
        judged: Judged,
    },
    /// A sentence for the user.
    Note(String),
}

/// What a trial is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The system starts.
    Starting,
    /// Users are registered with it.
    Provisioning,
    /// The workload's setup runs.
    Setup,
    /// Users start.
    Ramp,
    /// All users are active.
    Hold,
    /// The system is stopped and its data removed.
    Stopping,
}

/// The progress of the load; figures of the last seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Users in a session; for arrivals, sessions in progress.
    pub users: u32,
    /// Sessions started since the start of the ramp.
    pub sessions: u64,
    /// Arrived sessions that wait for a connection.
    pub waiting: u64,
    /// Answered requests per second.
    pub tx_per_s: f64,
    /// Median of their response times; `None` without any.
    pub p50_ms: Option<f64>,
    /// 95th percentile of them.
    pub p95_ms: Option<f64>,
    /// Failed requests since the start of the ramp.
    pub errors: u64,
    /// Time since the start of the ramp.
    pub elapsed: Duration,
    /// Time to the end of the trial's hold.
    pub remaining: Duration,
    /// The remaining time with the ramps and holds of the trials that follow.
    pub run_remaining: Duration,
}
