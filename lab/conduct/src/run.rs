//! A whole run: the archive, and one trial after the other. It judges nothing
//! itself.

mod begin;
mod pairs;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_archive::{Happening, Pinning, QuietGate, RunWriter};
use lab_host::HostError;
use lab_host::clock::pause;
use lab_host::cores::{self, Allotment, Pinned};
use lab_host::kernel::{self, Kernel};
use lab_host::{disk, machine};
use lab_machine::programs;
use lab_machine::scratch::{self, Scratch, Work};
use lab_study::plan::{HowEnded, Plan, Trial};
use lab_study::{Secrets, Workload};

use self::begin::{head, not_pinned, open, placed, put_back, shown, work, written};
use crate::course::Conductor;
use crate::duet;
use crate::event::Event;
use crate::idle_gate;
use crate::judged::{Judge, Judged, Streak, Unstarted};
use crate::logged::Logged;
use crate::measuring::EVENT_WAIT;
use crate::pairing::{self, FirstBlocks};
use crate::preflight::{self as limits, Problem};
use crate::profiles::Profiles;
use crate::remote_host;
use crate::repeats::Repeats;
use crate::request::RunRequest;
use crate::search::{self, Searching};
use crate::snapshot::Snapshots;
use crate::trial::Done;
use crate::{ConductError, attach, connect, masked, system};

/// The outcome of a run. The figures are in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The archive.
    pub dir: PathBuf,
    /// Archived trials of the plan, whatever their outcomes.
    pub completed: u32,
    /// Trials of the plan.
    pub trials: u32,
    /// Trials of the plan that were disturbed from outside in every attempt; a resumed run repeats them.
    pub disturbed: u32,
    /// It was interrupted, or a trial was skipped, and can be resumed.
    pub interrupted: bool,
}

/// Checks that this machine can apply the plan's settings, and that its limits allow the load: open files, ports,
/// memory, disk.
///
/// # Errors
/// [`ConductError::Settings`] or [`ConductError::Preflight`] with all problems, in words.
pub fn preflight(request: &RunRequest) -> Result<(), ConductError> {
    let here = remote_host::local_plan(&request.plan);
    let mut problems = programs::check(&here, &request.loaded.study.requires);
    problems.extend(attach::check(&here));
    problems.extend(connect::check(&here));
    problems.extend(kernel::check(&here));
    problems.extend(scratch::check(&here));
    problems.extend(disk::check(&here));
    problems.extend(remote_host::problems(&request.plan));
    let cores = cores::allowed().map_err(HostError::Cores)?;
    problems.extend(cores::check(&here, &cores));
    let away = request.generators.is_some() || request.loaded.study.agents().is_some();
    if away && request.plan.question.duet {
        let both =
            "a duet drives both of its sides from this machine: leave out the agents, or `duet`";
        problems.push(both.to_owned());
    }
    if !problems.is_empty() {
        return Err(ConductError::Settings { problems });
    }
    let mut problems = limits::check(&request.plan, &request.out);
    if away {
        // The agents check their own files, ports, and memory.
        problems.retain(Problem::is_of_disks);
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ConductError::Preflight { problems })
    }
}

/// The workloads of a trial's users, at the plan's speed: one, or one for each population.
pub(crate) fn workloads(
    request: &RunRequest,
    trial: &Trial,
) -> Result<Vec<Arc<Workload>>, ConductError> {
    let study = &request.loaded.study;
    let workloads = study.workloads_at(trial, request.plan.speed);
    // The parameters of this study's plan are already validated.
    let workloads = workloads.map_err(|error| ConductError::Unsupported(error.to_string()))?;
    Ok(workloads.into_iter().map(Arc::new).collect())
}

/// Checks that the attached servers that the plan starts with are reachable.
pub(crate) fn reached(plan: &Plan) -> Result<(), ConductError> {
    let problems = attach::unreachable(plan);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ConductError::Unreachable { problems }),
    }
}

/// Runs the trials of a plan that are not in the archive yet, after restoring what a killed run left changed in the
/// kernel.
///
/// The calling thread conducts, and is pinned to the generator's cores meanwhile. When `interrupt` becomes true, the
/// trial in progress is abandoned, its system stopped, and its data removed; finished trials stay. A failed system is a
/// fact of its trial, and the next trial follows.
///
/// `judge` returns the outcome of each trial: a trial that was disturbed from outside is repeated at the end of its
/// block, and a search continues from the outcome.
///
/// # Errors
/// When the run can't start or continue; see [`ConductError`]. Finished trials stay in the archive.
pub fn run(
    request: &RunRequest,
    events: &mut dyn FnMut(Event),
    judge: Judge<'_>,
    interrupt: &AtomicBool,
) -> Result<Outcome, ConductError> {
    let secrets = request.plan.secrets(&request.loaded.secrets);
    let mut told = |event| events(masked::event(&secrets, event));
    let ended = in_pairs_or_in_sequence(request, |request| {
        run_all(request, &secrets, &mut told, judge, interrupt)
    });
    ended.map_err(|error| masked::error(&secrets, error))
}

