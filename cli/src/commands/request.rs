//! The request to the conductor, from the arguments and the loaded study.

use std::path::PathBuf;

use lab_conduct::{Control, IdleWait, Machines, RunRequest};
use lab_study::Loaded;
use lab_study::plan::Plan;

use crate::args::StudyArgs;
use crate::exit::{Exit, Failure};
use crate::state;

/// Builds the request: the study, the archive's folder, and this program as the groupware server.
pub(crate) fn new(
    args: &StudyArgs,
    (loaded, plan): (Loaded, Plan),
    out: PathBuf,
    resume: bool,
) -> Result<RunRequest, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Internal, &error))?;
    let mut request = RunRequest {
        loaded,
        plan,
        out,
        resume,
        overrides: args.set.clone(),
        program,
        state: state::folder(args.state.as_deref())?,
        idle_wait: IdleWait::default(),
        control: Control::default(),
        generators: None,
        machines: Machines::new(),
    };
    settle(&mut request)?;
    Ok(request)
}

/// Resolves `duet: auto` for this machine, and again if agents drive the load.
pub(crate) fn settle(request: &mut RunRequest) -> Result<(), Failure> {
    lab_conduct::settle(request).map_err(|error| Failure::new(Exit::BadInput, &error))
}
