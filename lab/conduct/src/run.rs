//! A whole run: the archive, and one trial after the other. It judges nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_archive::{ARCHIVE_SCHEMA, Manifest, PROBE, Pinning, RunWriter};
use lab_study::plan::{Plan, Trial};
use lab_study::{Loaded, Workload};

use crate::clock::calendar;
use crate::cores::{self, Allotment, Pinned};
use crate::event::Event;
use crate::journal::restore;
use crate::kernel::{self, Kernel};
use crate::machine::{self, Limits};
use crate::scratch::{self, Work};
use crate::trial::Conductor;
use crate::{ConductError, command, preflight as limits};

/// What to run, and where to keep it.
#[derive(Debug)]
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
}

/// What a run came to. The figures are in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The archive.
    pub dir: PathBuf,
    /// Trials in it, those of earlier attempts included.
    pub completed: u32,
    /// Trials of the plan.
    pub trials: u32,
    /// It was interrupted and can be resumed.
    pub interrupted: bool,
}

/// Whether this machine can apply the plan's settings, and whether its limits allow the load: open
/// files, ports, memory, disk.
///
/// # Errors
/// [`ConductError::Settings`] or [`ConductError::Preflight`] with all that is in the way, in words.
pub fn preflight(request: &RunRequest) -> Result<(), ConductError> {
    let mut problems = command::check(&request.plan);
    problems.extend(kernel::check(&request.plan));
    problems.extend(scratch::check(&request.plan));
    let cores = cores::allowed().map_err(ConductError::Cores)?;
    problems.extend(cores::check(&request.plan, &cores));
    if !problems.is_empty() {
        return Err(ConductError::Settings { problems });
    }
    let problems = limits::check(&request.plan, &Limits::read(&request.out));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ConductError::Preflight { problems })
    }
}

/// Runs the trials of a plan that are not in the archive yet, after putting back what a killed run
/// left changed in the kernel.
///
/// The calling thread conducts: it is on the generator's cores meanwhile. When `interrupt` becomes
/// true, the trial under way is given up, its system ended, and its data removed; finished trials
/// stay. A system that fails is a fact of its trial, and the next trial follows.
///
/// # Errors
/// When the run can't begin or go on; see [`ConductError`]. Finished trials stay in the archive.
pub fn run(
    request: &RunRequest,
    events: &mut dyn FnMut(Event),
    interrupt: &AtomicBool,
) -> Result<Outcome, ConductError> {
    for restored in restore(&request.state)?.restored {
        events(Event::Restored(restored));
    }
    preflight(request)?;
    machine::raise_open_files().map_err(ConductError::OpenFiles)?;
    let cores = cores::allowed().map_err(ConductError::Cores)?;
    let allotment = Allotment::new(&cores, &request.plan);
    let pinning = allotment.pinning(None);
    let archive = open(request, &pinning)?;
    let _on_generator_cores = Pinned::to(&pinning.generator).map_err(ConductError::Cores)?;
    let run = Run {
        request,
        allotment,
        work: work(request)?,
        workload: Arc::new(request.loaded.study.workload.at_speed(request.plan.speed)),
        archive,
        interrupt,
        kernel: Kernel::begin(&request.state, &request.plan)?,
    };
    let outcome = run.all(events);
    run.kernel.finish().and(outcome)
}

/// A folder for trials in each storage of the plan.
fn work(request: &RunRequest) -> Result<BTreeMap<Option<String>, Work>, ConductError> {
    let mut work = BTreeMap::new();
    for trial in &request.plan.trials {
        let storage = &trial.host.storage;
        if work.contains_key(storage) {
            continue;
        }
        let made = match storage {
            Some(folder) => Work::in_storage(folder, &request.out)?,
            None => Work::in_run(&request.out)?,
        };
        work.insert(storage.clone(), made);
    }
    Ok(work)
}

fn open(request: &RunRequest, pinning: &Pinning) -> Result<RunWriter, ConductError> {
    let manifest = manifest(request, pinning);
    let plan = serde_json::to_value(&request.plan).map_err(ConductError::Plan)?;
    let files = &request.loaded.files;
    let open = if request.resume {
        RunWriter::open_for_resume
    } else {
        RunWriter::create
    };
    Ok(open(&request.out, &manifest, &plan, files)?)
}

