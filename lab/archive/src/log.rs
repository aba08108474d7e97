//! `events.jsonl`: what happened in a run and when, a line each, for who watches it go on. No figure of
//! a report comes from it, and a run without it is as good.

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
    /// What.
    #[serde(flatten)]
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Happening {
    /// A run begins, or goes on.
    RunStarted {
        /// The process that conducts it.
        pid: u32,
        /// Trials of the plan; of a search, those that it takes at most.
        trials: u32,
        /// Those that an earlier attempt completed.
        completed: u32,
        /// Ramps and holds of the others.
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
    /// The trial waits for a quiet machine.
    Waiting {
        /// What disturbs, each in words with its limit.
        disturbed_by: Vec<String>,
        /// How long it waits at most from now on.
        left_ms: u64,
    },
    /// The system's machine, which is another one, counts what becomes of its system.
    CountedThere {
        /// Its cores.
        cores: u32,
    },
    /// The machine of a part of the system counts what becomes of that.
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
    /// Setup goes on.
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
        /// Why it is no measurement, what explains the rest first; empty of a measurement.
        failed: Vec<String>,
        /// Of a search: whether a measurement holds what the search is subject to.
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
    /// What a later version tells.
    #[serde(other)]
    Unknown,
}

/// Writes `events.jsonl`, after what an earlier attempt at the run left there.
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

    /// Writes a line, at once and in one piece: whoever reads along sees whole lines.
    ///
    /// # Errors
    /// What writing gives.
    pub fn put(&mut self, line: &EventLine) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}