/// Runs a request, and again in sequence if its first pairs show that they don't fit.
fn in_pairs_or_in_sequence(
    request: &RunRequest,
    mut run: impl FnMut(&RunRequest) -> Result<Ended, ConductError>,
) -> Result<Outcome, ConductError> {
    let mut request = pairing::resumed(request)?;
    loop {
        match run(&request)? {
            Ended::With(outcome) => return Ok(outcome),
            Ended::NoDuet(in_sequence) => request = Cow::Owned(*in_sequence),
        }
    }
}

/// How a request ended.
enum Ended {
    With(Outcome),
    /// Two trials at once don't fit; this request has them in sequence.
    NoDuet(Box<RunRequest>),
}

/// Returns true if the run was interrupted; `None` if it continues in sequence.
fn ended(trials: &Result<Trials, ConductError>) -> Option<bool> {
    match trials {
        Ok(Trials::NoDuet(_)) => None,
        Ok(Trials::Done(outcome)) => Some(outcome.interrupted),
        Err(_) => Some(true),
    }
}

/// How the trials of a plan ended.
enum Trials {
    Done(Outcome),
    /// Two at once don't fit, for this reason.
    NoDuet(String),
}

fn run_all(
    request: &RunRequest,
    secrets: &Secrets,
    events: &mut dyn FnMut(Event),
    judge: Judge<'_>,
    interrupt: &AtomicBool,
) -> Result<Ended, ConductError> {
    put_back(request, events)?;
    preflight(request)?;
    remote_host::allowed(&request.plan, &request.machines, interrupt)?;
    // A server that was reachable before may be restarting.
    if !request.resume {
        reached(&request.plan)?;
    }
    machine::raise_open_files().map_err(HostError::OpenFiles)?;
    let cores = cores::allowed().map_err(HostError::Cores)?;
    let here = remote_host::local_plan(&request.plan);
    let (allotment, halves, pinning) = placed(request, &cores, &here);
    let archive = open(request, secrets, &shown(&pinning, request))?;
    let _on_generator_cores = Pinned::to(&pinning.generator).map_err(HostError::Cores)?;
    let work = work(request, &here)?;
    let disks = scratch::disks(&here, &work)?;
    let run = Run {
        request,
        secrets,
        allotment,
        halves,
        work,
        profiles: Profiles::of_run(archive.dir(), &request.plan),
        archive,
        interrupt,
        snapshots: Snapshots::default(),
        kernel: Kernel::begin(&request.state, &here, disks)?,
        idle_wait_left: Cell::new(request.idle_wait.run),
        waited_in_vain: Cell::new(false),
    };
    scratch::try_disks(&here, &run.work)?;
    let mut log = Logged::of(run.archive.dir());
    let mut told = |event: Event| {
        // Secrets are masked in the log too.
        let event = masked::event(secrets, event);
        log.take(&event);
        events(event);
    };
    let trials = match Searching::of(&request.plan) {
        Some(searching) => run.search(searching, judge, &mut told).map(Trials::Done),
        None => run.all(judge, &mut told),
    };
    if let Some(interrupted) = ended(&trials) {
        log.put(Happening::RunEnded { interrupted });
    }
    let put_back = run.kernel.finish().map_err(ConductError::from);
    match put_back.and(trials)? {
        Trials::Done(outcome) => Ok(Ended::With(outcome)),
        Trials::NoDuet(why) => {
            let note =
                format!("The run begins again, with its variants one after the other: {why}.");
            let note = masked::event(secrets, Event::Note(note));
            log.take(&note);
            events(note);
            let again = pairing::again(request, why)?;
            let (_, _, pinning) = placed(&again, &cores, &here);
            let (manifest, plan) = head(&again, secrets, &shown(&pinning, &again))?;
            run.archive
                .begin_again(&manifest, &plan, &again.loaded.files)?;
            Ok(Ended::NoDuet(Box::new(again)))
        }
    }
}