fn manifest(request: &RunRequest, pinning: &Pinning) -> Manifest {
    let RunRequest { loaded, plan, .. } = request;
    let study_file = loaded.files.first().map_or(&[][..], |(_, bytes)| bytes);
    Manifest {
        schema: ARCHIVE_SCHEMA.to_owned(),
        study: plan.study.clone(),
        title: plan.title.clone(),
        file_hash: format!("blake3:{}", blake3::hash(study_file).to_hex()),
        seed: plan.seed,
        speed: plan.speed,
        overrides: request.overrides.clone(),
        started: calendar(),
        environment: machine::environment(&request.out, pinning.clone()),
        steps: step_names(&loaded.study.workload),
        files: loaded.files.iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// Names by the driver's numbers: the steps, then the probe.
fn step_names(workload: &Workload) -> Vec<String> {
    let steps = workload.session.steps.iter().map(|step| step.name.clone());
    steps
        .chain(workload.probe.iter().map(|_| PROBE.to_owned()))
        .collect()
}

/// A run under way.
struct Run<'a> {
    request: &'a RunRequest,
    allotment: Allotment,
    /// By storage; `None` = the run's own folder.
    work: BTreeMap<Option<String>, Work>,
    workload: Arc<Workload>,
    archive: RunWriter,
    interrupt: &'a AtomicBool,
    kernel: Kernel,
}

impl Run<'_> {
    fn all(&self, events: &mut dyn FnMut(Event)) -> Result<Outcome, ConductError> {
        let plan = &self.request.plan;
        let completed = self.archive.completed()?;
        let missing: Vec<&Trial> = plan
            .trials
            .iter()
            .filter(|trial| !completed.contains(&trial.id))
            .collect();
        let trials = count(plan.trials.len());
        events(Event::RunStarted {
            dir: self.archive.dir().to_path_buf(),
            trials,
            completed: count(plan.trials.len() - missing.len()),
            planned: missing.iter().map(|trial| length(trial)).sum(),
        });
        let mut interrupted = false;
        for (position, trial) in missing.iter().enumerate() {
            let after = missing[position + 1..]
                .iter()
                .map(|trial| length(trial))
                .sum();
            if self.interrupt.load(Ordering::Relaxed) || !self.one(trial, after, events)? {
                interrupted = true;
                break;
            }
        }
        let completed = count(self.archive.completed()?.len());
        Ok(Outcome {
            dir: self.archive.dir().to_path_buf(),
            completed,
            trials,
            interrupted,
        })
    }

    /// False when it was interrupted.
    fn one(
        &self,
        trial: &Trial,
        after: Duration,
        events: &mut dyn FnMut(Event),
    ) -> Result<bool, ConductError> {
        events(Event::TrialStarted {
            id: trial.id,
            of: count(self.request.plan.trials.len()),
            cell: trial.cell.clone(),
            users: trial.load.users,
        });
        let scratch = self.work[&trial.host.storage].trial(trial.id)?;
        let pinning = self.allotment.pinning(trial.host.cpus.as_ref());
        let writer = self.archive.trial(trial.id)?;
        let kernel = self.kernel.apply(&trial.host.kernel)?;
        let conductor = Conductor {
            program: &self.request.program,
            plan: &self.request.plan,
            trial,
            workload: &self.workload,
            pinning: &pinning,
            scratch: &scratch,
            kernel,
            after,
            events,
            interrupt: self.interrupt,
        };
        let done = conductor.conduct(writer);
        let put_back = self.kernel.put_back();
        if !matches!(done, Ok(true)) {
            // What is left is removed by a resume as well; here it would only look unfinished.
            let _ = self.archive.discard(trial.id);
        }
        put_back.and(done)
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Ramp and hold.
fn length(trial: &Trial) -> Duration {
    Duration::from_millis(trial.load.ramp_ms.saturating_add(trial.load.hold_ms))
}
