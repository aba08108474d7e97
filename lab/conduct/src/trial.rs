//! One trial: start, provision, setup, ramp, hold, stop; all of it recorded. Judges nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use lab_archive::{PreparationCause, TrialEnd, TrialWriter, Warning};
use lab_client::Protocol;
use lab_driver::remote::Generators;
use lab_driver::{Assignment, Calls, Driver, DriverEvent, DriverSummary, Mix, Part};
use lab_host::clock::Stopwatch;
use lab_host::machine;
use lab_machine::http::Client;
use lab_machine::scratch::Scratch;
use lab_machine::{PREPARES, ProgramSnapshot, Runner, Slot, output};
use lab_study::plan::LoadKind;

use crate::course::{Conductor, TrialFacts, TrialPopulation};
use crate::environment::EnvironmentReadings;
use crate::event::{Event, Phase};
use crate::generators::agent;
use crate::measuring::EVENT_WAIT;
use crate::provision::Preparing;
use crate::remote_host::SystemMachine;
use crate::start::{Process, System, SystemStart, UserExtra};
use crate::stop::{DRIVER_GRACE, Stop, driver_stop, stopped, with_end};
use crate::{ConductError, connect, environment, masked, parts, remote_host, state, system};

/// Most queued events.
const QUEUE: usize = 64;

/// The end of a trial, for event consumers.
pub(crate) struct Done {
    pub(crate) end: TrialEnd,
    pub(crate) transactions: u64,
    pub(crate) errors: u64,
    pub(crate) took: Duration,
}

