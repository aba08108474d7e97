//! Starts and prepares the system of a trial as the trial does, for callers that send a few requests and no load.
//! Nothing is archived or measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_archive::Pinning;
use lab_driver::Mix;
use lab_host::HostError;
use lab_host::cores::{self, Allotment};
use lab_host::journal::{Gone, restore};
use lab_host::kernel::Kernel;
use lab_machine::scratch::Work;
use lab_study::plan::{Plan, Trial};

use crate::course::Conductor;
use crate::event::{Event, Phase};
use crate::profiles::Profiles;
use crate::request::RunRequest;
use crate::run::{preflight, reached, workloads};
use crate::snapshot::Snapshots;
use crate::stop::{Stop, with_end};
use crate::{ConductError, masked, remote_host, system};

/// How a visit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunOutcome {
    /// The visit was made, and the system ran to its end.
    Through,
    /// The system did not start, or ended; with its last lines.
    SystemFailed(String),
    /// `interrupt` became true.
    Interrupted,
}

/// The default trial of a plan: the first of its first cell.
#[must_use]
pub fn first_trial(request: &RunRequest) -> Option<&Trial> {
    let first = request.loaded.study.cells.first();
    let of_first = |trial: &&Trial| Some(&trial.cell) == first;
    let mut trials = request.plan.every_trial();
    trials
        .find(of_first)
        .or_else(|| request.plan.every_trial().next())
}

/// Starts the system of a trial in a fresh folder below `request.out`, provisions its users, fills its state, and calls
/// `visit` with the load of that trial; then stops it.
///
/// # Errors
/// When this machine can't apply what the study sets, or a folder can't be made; see [`ConductError`].
pub fn dry_run(
    request: &RunRequest,
    trial: &Trial,
    events: &mut dyn FnMut(Event),
    interrupt: &AtomicBool,
    visit: &mut dyn FnMut(&Mix),
) -> Result<DryRunOutcome, ConductError> {
    restore(&request.state, Gone::Keep)?;
    preflight(request)?;
    remote_host::allowed(&request.plan, &request.machines, interrupt)?;
    reached(&request.plan)?;
    let (plan_here, here) = (
        remote_host::local_plan(&request.plan),
        remote_host::local_part(trial),
    );
    let pinning = pinning(trial, &plan_here, &here)?;
    let work = match &here.host.storage {
        Some(folder) => Work::in_storage(folder, &request.out)?,
        None => Work::in_run(&request.out)?,
    };
    let secrets = request.plan.secrets(&request.loaded.secrets);
    let mut told = |event| events(masked::event(&secrets, event));
    let workloads = workloads(request, trial)?;
    let disks = here.host.filesystem.iter().map(|_| work.whole());
    let kernel = Kernel::begin(&request.state, &plan_here, disks.collect::<Result<_, _>>()?)?;
    let scratch = match work.of(&here, interrupt) {
        Err(_) if interrupt.load(Ordering::Relaxed) => return Ok(DryRunOutcome::Interrupted),
        made => made?,
    };
    let conductor = Conductor {
        program: &request.program,
        plan: &request.plan,
        trial,
        attempt_of: None,
        workloads: &workloads,
        pinning: &pinning,
        scratch: &scratch,
        work: &work,
        snapshots: &Snapshots::default(),
        profiles: &Profiles::default(),
        kernel: kernel.apply(&here.host.kernel)?,
        after: Duration::ZERO,
        quiet: None,
        peer: None,
        secrets: &secrets,
        control: &request.control,
        goes_beyond: false,
        generators: None,
        machines: &request.machines,
        events: &mut told,
        interrupt,
    };
    let stopped = conductor.dry_run(visit);
    let left = scratch.close()?;
    left.into_iter().for_each(|left| told(Event::Note(left)));
    kernel.put_back().and(kernel.finish())?;
    match stopped {
        Ok(()) => Ok(DryRunOutcome::Through),
        Err(
            Stop::System(message)
            | Stop::Preparation(message, _)
            | Stop::Generator(message)
            | Stop::Lost(message)
            | Stop::Aborted(message),
        ) => Ok(DryRunOutcome::SystemFailed(secrets.masked(&message))),
        Err(Stop::Interrupted) => Ok(DryRunOutcome::Interrupted),
        Err(Stop::Fatal(error)) => Err(masked::error(&secrets, error)),
    }
}

impl Conductor<'_> {
    /// Runs a trial up to its load.
    fn dry_run(mut self, visit: &mut dyn FnMut(&Mix)) -> Result<(), Stop> {
        let filled = self.restore()?;
        self.tell(Event::Phase(Phase::Starting));
        let output = self.scratch.file("output");
        let start = self.system(self.scratch, output.clone());
        let mut system = system::start(&start, self.interrupt)?;
        if self.is_prepared() {
            self.tell(Event::Phase(Phase::Provisioning));
        }
        let users = match filled {
            Some(users) => Ok(users),
            None => {
                let start = self.system(self.scratch, output);
                self.prepare(&start, &mut system)
            }
        };
        let result = users.and_then(|users| {
            visit(&self.mix(&system, users)?);
            system.check()
        });
        // A failed stop only matters to a following trial.
        with_end(result, system.stop()).0
    }
}

/// The cores of the generator and of the system.
fn pinning(trial: &Trial, plan_here: &Plan, here: &Trial) -> Result<Pinning, ConductError> {
    let cores = cores::allowed().map_err(HostError::Cores)?;
    let mut pinning = Allotment::new(&cores, plan_here).pinning(here.host.cpus.as_ref());
    if system::is_elsewhere(trial) {
        pinning.system.clear();
        pinning.shared = false;
    }
    Ok(pinning)
}
