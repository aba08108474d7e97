//! `events.jsonl`: the events of a run with their times, one per line, for observers of the run. No figure of
//! a report depends on it, and a run without it is complete.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ArchiveError, ErrorExample, TrialEnd, names};

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLine {
    /// When, RFC 3339.
    pub at: String,
    /// The event.
    #[serde(flatten)]
    pub what: Happening,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Happening {
    /// A run begins or resumes.
    RunStarted {
        /// The process that conducts it.
        pid: u32,
        /// Trials of the plan; for a search, the maximum number.
        trials: u32,
        /// Trials that an earlier attempt completed.
        completed: u32,
        /// Ramps and holds of the remaining trials.
        planned_ms: u64,
    },
    /// A trial begins.
    TrialStarted {
        /// Its number in the archive.
        trial: u32,
        /// The trial of the plan that it repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt_of: Option<u32>,
        /// Trials of the plan.
        of: u32,
        /// Its levels.
        cell: Value,
        /// Whether it is a second run of its cell in its block.
        control: bool,
        /// Users at the top of its ramp.
        users: u32,
        /// Length of its ramp.
        ramp_ms: u64,
        /// Length of its hold.
        hold_ms: u64,
    },
    /// The trial waits for an idle machine.
    Waiting {
        /// The disturbances, each in words with its limit.
        disturbed_by: Vec<String>,
        /// The maximum remaining wait.
        left_ms: u64,
    },
    /// Counters of the remote system host are available.
    CountedThere {
        /// Its cores.
        cores: u32,
    },
    /// Counters of the remote host of a part of the system are available.
    PartCountedThere {
        /// The part's name.
        part: String,
        /// The cores of its machine.
        cores: u32,
    },
    /// The trial enters a phase: `starting`, `provisioning`, `setup`, `ramp`, `hold`, `stopping`.
    Phase {
        /// Which.
        phase: String,
    },
    /// Progress of the setup.
    Setup {
        /// 0-based number of the setup step.
        step: u32,
        /// Number of setup steps.
        steps: u32,
        /// Users through with it.
        users_done: u32,
        /// Answered requests so far.
        transactions: u64,
        /// Failed ones.
        errors: u64,
    },
    /// A request failed; an example of its kind.
    Failed {
        /// The example.
        example: ErrorExample,
    },
    /// A trial is in the archive.
    TrialDone {
        /// Its number in the archive.
        trial: u32,
        /// How it ended.
        end: TrialEnd,
        /// Answered requests, ramp included.
        transactions: u64,
        /// Failed ones.
        errors: u64,
        /// From the start of its system to the end.
        took_ms: u64,
        /// The reasons why the trial is invalid, the main reason first; empty for a valid trial.
        failed: Vec<String>,
        /// For a search: whether a valid trial meets the search's conditions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carried: Option<bool>,
    },
    /// Something a person should know, in a sentence.
    Note {
        /// The sentence.
        text: String,
    },
    /// The run is over, or was interrupted.
    RunEnded {
        /// Whether trials of its plan are missing.
        interrupted: bool,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// Appends to `events.jsonl`, after the lines of earlier attempts at the run.
#[derive(Debug)]
pub struct EventLog {
    file: File,
}

impl EventLog {
    /// Opens the log of the archive in `dir`.
    ///
    /// # Errors
    /// [`ArchiveError::Write`].
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(names::EVENTS);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(ArchiveError::write(&path))?;
        Ok(Self { file })
    }

    /// Writes a line at once and in one piece, so that concurrent readers see whole lines.
    ///
    /// # Errors
    /// Errors of the write.
    pub fn put(&mut self, line: &EventLine) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}