impl Conductor<'_> {
    /// Runs the trial and completes it in the archive. `None` when it was interrupted; then the archive holds nothing
    /// of it.
    pub(crate) fn conduct(mut self, mut writer: TrialWriter) -> Result<Option<Done>, ConductError> {
        let watch = Stopwatch::start();
        let mut facts = TrialFacts::default();
        facts.environment.quiet = self.quiet.take();
        let end = match self.attempt(&mut writer, &mut facts) {
            Ok(()) => TrialEnd::Complete,
            // An interrupt may end all processes of a run: later failures are its effects.
            Err(Stop::System(_) | Stop::Preparation(..) | Stop::Generator(_) | Stop::Lost(_))
                if self.interrupt.load(Ordering::Relaxed) =>
            {
                return Ok(None);
            }
            Err(Stop::System(message)) => TrialEnd::SystemFailed { message },
            Err(Stop::Preparation(message, cause)) => {
                TrialEnd::PreparationFailed { message, cause }
            }
            Err(Stop::Generator(message)) => TrialEnd::GeneratorFailed { message },
            Err(Stop::Lost(message)) => TrialEnd::AgentLost { message },
            Err(Stop::Aborted(message)) => TrialEnd::Aborted { message },
            Err(Stop::Interrupted) => return Ok(None),
            Err(Stop::Fatal(error)) => return Err(error),
        };
        let output = writer.output_path();
        let parts = self.trial.parts.iter();
        let parts = parts.map(|part| parts::output(&output, part.name()));
        let parts: Vec<PathBuf> = parts.filter(|part| part.exists()).collect();
        for output in [vec![output], parts].concat() {
            let note = output::shorten(&output)
                .and_then(|note| output::mask(&output, self.secrets).map(|()| note))
                .map_err(|source| ConductError::Scratch {
                    path: output,
                    source,
                })?;
            facts.notes.extend(note);
        }
        let measured = facts.measured.as_ref();
        let (transactions, errors) = measured.map_or((0, 0), |one| (one.transactions, one.errors));
        let mut record = self.record(facts, end.clone());
        masked::record(self.secrets, &mut record);
        writer.finish(&record)?;
        Ok(Some(Done {
            end,
            transactions,
            errors,
            took: watch.elapsed(),
        }))
    }

    fn attempt(&mut self, writer: &mut TrialWriter, facts: &mut TrialFacts) -> Result<(), Stop> {
        let watch = Stopwatch::start();
        let filled = self.restore()?;
        facts.provision = watch.elapsed();
        self.tell(Event::Phase(Phase::Starting));
        let before = ProgramSnapshot::now();
        let start = self.system(self.scratch, writer.output_path());
        let mut system = system::start(&start, self.interrupt)?;
        facts.warnings.extend(system.warning.take());
        let result = self.with_system(&mut system, (&before, filled), writer, facts);
        self.tell(Event::Phase(Phase::Stopping));
        let (result, note) = with_end(result, system.stop());
        facts.notes.extend(note);
        self.tell_far(facts);
        result
    }

    /// The agent of the system's remote host.
    pub(crate) fn far(&self) -> Option<&SystemMachine> {
        self.machines.get(self.trial.host.on.as_ref()?)
    }

    /// Which of a duet's trials it is.
    fn slot(&self) -> Option<Slot> {
        let beside = self.peer.as_ref()?;
        Some(match beside.slot.is_left() {
            true => Slot::Left,
            false => Slot::Right,
        })
    }

    /// Records the system's host, and the offset of its clock.
    fn tell_far(&self, facts: &mut TrialFacts) {
        let around = &mut facts.environment;
        let parts = self.trial.parts.iter();
        for (name, on) in parts.filter_map(|part| Some((part.name(), part.host.on.as_ref()?))) {
            let machine = self.machines.get(on);
            let agent = machine.and_then(|machine| machine.seen().first().map(agent));
            if agent.is_some() {
                let part = Some(name.to_owned());
                facts.warnings.push(Warning::RanElsewhere { part });
            }
            around.part(name).agent = agent;
        }
        let Some(far) = self.far() else { return };
        around.system_agent = far.seen().first().map(agent);
        if around.system_agent.is_some() {
            facts.warnings.push(Warning::RanElsewhere { part: None });
        }
    }

    /// All agents that have a part of the system, by host.
    pub(crate) fn agents_of_system(&self) -> impl Iterator<Item = &SystemMachine> {
        let machines = self.trial.machines();
        machines.filter_map(|on| self.machines.get(on))
    }

    pub(crate) fn system<'s>(&'s self, scratch: &'s Scratch, output: PathBuf) -> SystemStart<'s> {
        SystemStart {
            program: self.program,
            spec: &self.trial.system,
            reach: &self.trial.reach,
            cores: if self.pinning.system.is_empty() {
                &self.pinning.generator
            } else {
                &self.pinning.system
            },
            scratch,
            far: self.far(),
            core_sharing: self.slot().zip(remote_host::core_sharing(self.plan)),
            machines: self.machines,
            trial: self.trial,
            output,
        }
    }

    /// Copies the initial state of the trial to its folder, and returns its users' sign-in variables. The first trial
    /// with this state has it prepared. `None` if none is kept.
    pub(crate) fn restore(&mut self) -> Result<Option<UserExtra>, Stop> {
        // It can't be copied between hosts: each trial makes its own.
        if remote_host::has_remote_part(self.trial) {
            return Ok(None);
        }
        let Some(mut state) = state::state(self.plan, self.trial) else {
            return Ok(None);
        };
        let Some(keep) = self.trial.system.preparation().keep.clone() else {
            return Ok(None);
        };
        // They may differ between blocks.
        let users = self.users(Default::default()).hash();
        state.push_str(&users.map_err(|e| Stop::Fatal(ConductError::Unsupported(e)))?);
        self.tell(Event::Phase(Phase::Provisioning));
        let snapshots = self.snapshots;
        let _alone = snapshots.alone();
        if !self.snapshots.has(&state) {
            let scratch = self.work.filling()?;
            let start = self.system(&scratch, scratch.file("output"));
            let mut system = system::start(&start, self.interrupt)?;
            let users = self.prepare(&start, &mut system)?;
            if let Some(problem) = system.stop()? {
                let what = "the state that trials begin with can't be kept";
                let problem = format!("{what}: {problem}");
                return Err(Stop::Preparation(problem, PreparationCause::System));
            }
            let filled = (self.work, &scratch);
            let folder = &keep.folder;
            self.snapshots.keep(state.clone(), folder, filled, users)?;
        }
        let restored = self.snapshots.restore(&state, &keep, self.scratch)?;
        Ok(Some(restored))
    }

    fn with_system(
        &mut self,
        system: &mut System,
        (before, filled): (&ProgramSnapshot, Option<UserExtra>),
        writer: &mut TrialWriter,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        if filled.is_none() && self.is_prepared() {
            self.tell(Event::Phase(Phase::Provisioning));
        }
        let watch = Stopwatch::start();
        let user_extra = match filled {
            Some(users) => users,
            None => {
                let start = self.system(self.scratch, writer.output_path());
                self.prepare(&start, system)?
            }
        };
        facts.provision += watch.elapsed();
        if self.workloads.iter().any(|one| !one.setup.is_empty()) {
            self.tell(Event::Phase(Phase::Setup));
        }
        // In a duet the generator is a process of its own.
        facts.files_before = match self.peer {
            Some(_) => 0,
            None => machine::own_open_files(),
        };
        let mix = self.mix(system, user_extra)?;
        let set_up = lab_driver::set_up(mix, self.interrupt).map_err(driver_stop)?;
        let (mix, calls) = set_up.ok_or(Stop::Interrupted)?;
        let result = self.under_load(&mix, calls, (system, before), writer, facts);
        self.tear_down(&mix, system, facts);
        result
    }

    /// Runs the load on a system that is ready for it.
    fn under_load(
        &mut self,
        mix: &Mix,
        calls: Calls,
        (system, before): (&mut System, &ProgramSnapshot),
        writer: &mut TrialWriter,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        for event in calls.events {
            self.record_event(event, facts)?;
        }
        let (sender, events) = sync_channel(QUEUE);
        let driver = self.driver(mix.clone(), sender)?;
        facts.workers = match self.generators {
            Some(generators) => generators.workers(),
            None => driver.worker_threads().len(),
        };
        let result = self.setup(&events, system, facts).and_then(|mut set_up| {
            set_up.transactions += calls.transactions;
            set_up.errors += calls.errors;
            facts.set_up = Some(set_up);
            self.raw_pass(facts)?;
            let around = EnvironmentReadings::begin(before, system)?;
            let result = self.measure(&driver, &events, system, writer, facts);
            let result = result.and_then(|()| self.write_profile(writer, facts));
            // Each source address has its own ports.
            let sources = connect::sources(&self.trial.reach).count().max(1) as u64;
            let ports = machine::ports().unwrap_or(u64::MAX).saturating_mul(sources);
            let peaks = facts.measured.as_ref().map(|one| one.peaks);
            let peaks = peaks.unwrap_or_default();
            around.end(system, &peaks, ports, &mut facts.environment);
            let record = &mut facts.environment;
            result.and_then(|()| environment::read_remote(system, record))?;
            self.raw_pass(facts)
        });
        if let Some(generators) = self.generators {
            facts.environment.agents = generators.seen().iter().map(agent).collect();
            facts.warnings.push(Warning::DrivenByAgents);
        }
        if result.is_err() {
            driver.stop();
        }
        end_driver(driver, &events, result.is_ok(), facts).and(result)
    }

    /// Calls the `teardown` of the load's scripts, unless the system has ended. A failure changes nothing that was
    /// measured.
    fn tear_down(&mut self, mix: &Mix, system: &mut System, facts: &mut TrialFacts) {
        if system.check().is_ok() {
            let (calls, problems) = lab_driver::tear_down(mix, self.interrupt);
            facts.notes.extend(problems);
            let notes = calls.events.into_iter();
            notes.for_each(|event| facts.script(&event));
        }
    }

    /// Starts the driver: in this process, or as several if the load is spread over them, or as one of two in a duet. The
    /// users of a sequence stay together.
    fn driver(&self, mix: Mix, events: SyncSender<DriverEvent>) -> Result<Driver, Stop> {
        let load = &self.trial.load;
        let is_spread = load.generators > 1 && !matches!(load.kind, LoadKind::Sequence { .. });
        let driver = if let Some(generators) = self.generators {
            generators.reach(mix.first())?;
            generators.start(mix, events)
        } else if is_spread || self.peer.is_some() {
            let generators = Generators {
                program: self.program.to_path_buf(),
                arguments: vec!["generate".to_owned()],
                count: load.generators,
            };
            Driver::start_generators(mix, &generators, events)
        } else {
            Driver::start(mix, events)
        };
        driver.map_err(driver_stop)
    }

    /// Returns true if any work precedes the load.
    pub(crate) fn is_prepared(&self) -> bool {
        let preparation = self.trial.system.preparation();
        !preparation.provision.is_empty() || !preparation.fill.is_empty()
    }

    /// Provisions users and fills the state, by the study.
    pub(crate) fn prepare(
        &self,
        start: &SystemStart<'_>,
        system: &mut System,
    ) -> Result<UserExtra, Stop> {
        let setting = system.setting.clone();
        if setting.preparation.provision.is_empty() && setting.preparation.fill.is_empty() {
            return Ok(UserExtra::new());
        }
        let port = system.address().port().to_string();
        let users = self.users([port, setting.scratch.clone(), setting.secret.clone()]);
        let here = start.here();
        let runner = Runner {
            start: &here,
            env: &setting.env,
            folder: &setting.folder,
        };
        let is_attached = system::is_attached(&self.trial.system);
        let (base, address) = (system.base().clone(), system.address());
        let client = Client::new(base, address, system.reach.tls.clone());
        let users_file = start.scratch.users();
        let process = &mut system.process;
        let mut run = |at: usize| {
            let done = match process {
                Process::Own(machine) if !is_attached => {
                    machine.prepare(at, &users_file, self.interrupt)
                }
                // A server that already runs is prepared from here.
                _ => {
                    let file = users_file.to_string_lossy();
                    let argv = lab_machine::command(&setting.preparation, at, &file);
                    runner.run(PREPARES, &argv.unwrap_or_default(), self.interrupt)
                }
            };
            done.map_err(|failed| stopped(failed).in_preparation(PreparationCause::Study))
        };
        let mut preparing = Preparing {
            users: &users,
            client,
            run: &mut run,
            users_file: &users_file,
            interrupt: self.interrupt,
        };
        let prepared = preparing.prepare(&setting.preparation);
        // A dead server's last lines are more informative than a refused connection.
        if let Err(Stop::Preparation(..)) = &prepared {
            system.check()?;
        }
        prepared
    }

    /// The load: all populations of the trial.
    pub(crate) fn mix(&self, system: &System, user_extra: UserExtra) -> Result<Mix, Stop> {
        let mut left = user_extra.into_iter();
        let populations = self.populations().into_iter();
        let mut drives = populations.map(|population| {
            let own: UserExtra = left.by_ref().take(population.load.users as usize).collect();
            self.assignment(system, &population, own)
        });
        // A study without a workload has no load.
        let first = drives.next();
        let first = first.ok_or(Stop::Fatal(ConductError::DriverEnded))?;
        Ok(drives.fold(Mix::from(first), Mix::and))
    }

    fn assignment(
        &self,
        system: &System,
        population: &TrialPopulation<'_>,
        user_extra: UserExtra,
    ) -> Assignment {
        let load = &population.load;
        let cores = self.pinning.generator.iter().map(|core| *core as usize);
        Assignment {
            population: population.name.to_owned(),
            first: population.first,
            workload: Arc::clone(population.workload),
            base: system.users_base(),
            tls: system.reach.options.clone(),
            resolve: system.reach.hosts.clone(),
            sources: system.reach.sources.clone(),
            protocol: self.protocol(system, population),
            kind: load.kind,
            users: load.users,
            part: Part::whole(),
            user_extra,
            seed: population.seed,
            block: self.trial.block,
            base_date: self.plan.dates_from,
            cores: cores.collect(),
            own_cores: self.own_cores(),
            ramp: self.ramp(),
            hold: self.hold(),
            stages: load.stages.clone(),
            timeline: load.timeline.clone(),
            window: Duration::from_millis(load.window_ms.max(1)),
            limits: self.limits(),
        }
    }

    /// The protocol of a population, with its part of shared connections.
    fn protocol(&self, system: &System, population: &TrialPopulation<'_>) -> Protocol {
        let protocol = system.reach.protocol;
        let (own, all) = (
            u64::from(population.load.users),
            u64::from(self.trial.load.users),
        );
        let part = |shared: u32| (u64::from(shared) * own).div_ceil(all.max(1)).max(1) as u32;
        Protocol {
            shared: protocol.shared.map(part),
            ..protocol
        }
    }

    /// Returns true if the generator has cores of its own. A system that already runs may be anywhere.
    pub(crate) fn own_cores(&self) -> bool {
        !self.pinning.shared && !system::is_elsewhere(self.trial)
    }

    /// The cores for work beside the load, so that it takes no CPU from the system: the generator's own. Empty for any
    /// core.
    pub(crate) fn beside_cores(&self) -> Vec<u32> {
        match self.own_cores() {
            true => self.pinning.generator.clone(),
            false => Vec::new(),
        }
    }
}

/// Waits for the driver's end. A driver that does not end gets a request to stop and is abandoned.
fn end_driver(
    driver: Driver,
    events: &Receiver<DriverEvent>,
    expect_whole: bool,
    facts: &mut TrialFacts,
) -> Result<DriverSummary, Stop> {
    let watch = Stopwatch::start();
    loop {
        match events.recv_timeout(EVENT_WAIT) {
            Ok(DriverEvent::Done) | Err(RecvTimeoutError::Disconnected) => break,
            _ if watch.elapsed() > DRIVER_GRACE => {
                return Err(Stop::overdue());
            }
            // The notes of a script count to the end, also those of a stopped load.
            Ok(event) => facts.script(&event),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let summary = driver.join().map_err(driver_stop)?;
    if expect_whole && summary.stopped_early {
        return Err(Stop::Fatal(ConductError::DriverEnded));
    }
    Ok(summary)
}
