//! The phases of a trial that the driver runs through: setup, ramp, and hold.
//!
//! The measured part is a loop of *select* (wait for the next event, at most until the next due work), and *apply*
//! (record it; never waits).

use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use lab_archive::{PreparationCause, RawBaseline, TrialEnvironment, TrialWriter, Warning};
use lab_driver::{Background, Clock, Driver, DriverEvent, WorkerThread};
use lab_host::clock::{Stopwatch, calendar};
use lab_host::cores;
use lab_monitor::{Monitor, MonitorSpec, Roots};
use lab_study::plan::LoadKind;

use crate::abort::Watch;
use crate::course::{Begun, Conductor, Input, SetUp, TrialFacts};
use crate::event::{Event, Phase};
use crate::generators::write_clocks;
use crate::measuring::{EVENT_WAIT, Measuring, Spans};
use crate::scrape::{Exporter, Scraper};
use crate::start::System;
use crate::stop::{DRIVER_GRACE, Stop, driver_stop};
use crate::{ConductError, environment, raw, record, remote_host, system};

/// Longest time without a response before a setup fails.
const SETUP_SILENCE: Duration = Duration::from_secs(300);
/// A sequence is sampled as often as a hold of this length, since it may end as soon.
const SHORT_SEQUENCE: Duration = Duration::from_secs(6);