/// A run in progress.
struct Run<'a> {
    request: &'a RunRequest,
    secrets: &'a Secrets,
    allotment: Allotment,
    /// For a plan of duets: left and right.
    halves: Option<[Pinning; 2]>,
    /// By storage; `None` = the run's own folder.
    work: BTreeMap<Option<String>, Work>,
    snapshots: Snapshots,
    profiles: Profiles,
    archive: RunWriter,
    interrupt: &'a AtomicBool,
    kernel: Kernel,
    /// For the whole run.
    idle_wait_left: Cell<Duration>,
    /// True if the last wait for an idle machine was in vain.
    waited_in_vain: Cell<bool>,
}

impl Run<'_> {
    /// Runs the trials of the plan, block by block, each block with its repeats.
    fn all(&self, judge: Judge<'_>, events: &mut dyn FnMut(Event)) -> Result<Trials, ConductError> {
        let plan = &self.request.plan;
        let units = duet::units(plan);
        let mut repeats = duet::repeats(plan, &units);
        let archived = self.archived(judge)?;
        repeats.recall(&archived);
        repeats.owe(&duet::unfinished(&archived));
        let trials = count(plan.trials.len());
        let (left, planned) = outstanding(&units, &repeats);
        events(Event::RunStarted {
            dir: self.archive.dir().to_path_buf(),
            trials,
            completed: trials - left,
            planned,
        });
        let (mut interrupted, mut left_out) = (false, false);
        let (mut streak, mut unstarted) = (Streak::default(), Unstarted::default());
        let mut first = FirstBlocks::of(plan, &archived);
        while let Some(next) = repeats.next() {
            let unit = units[next.at];
            let after = outstanding(&units, &repeats).1;
            let after = after.saturating_sub(length(&unit[0]));
            let place = Standing {
                of: trials,
                after,
                attempt_of: next.attempt.map(|_| unit[0].id),
                goes_beyond: false,
            };
            let id = next.attempt.unwrap_or(unit[0].id);
            let judged = match unit {
                [left, right] => self.two([left, right], (id, place), judge, events)?,
                _ => {
                    let mut trial = unit[0].clone();
                    trial.id = id;
                    self.one((plan, &trial), place, judge, events)?
                }
            };
            let Some(judged) = judged else {
                if self.interrupted() {
                    interrupted = true;
                    break;
                }
                left_out = true;
                repeats.leave_out(next);
                events(Event::Note(SKIPPED.to_owned()));
                continue;
            };
            if let Some(why) = first.learn(&judged) {
                return Ok(Trials::NoDuet(why));
            }
            let gave_up = repeats.learn(next, &judged, self.waited_in_vain.get());
            let told = gave_up.then(|| NOT_REPEATED.to_owned());
            let end = unstarted.learn(&unit[0].cell, &judged);
            let said = [streak.learn(&judged), told, end.clone()];
            let said = said.into_iter().flatten();
            said.for_each(|said| events(Event::Note(said)));
            if end.is_some() {
                break;
            }
        }
        let disturbed = count(repeats.disturbed());
        self.outcome(trials, disturbed, interrupted || left_out)
            .map(Trials::Done)
    }

    /// The outcomes of the archived trials, by trial of the plan.
    fn archived(
        &self,
        judge: Judge<'_>,
    ) -> Result<BTreeMap<u32, Vec<(u32, Judged)>>, ConductError> {
        let mut judged: BTreeMap<u32, Vec<(u32, Judged)>> = BTreeMap::new();
        for id in self.archive.completed()? {
            let of = self.archive.attempt_of(id)?.unwrap_or(id);
            let one = judge(self.archive.dir(), id);
            judged.entry(of).or_default().push((id, one));
        }
        Ok(match self.request.plan.question.duet {
            true => duet::archived(&judged),
            false => judged,
        })
    }

    /// Runs trials as the search chooses them. Archived trials are judged again, so that the search resumes where it
    /// was.
    fn search(
        &self,
        mut searching: Searching,
        judge: Judge<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, ConductError> {
        let mut plan = self.request.plan.clone();
        if self.request.resume {
            let archived = self.archive.plan()?;
            let archived = serde_json::from_value(archived).map_err(ConductError::Plan)?;
            plan.trials = search::archived_trials(archived, &plan);
        }
        let completed = self.archive.completed()?;
        let known = plan
            .trials
            .iter()
            .filter(|trial| completed.contains(&trial.id));
        for trial in known.cloned().collect::<Vec<_>>() {
            let judged = judge(self.archive.dir(), trial.id);
            searching.recall(&plan, &trial, judged.judgement);
        }
        self.search_started(&searching, &plan, &completed, events);
        let (mut interrupted, mut streak) = (false, Streak::default());
        // A chosen trial that was cut off runs first.
        let mut cut = plan
            .trials
            .iter()
            .position(|trial| !completed.contains(&trial.id));
        while cut.is_some() || self.choose(&searching, &mut plan)? {
            let at = cut.take().unwrap_or(plan.trials.len() - 1);
            let trial = plan.trials[at].clone();
            let of = searching.expected().max(at + 1);
            let place = Standing {
                of: count(of),
                after: length(&trial) * count(of - at - 1),
                attempt_of: None,
                goes_beyond: searching.has_carried(&plan, &trial),
            };
            let Some(judged) = self.one((&plan, &trial), place, judge, events)? else {
                interrupted = self.interrupted();
                if interrupted {
                    break;
                }
                // The trials that follow depend on this one.
                cut = Some(at);
                events(Event::Note(BEGUN_AGAIN.to_owned()));
                continue;
            };
            let words = search::words(trial.load.users, judged.judgement);
            for told in words.into_iter().chain(streak.learn(&judged)) {
                events(Event::Note(told));
            }
            searching.learn(&plan, &trial, judged.judgement);
        }
        plan.search_ended = searching.ended();
        self.archive.replace_plan(&written(self.secrets, &plan)?)?;
        let ended = plan.search_ended.iter();
        let disturbed = ended.filter(|end| end.how == HowEnded::Disturbed).count();
        self.outcome(count(plan.trials.len()), count(disturbed), interrupted)
    }

    fn search_started(
        &self,
        searching: &Searching,
        plan: &Plan,
        completed: &BTreeSet<u32>,
        events: &mut dyn FnMut(Event),
    ) {
        let expected = searching.expected();
        let each: Duration = plan.every_trial().next().map_or(Duration::ZERO, length);
        events(Event::RunStarted {
            dir: self.archive.dir().to_path_buf(),
            trials: count(expected.max(plan.trials.len())),
            completed: count(completed.len()),
            planned: each * count(expected.saturating_sub(completed.len())),
        });
    }

    /// Adds the next trial to the plan, in the archive too. False when the search is over.
    fn choose(&self, searching: &Searching, plan: &mut Plan) -> Result<bool, ConductError> {
        let Some(chosen) = searching.next() else {
            return Ok(false);
        };
        let id = count(plan.trials.len() + 1);
        let cells = plan.search.as_ref().map(|search| &search.cells);
        let Some(cell) = cells.and_then(|cells| cells.get(chosen.cell)) else {
            return Ok(false);
        };
        let study = &self.request.loaded.study;
        let workloads = study.workloads_at(cell, self.request.plan.speed);
        // The parameters of this study's plan are already validated.
        let workloads = workloads.map_err(|error| ConductError::Unsupported(error.to_string()))?;
        let trial = plan.search_trial(&workloads, chosen.cell, chosen.users, (id, chosen.block));
        plan.trials.extend(trial);
        self.archive.replace_plan(&written(self.secrets, plan)?)?;
        Ok(true)
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn outcome(
        &self,
        trials: u32,
        disturbed: u32,
        interrupted: bool,
    ) -> Result<Outcome, ConductError> {
        let completed = self.archive.completed()?;
        Ok(Outcome {
            dir: self.archive.dir().to_path_buf(),
            completed: count(completed.iter().filter(|id| **id <= trials).count()),
            trials,
            disturbed,
            interrupted,
        })
    }

    /// Waits for an idle machine. Fails with [`Interrupted`].
    fn quiet(
        &self,
        folder: &std::path::Path,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<QuietGate>, Interrupted> {
        let patience = self.request.idle_wait;
        if patience.trial.is_zero() {
            return Ok(None);
        }
        let left = self.idle_wait_left.get();
        let limits = idle_gate::limits(&self.request.plan.question.checks);
        let most = patience.trial.min(left);
        let gate =
            idle_gate::wait(&limits, most, folder, events, self.interrupt).ok_or(Interrupted)?;
        let waited = Duration::from_millis(gate.waited_ms);
        self.idle_wait_left.set(left.saturating_sub(waited));
        self.waited_in_vain.set(!gate.quiet);
        Ok(Some(gate))
    }

    /// Waits while the run is paused. False when it was interrupted.
    fn may_begin(&self, events: &mut dyn FnMut(Event)) -> bool {
        let control = &self.request.control;
        if control.is_paused() {
            events(Event::Note(
                "The run pauses before its next trial.".to_owned(),
            ));
            while control.is_paused() && !self.interrupted() {
                pause(EVENT_WAIT);
            }
        }
        !self.interrupted()
    }

    /// Runs a trial and returns its outcome; `None` when it was interrupted or skipped.
    fn one(
        &self,
        (plan, trial): (&Plan, &Trial),
        place: Standing,
        judge: Judge<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<Judged>, ConductError> {
        if !self.may_begin(events) {
            return Ok(None);
        }
        self.request.control.begin_trial();
        events(started(trial, place));
        let here = remote_host::local_part(trial);
        let work = &self.work[&here.host.storage];
        let Some(scratch) = self.scratch(work, &here)? else {
            return Ok(None);
        };
        let Ok(quiet) = self.quiet(scratch.on_disk(), events) else {
            return Ok(None);
        };
        let mut pinning = self.allotment.pinning(here.host.cpus.as_ref());
        if system::is_elsewhere(trial) {
            not_pinned(&mut pinning);
        }
        let writer = self.archive.trial(trial.id)?;
        let kernel = self.kernel.apply(&here.host.kernel)?;
        let conductor = Conductor {
            program: &self.request.program,
            plan,
            trial,
            attempt_of: place.attempt_of,
            workloads: &workloads(self.request, trial)?,
            pinning: &pinning,
            scratch: &scratch,
            work,
            snapshots: &self.snapshots,
            profiles: &self.profiles,
            kernel,
            secrets: self.secrets,
            after: place.after,
            quiet,
            peer: None,
            events,
            interrupt: self.interrupt,
            control: &self.request.control,
            goes_beyond: place.goes_beyond,
            generators: self.request.generators.as_ref(),
            machines: &self.request.machines,
        };
        let done = conductor.conduct(writer);
        let put_back = self.kernel.put_back().map_err(ConductError::from);
        let put_back = put_back.and(scratch.close().map_err(ConductError::from));
        if let Ok(Some(left)) = &put_back {
            events(Event::Note(left.clone()));
        }
        if !matches!(done, Ok(Some(_))) {
            // A resume removes remains as well; here they would only look unfinished.
            let _ = self.archive.discard(trial.id);
        }
        let Some(done) = put_back.and(done)? else {
            return Ok(None);
        };
        Ok(Some(self.done(trial.id, done, judge, events)))
    }

    /// The folder of a trial; `None` when it was interrupted while its file system was made.
    fn scratch(&self, work: &Work, trial: &Trial) -> Result<Option<Scratch>, ConductError> {
        match work.of(trial, self.interrupt) {
            Err(_) if self.interrupted() => Ok(None),
            made => Ok(Some(made?)),
        }
    }

    /// Judges an archived trial, and emits its end.
    fn done(&self, id: u32, done: Done, judge: Judge<'_>, events: &mut dyn FnMut(Event)) -> Judged {
        let judged = judge(self.archive.dir(), id);
        events(Event::TrialDone {
            id,
            end: done.end,
            transactions: done.transactions,
            errors: done.errors,
            took: done.took,
            judged: judged.clone(),
        });
        judged
    }
}

/// The number of remaining trials, and their ramps and holds together: the trials of a duet run at once.
fn outstanding(units: &[&[Trial]], repeats: &Repeats) -> (u32, Duration) {
    let of_unit = |at: usize| (count(units[at].len()), length(&units[at][0]));
    let each = repeats.outstanding().map(of_unit);
    each.fold((0, Duration::ZERO), |(n, sum), (trials, one)| {
        (n + trials, sum + one)
    })
}

fn started(trial: &Trial, place: Standing) -> Event {
    Event::TrialStarted {
        id: trial.id,
        attempt_of: place.attempt_of,
        of: place.of,
        cell: trial.cell.clone(),
        control: trial.control,
        load: trial.load.clone(),
    }
}

/// Note about a trial that is left to another invocation.
const SKIPPED: &str = "It was skipped: a resumed run runs it.";
/// Note about a skipped trial of a search.
const BEGUN_AGAIN: &str = "It was skipped: the search begins it again.";
/// Note at the end of a run's repeats.
const NOT_REPEATED: &str = "The machine got quiet in none of the last three waits: until it does, disturbed trials \
     are not repeated. `--resume` repeats them at another time.";

/// The wait for an idle machine was interrupted.
struct Interrupted;

/// The position of a trial in the run.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Trials of the run.
    of: u32,
    /// Ramps and holds of those that follow.
    after: Duration,
    /// The trial of the plan that this one repeats.
    attempt_of: Option<u32>,
    /// In a search, true if fewer users are sustained already, so that these may be too many.
    goes_beyond: bool,
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Ramp and hold.
fn length(trial: &Trial) -> Duration {
    Duration::from_millis(trial.load.ramp_ms.saturating_add(trial.load.hold_ms))
}
