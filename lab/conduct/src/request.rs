//! The request for a run: what to run, where to keep it, and who drives it. It knows nothing of how a run goes.

use std::path::PathBuf;

use lab_study::Loaded;
use lab_study::plan::Plan;

use crate::control::Control;
use crate::far::Machines;
use crate::generators::LoadGenerators;
use crate::quiet::Patience;

/// What to run, and where to keep it.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The study, with the files that it was made from; the study's file comes first.
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
    /// The folder of the journal of changed kernel settings: the same for all runs of a user, so
    /// that one finds what another left.
    pub state: PathBuf,
    /// How long to wait for a quiet machine.
    pub patience: Patience,
    /// What may be asked of it while it goes on.
    pub control: Control,
    /// Who drives the load in the place of this machine.
    pub generators: Option<LoadGenerators>,
    /// Who has the systems of the trials that a study has `on` other machines.
    pub machines: Machines,
}
