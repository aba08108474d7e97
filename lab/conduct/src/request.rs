//! The request for a run: its study, its archive, and its load generators. It does not know how a run proceeds.

use std::path::PathBuf;

use lab_study::Loaded;
use lab_study::plan::Plan;

use crate::control::Control;
use crate::generators::LoadGenerators;
use crate::idle_gate::IdleWait;
use crate::remote_host::Machines;

/// The inputs of a run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The study, with the files that it was made from; the study's file is first.
    pub loaded: Loaded,
    /// Its plan.
    pub plan: Plan,
    /// The archive's folder: empty or absent, or the one to resume.
    pub out: PathBuf,
    /// Goes on with the trials that are missing in `out`.
    pub resume: bool,
    /// `--set` overrides, as given.
    pub overrides: Vec<(String, String)>,
    /// The `plimsoll` binary, whose `serve` is the system under test.
    pub program: PathBuf,
    /// The folder of the journal of changed kernel settings: the same for all runs of a user, so that a run finds what
    /// another left.
    pub state: PathBuf,
    /// Maximum wait for an idle machine.
    pub idle_wait: IdleWait,
    /// Requests of a person during the run.
    pub control: Control,
    /// The remote load generators, if this machine generates no load.
    pub generators: Option<LoadGenerators>,
    /// The remote hosts of the systems whose trials have `on` in the study.
    pub machines: Machines,
}