impl Conductor<'_> {
    /// Waits for the end of setup.
    pub(crate) fn setup(
        &mut self,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        facts: &mut TrialFacts,
    ) -> Result<SetUp, Stop> {
        let mut heard = (Stopwatch::start(), 0);
        loop {
            match self.select(events, system, EVENT_WAIT)? {
                Input::Driver(DriverEvent::SetupDone {
                    transactions,
                    errors,
                    elapsed,
                    ..
                }) => {
                    return Ok(SetUp {
                        took: elapsed,
                        transactions,
                        errors,
                    });
                }
                Input::Driver(DriverEvent::SetupProgress {
                    step,
                    steps,
                    users_done,
                    transactions,
                    errors,
                    unanswered,
                }) => {
                    let answered = transactions + errors.saturating_sub(unanswered);
                    if heard.1 != answered {
                        heard = (Stopwatch::start(), answered);
                    }
                    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                    let (step, steps) = (count(step), count(steps));
                    self.tell(Event::SetupProgress {
                        step,
                        steps,
                        users_done,
                        transactions,
                        errors,
                    });
                }
                Input::Driver(event) => self.record_event(event, facts)?,
                Input::Due => {}
                Input::Ended => return Err(Stop::Fatal(ConductError::DriverEnded)),
            }
            if heard.0.elapsed() > SETUP_SILENCE {
                let minutes = SETUP_SILENCE.as_secs() / 60;
                let message = format!("the system answered no setup request for {minutes} minutes");
                return Err(Stop::Preparation(message, PreparationCause::System));
            }
        }
    }

    /// Ramp and hold.
    pub(crate) fn measure(
        &mut self,
        driver: &Driver,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        writer: &mut TrialWriter,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        let begun = self.begins_with(system, &mut facts.environment)?;
        let begun = facts.begun.insert(begun);
        let moved = system.keep_on(&self.pinning.system);
        if moved > 0 {
            facts.warnings.push(Warning::PutBack {
                threads: moved as u64,
                cores: cores::words(&self.pinning.system),
            });
        }
        let spans = self.spans();
        let steps = self.plan.question.workload.steps.len();
        let threads = driver.worker_threads();
        let mut measuring = Measuring::new(
            self.monitor(system, threads.first().copied()),
            threads,
            steps,
            facts.files_before,
            spans,
        );
        match self.generators {
            Some(generators) => measuring.workers_at(generators),
            None => measuring.pinned_to(self.pinning.generator.len()),
        }
        let sampler = self.open_profile(system, &mut facts.warnings);
        begun.started = Some(calendar());
        self.meet(driver)?;
        let clock = driver.begin().map_err(driver_stop)?;
        let profiler = sampler.map(|sampler| self.take_profile(sampler, clock, spans));
        let asking = self.ask(system, clock, spans);
        if let Some(beside) = &self.peer {
            beside.slot.begin();
        }
        self.count_there(system, clock, &mut measuring)?;
        writer.monitor_header(measuring.columns())?;
        self.tell(Event::Phase(Phase::Ramp));
        if let Some(url) = system::exporter(&self.trial.system) {
            let exporter = Exporter::new(url)
                .map_err(|problem| Stop::Fatal(ConductError::Unsupported(problem)))?;
            let scraper = Scraper::start(exporter, clock).map_err(ConductError::Scraper)?;
            measuring.scrape(scraper);
        }
        let _behind = self.own_cores().then(Background::lower_priority);
        let result = self.loop_until_done(clock, &mut measuring, events, system, writer, facts);
        if let Some(profiler) = profiler {
            self.end_profile(profiler, facts);
        }
        self.end_asking(asking, writer)?;
        if let Some(beside) = &self.peer {
            beside.change_places(None);
        }
        if let Some(generators) = self.generators {
            write_clocks(&generators.seen(), clock.shared_zero(), writer)?;
        }
        for far in self.agents_of_system() {
            write_clocks(&far.seen(), clock.shared_zero(), writer)?;
        }
        facts.warnings.extend(measuring.missed_by_exporter());
        measuring.came(system.rows(), writer)?;
        measuring.flush(writer)?;
        facts.measured = Some(measuring.finish());
        result
    }

    /// Starts the counters of remote hosts, and emits their core counts.
    fn count_there(
        &mut self,
        system: &mut System,
        clock: Clock,
        measuring: &mut Measuring,
    ) -> Result<(), Stop> {
        let (own, parts) = system.count(clock, measuring.schedule())?;
        if let Some(cores) = own.cores {
            self.tell(Event::CountedThere { cores });
        }
        let mut columns = vec![own.columns];
        for (part, counts) in parts {
            columns.push(counts.columns);
            if let Some(cores) = counts.cores {
                self.tell(Event::PartCountedThere { part, cores });
            }
        }
        measuring.counted_there(columns);
        Ok(())
    }

    /// Records the state at the start of the trial, on each host of its system.
    fn begins_with(
        &self,
        system: &mut System,
        around: &mut TrialEnvironment,
    ) -> Result<Begun, Stop> {
        let touched = environment::touched(self.plan);
        let state = system.state(&self.scratch.data(), &touched)?;
        let state = environment::starting_state(state, &self.trial.system, self.secrets);
        for (name, state) in system.parts.states(&touched)? {
            let part = self.trial.parts.iter().find(|part| part.name() == name);
            let spec = part.map(|part| &part.spec);
            let state = environment::starting_state(state, &spec, self.secrets);
            around.part(&name).starting_state = Some(state);
        }
        let begun = Begun {
            started: None,
            data_bytes: state.data_bytes,
            kernel: system.kernel(),
            storage: system.storage(),
        };
        around.starting_state = Some(state);
        Ok(begun)
    }

    fn spans(&self) -> Spans {
        Spans {
            ramp: self.ramp(),
            hold: self.hold(),
            sampled_as: match self.trial.load.kind {
                LoadKind::Sequence { .. } => self.hold().min(SHORT_SEQUENCE),
                LoadKind::Users | LoadKind::Arrival { .. } => self.hold(),
            },
            after: self.after,
        }
    }

    /// In a duet, waits for the other trial; the generators swap cores from now on.
    fn meet(&self, driver: &Driver) -> Result<(), Stop> {
        let Some(beside) = &self.peer else {
            return Ok(());
        };
        beside.change_places(driver.worker_threads().first().copied());
        let is_given_up = || self.interrupt.load(Ordering::Relaxed) || self.control.skips();
        beside.slot.meet(is_given_up)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the ends of everything that meets in the loop"
    )]
    pub(crate) fn loop_until_done(
        &mut self,
        clock: Clock,
        measuring: &mut Measuring,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        writer: &mut TrialWriter,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        let latest = self.ramp() + self.hold() + DRIVER_GRACE;
        let question = &self.plan.question;
        let mut watch = Watch::new(
            &question.abort_on,
            question.workload.steps.len(),
            self.trial.load.timeout_ms() as f64,
        );
        loop {
            measuring.came(system.rows(), writer)?;
            measuring.due(clock.now(), writer, self.events)?;
            match self.select(events, system, measuring.wait(clock.now()))? {
                Input::Driver(DriverEvent::Window(window)) => {
                    measuring.window(&window, writer)?;
                    if let Some(message) = watch.window(&window) {
                        return Err(Stop::Aborted(message));
                    }
                    self.expect_an_answer(measuring, system, facts)?;
                }
                Input::Driver(DriverEvent::Done) | Input::Ended => return system.check(),
                Input::Driver(event) => self.record_event(event, facts)?,
                Input::Due => {}
            }
            if clock.now() > latest {
                return Err(Stop::overdue());
            }
        }
    }

    /// Ends a trial in which every request fails, unless the study allows that.
    fn expect_an_answer(
        &self,
        measuring: &Measuring,
        system: &mut System,
        facts: &TrialFacts,
    ) -> Result<(), Stop> {
        let Some(errors) = measuring.nothing_but_errors().filter(|_| !self.may_fail()) else {
            return Ok(());
        };
        // The last lines of an ended system are more informative.
        system.check()?;
        let first = facts.error_examples.first();
        let first = first.map_or_else(String::new, |one| {
            format!("; the first, at “{}”: {}", one.step, one.detail)
        });
        Err(Stop::System(format!(
            "all of the first {errors} requests failed, so the trial was ended early{first}"
        )))
    }

    /// Returns true if all requests may fail: the study allows it, or a search tries more users than this cell has
    /// sustained.
    fn may_fail(&self) -> bool {
        let limits = &self.plan.question.thresholds;
        self.goes_beyond || limits.iter().any(|limit| limit.lets_all_fail())
    }

    fn monitor(&self, system: &System, worker: Option<WorkerThread>) -> Monitor {
        let own = std::process::id();
        let named = |name: &str, pid: u32| (name.to_owned(), pid);
        let counted = system.counted();
        let system_process = counted.map(|counted| named("system", counted.pid));
        // In a duet the generator is another process, and the other children of this process belong to the peer.
        let generators = match (&self.peer, worker) {
            (Some(_), Some(worker)) => vec![named("generator", worker.pid), named("partner", own)],
            _ => vec![named("generator", own)],
        };
        Monitor::new(&MonitorSpec {
            data_dir: Some(self.scratch.data()),
            processes: system_process.into_iter().chain(generators).collect(),
            holds: counted
                .and_then(|counted| counted.hold)
                .map(|hold| ("system".to_owned(), hold.clone()))
                .into_iter()
                .collect(),
            remote: system::exporter(&self.trial.system).is_some()
                || remote_host::is_remote(self.trial),
            roots: Roots::default(),
        })
    }

    /// Measures the disk alone, if the study asks for it. The system is idle meanwhile.
    pub(crate) fn raw_pass(&self, facts: &mut TrialFacts) -> Result<(), Stop> {
        let LoadKind::Sequence { sessions, .. } = self.trial.load.kind else {
            return Ok(());
        };
        let carried = self.workloads.iter().find_map(|one| one.transfer.as_ref());
        let Some(transfer) = carried else {
            return Ok(());
        };
        if !self.plan.raw_baseline {
            return Ok(());
        }
        let pass = raw::Pass::of(transfer, sessions);
        let raw = facts.raw.get_or_insert_with(|| RawBaseline {
            files: pass.files,
            file_bytes: pass.file_bytes,
            chunk_bytes: pass.chunk_bytes,
            passes_ms: Vec::new(),
        });
        let folder = self.scratch.file(&format!("raw-{}", raw.passes_ms.len()));
        let took = pass.write(&folder, self.interrupt);
        let took = took.map_err(|source| ConductError::Scratch {
            path: folder,
            source,
        })?;
        raw.passes_ms
            .push(record::ms(took.ok_or(Stop::Interrupted)?));
        Ok(())
    }
}
