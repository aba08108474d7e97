//! One trial: start, provision, setup, ramp, hold, stop; all of it recorded. Judges nothing.
//!
//! The measured part is a loop of *select* (wait for the next thing, and no longer than the next
//! thing due), and *apply* (record it; never waits).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use lab_archive::{
    Circumstances, ErrorExample, Pinning, RawBaseline, TRIAL_SCHEMA, TrialEnd, TrialRecord,
    TrialWriter,
};
use lab_driver::remote::Generators;
use lab_driver::{Clock, Drive, DriveSummary, Driver, DriverError, DriverEvent, Part, TlsOptions};
use lab_monitor::{Monitor, MonitorSpec, Roots};
use lab_study::MailSpec;
use lab_study::plan::{LoadKind, Plan, Trial};
use lab_workload::{User, Workload};

use crate::clock::{Stopwatch, calendar};
use crate::event::{Event, Phase};
use crate::measuring::{LOOK, Measured, Measuring, Spans};
use crate::provision::{self, Registry, UserExtra};
use crate::raw;
use crate::scrape::{Exporter, Scraper};
use crate::scratch::{Scratch, Work};
use crate::snapshot::{self, Snapshots};
use crate::surroundings::{self, Look, Surroundings};
use crate::system::{self, System, SystemStart};
use crate::{ConductError, cores, journal, machine, record};

/// Events that may wait for the conductor.
const QUEUE: usize = 64;
/// A setup that gets no answer for so long has failed.
const SETUP_SILENCE: Duration = Duration::from_secs(300);
/// How long a driver may take to end: when told to, and after the end of its hold.
const DRIVER_GRACE: Duration = Duration::from_secs(30);

/// A sequence is sampled as often as a hold of this length, since it may be over as soon.
const SHORT_SEQUENCE: Duration = Duration::from_secs(6);
/// A request may take a quarter of the hold, but never less than this is granted.
const TIMEOUTS_PER_HOLD: u32 = 4;
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a trial stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The system under test failed; with its last lines.
    System(String),
    /// A generator process failed; with its last words.
    Generator(String),
    /// The user wants it.
    Interrupted,
    /// The run can't go on.
    Fatal(ConductError),
}

impl<E: Into<ConductError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// What a trial is run with.
pub(crate) struct Conductor<'a> {
    pub(crate) program: &'a std::path::Path,
    pub(crate) plan: &'a Plan,
    pub(crate) trial: &'a Trial,
    /// At the plan's speed.
    pub(crate) workload: &'a Arc<Workload>,
    pub(crate) pinning: &'a Pinning,
    pub(crate) scratch: &'a Scratch,
    /// The folder that the trial's is in.
    pub(crate) work: &'a Work,
    pub(crate) snapshots: &'a Snapshots,
    /// Kernel settings in force.
    pub(crate) kernel: BTreeMap<String, String>,
    /// Ramps and holds of the trials that follow.
    pub(crate) after: Duration,
    pub(crate) events: &'a mut dyn FnMut(Event),
    pub(crate) interrupt: &'a AtomicBool,
}

/// What is learned on the way.
#[derive(Debug, Default)]
struct Facts {
    started: Option<String>,
    provision: Duration,
    setup: Duration,
    setup_transactions: u64,
    setup_errors: u64,
    error_examples: Vec<ErrorExample>,
    start_data_bytes: u64,
    circumstances: Circumstances,
    /// Of this process, before the driver's.
    files_before: usize,
    workers: usize,
    measured: Measured,
    raw: Option<RawBaseline>,
    notes: Vec<String>,
}

impl Conductor<'_> {
    /// Runs the trial and completes it in the archive. False when it was interrupted; then the
    /// archive holds nothing of it.
    pub(crate) fn conduct(mut self, mut writer: TrialWriter) -> Result<bool, ConductError> {
        let watch = Stopwatch::start();
        let mut facts = Facts::default();
        let end = match self.attempt(&mut writer, &mut facts) {
            Ok(()) => TrialEnd::Complete,
            Err(Stop::System(message)) => TrialEnd::SystemFailed { message },
            Err(Stop::Generator(message)) => TrialEnd::GeneratorFailed { message },
            Err(Stop::Interrupted) => return Ok(false),
            Err(Stop::Fatal(error)) => return Err(error),
        };
        let (transactions, errors) = (facts.measured.transactions, facts.measured.errors);
        writer.finish(&self.record(facts, end.clone()))?;
        let (id, took) = (self.trial.id, watch.elapsed());
        self.tell(Event::TrialDone {
            id,
            end,
            transactions,
            errors,
            took,
        });
        Ok(true)
    }

    fn attempt(&mut self, writer: &mut TrialWriter, facts: &mut Facts) -> Result<(), Stop> {
        let watch = Stopwatch::start();
        let filled = self.restore()?;
        facts.provision = watch.elapsed();
        self.tell(Event::Phase(Phase::Starting));
        let before = Look::now();
        let start = self.system(self.scratch, writer.output_path());
        let mut system = start.start(self.interrupt)?;
        let result = self.with_system(&mut system, (&before, filled), writer, facts);
        self.tell(Event::Phase(Phase::Stopping));
        facts.notes.extend(system.stop());
        result
    }

    fn system<'s>(&'s self, scratch: &'s Scratch, output: std::path::PathBuf) -> SystemStart<'s> {
        SystemStart {
            program: self.program,
            spec: &self.trial.system,
            cores: if self.pinning.system.is_empty() {
                &self.pinning.generator
            } else {
                &self.pinning.system
            },
            scratch,
            output,
        }
    }

    /// Puts filled mailboxes in the trial's folder, and gives what their users sign in with. The
    /// first trial that begins so has them filled. `None` where there are none to fill.
    fn restore(&mut self) -> Result<Option<UserExtra>, Stop> {
        let Some(mut state) = snapshot::state(self.trial) else {
            return Ok(None);
        };
        // They may be others in each block.
        state.push_str(&self.names()?.unwrap_or_default().join(" "));
        self.tell(Event::Phase(Phase::Provisioning));
        if !self.snapshots.has(&state) {
            let scratch = self.work.filling()?;
            let start = self.system(&scratch, scratch.file("output"));
            let mut system = start.start(self.interrupt)?;
            let users = self.provision(&mut system)?;
            if let Some(problem) = system.stop() {
                let what = "the mailboxes that trials begin with can't be kept";
                return Err(Stop::System(format!("{what}: {problem}")));
            }
            let filled = (self.work, &scratch);
            self.snapshots.keep(state.clone(), filled, users)?;
        }
        Ok(Some(self.snapshots.restore(&state, self.scratch)?))
    }

    fn with_system(
        &mut self,
        system: &mut System,
        (before, filled): (&Look, Option<UserExtra>),
        writer: &mut TrialWriter,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        self.tell(Event::Phase(Phase::Provisioning));
        let watch = Stopwatch::start();
        let user_extra = match filled {
            Some(users) => users,
            None => self.provision(system)?,
        };
        facts.provision += watch.elapsed();
        self.tell(Event::Phase(Phase::Setup));
        let (sender, events) = sync_channel(QUEUE);
        facts.files_before = machine::own_open_files();
        let driver = self.driver(self.drive(system, user_extra), sender)?;
        facts.workers = driver.worker_threads().len();
        let result = self.setup(&events, system, facts).and_then(|()| {
            self.raw_pass(facts)?;
            let pid = system.pid();
            let around = Surroundings::begin(before, pid, &mut facts.circumstances);
            let result = self.measure(&driver, &events, system, writer, facts);
            let ports = machine::ports().unwrap_or(u64::MAX);
            around.end(&facts.measured.peaks, ports, &mut facts.circumstances);
            result.and_then(|()| self.raw_pass(facts))
        });
        if result.is_err() {
            driver.stop();
        }
        end_driver(driver, &events, result.is_ok()).and(result)
    }

    /// What the disk alone does now, where the study asks for it. The system is idle meanwhile.
    fn raw_pass(&self, facts: &mut Facts) -> Result<(), Stop> {
        let LoadKind::Sequence { sessions } = self.trial.load.kind else {
            return Ok(());
        };
        let Some(transfer) = self.workload.transfer.as_ref() else {
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

    /// Starts the driver: in this process, or as several where the load is spread over them. A
    /// sequence has one user, and nothing to spread.
    fn driver(&self, drive: Drive, events: SyncSender<DriverEvent>) -> Result<Driver, Stop> {
        let load = &self.trial.load;
        let driver = if load.generators > 1 && !matches!(load.kind, LoadKind::Sequence { .. }) {
            let generators = Generators {
                program: self.program.to_path_buf(),
                arguments: vec!["generate".to_owned()],
                count: load.generators,
            };
            Driver::start_generators(&drive, &generators, events)
        } else {
            Driver::start(drive, events)
        };
        driver.map_err(driver_stop)
    }

    /// The names of the trial's users, where they need accounts.
    fn names(&self) -> Result<Option<Vec<String>>, Stop> {
        let first = User {
            index: 0,
            users: self.trial.load.users,
            seed: self.plan.seed,
            block: self.trial.block,
            base_date: self.plan.dates_from,
        };
        provision::names(self.workload, first)
            .map_err(|problem| Stop::Fatal(ConductError::Unsupported(problem)))
    }

    /// Registers the users where the system has a way to.
    fn provision(&self, system: &mut System) -> Result<UserExtra, Stop> {
        let Some(token) = system.token().map(str::to_owned) else {
            return Ok(UserExtra::new());
        };
        let Some(names) = self.names()? else {
            return Ok(UserExtra::new());
        };
        let mailbox_pad_bytes = system::mailbox_pad_bytes(&self.trial.system);
        let registry = Registry {
            server: system.address(),
            token: &token,
            mailbox_pad_bytes,
        };
        let registered = registry.register(&names, self.interrupt).and_then(|extra| {
            if let Some(mail) = system::mail(&self.trial.system) {
                registry.fill(&names, mail, self.plan.seed, self.interrupt)?;
            }
            Ok(extra)
        });
        // A dead server says more by its last lines than by a refused connection.
        if let Err(Stop::System(_)) = &registered {
            system.check()?;
        }
        registered
    }

    fn drive(&self, system: &System, user_extra: UserExtra) -> Drive {
        let load = &self.trial.load;
        let cores = self.pinning.generator.iter().map(|core| *core as usize);
        Drive {
            workload: Arc::clone(self.workload),
            base: system.base().clone(),
            tls: TlsOptions::default(),
            kind: load.kind,
            users: load.users,
            part: Part::WHOLE,
            user_extra,
            seed: self.plan.seed,
            block: self.trial.block,
            base_date: self.plan.dates_from,
            cores: cores.collect(),
            // A system that runs already may do so anywhere.
            own_cores: !self.pinning.shared && !system::is_attached(&self.trial.system),
            ramp: self.ramp(),
            hold: self.hold(),
            window: Duration::from_millis(load.window_ms.max(1)),
            limits: self.limits(),
        }
    }

    /// A sped-up hold is short; a server that hangs in it must show as timeouts, not as silence.
    fn limits(&self) -> lab_driver::Limits {
        let limits = lab_driver::Limits::default();
        let load = &self.trial.load;
        if let Some(ms) = load.time_limit_ms.or(load.timeout_ms) {
            return lab_driver::Limits {
                request_timeout: Duration::from_millis(ms),
                timeout_ends_step: load.time_limit_ms.is_some(),
                ..limits
            };
        }
        let within = (self.hold() / TIMEOUTS_PER_HOLD).max(SHORTEST_TIMEOUT);
        lab_driver::Limits {
            request_timeout: limits.request_timeout.min(within),
            ..limits
        }
    }

    fn ramp(&self) -> Duration {
        Duration::from_millis(self.trial.load.ramp_ms)
    }

    fn hold(&self) -> Duration {
        Duration::from_millis(self.trial.load.hold_ms)
    }

    /// Awaits the end of setup.
    fn setup(
        &mut self,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let mut heard = (Stopwatch::start(), 0);
        loop {
            match self.select(events, system, LOOK)? {
                Input::Driver(DriverEvent::SetupDone {
                    transactions,
                    errors,
                    elapsed,
                    ..
                }) => {
                    facts.setup = elapsed;
                    facts.setup_transactions = transactions;
                    facts.setup_errors = errors;
                    return Ok(());
                }
                Input::Driver(DriverEvent::SetupProgress {
                    step,
                    steps,
                    users_done,
                    transactions,
                    errors,
                }) => {
                    if heard.1 != transactions {
                        heard = (Stopwatch::start(), transactions);
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
                Input::Driver(event) => facts.example(event),
                Input::Due => {}
                Input::Ended => return Err(Stop::Fatal(ConductError::DriverEnded)),
            }
            if heard.0.elapsed() > SETUP_SILENCE {
                let minutes = SETUP_SILENCE.as_secs() / 60;
                let message = format!("the system answered no setup request for {minutes} minutes");
                return Err(Stop::System(message));
            }
        }
    }

    /// Ramp and hold.
    fn measure(
        &mut self,
        driver: &Driver,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        writer: &mut TrialWriter,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let state = surroundings::starting_state(self.plan, &self.trial.system, self.scratch);
        facts.start_data_bytes = state.data_bytes;
        facts.circumstances.starting_state = Some(state);
        let spans = Spans {
            ramp: self.ramp(),
            hold: self.hold(),
            sampled_as: match self.trial.load.kind {
                LoadKind::Sequence { .. } => self.hold().min(SHORT_SEQUENCE),
                LoadKind::Users | LoadKind::Arrival { .. } => self.hold(),
            },
            after: self.after,
        };
        let steps = self.workload.session.steps.len();
        let threads = driver.worker_threads();
        let mut measuring = Measuring::new(
            self.monitor(system),
            threads,
            steps,
            facts.files_before,
            spans,
        );
        measuring.pinned_to(self.pinning.generator.len());
        writer.monitor_header(measuring.columns())?;
        facts.started = Some(calendar());
        let clock = driver.begin();
        self.tell(Event::Phase(Phase::Ramp));
        if let Some(url) = system::exporter(&self.trial.system) {
            let exporter = Exporter::new(url)
                .map_err(|problem| Stop::Fatal(ConductError::Unsupported(problem)))?;
            let scraper = Scraper::start(exporter, clock).map_err(ConductError::Scraper)?;
            measuring.scrape(scraper);
        }
        let result = self.loop_until_done(clock, &mut measuring, events, system, writer, facts);
        facts.notes.extend(measuring.scraper_note());
        facts.measured = measuring.finish();
        result
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the ends of everything that meets in the loop"
    )]
    fn loop_until_done(
        &mut self,
        clock: Clock,
        measuring: &mut Measuring,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        writer: &mut TrialWriter,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let latest = self.ramp() + self.hold() + DRIVER_GRACE;
        loop {
            measuring.due(clock.now(), writer, self.events)?;
            match self.select(events, system, measuring.wait(clock.now()))? {
                Input::Driver(DriverEvent::Window(window)) => measuring.window(&window, writer)?,
                Input::Driver(DriverEvent::Done) | Input::Ended => return system.check(),
                Input::Driver(event) => facts.example(event),
                Input::Due => {}
            }
            if clock.now() > latest {
                return Err(Stop::Fatal(ConductError::DriverEnded));
            }
        }
    }

    fn monitor(&self, system: &System) -> Monitor {
        Monitor::new(&MonitorSpec {
            data_dir: Some(self.scratch.data()),
            processes: system
                .pid()
                .map(|pid| ("system".to_owned(), pid))
                .into_iter()
                .chain([("generator".to_owned(), std::process::id())])
                .collect(),
            remote: system::exporter(&self.trial.system).is_some(),
            roots: Roots::default(),
        })
    }

    /// Waits for the driver's next event, for as long as `wait`; looks at the interrupt and at the
    /// system on the way.
    fn select(
        &self,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        wait: Duration,
    ) -> Result<Input, Stop> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        match events.recv_timeout(wait) {
            Ok(event) => Ok(Input::Driver(event)),
            Err(RecvTimeoutError::Timeout) => system.check().map(|()| Input::Due),
            Err(RecvTimeoutError::Disconnected) => Ok(Input::Ended),
        }
    }

    fn record(&self, facts: Facts, end: TrialEnd) -> TrialRecord {
        let (generator, note) = facts.measured.health.summary(facts.workers);
        let unanswered = facts.measured.unanswered;
        let mut notes = facts.notes;
        if matches!(end, TrialEnd::Complete) {
            notes.extend(note);
        }
        if system::is_attached(&self.trial.system) {
            let not = "The system is not pinned: it is attached to, and on whatever cores it is.";
            notes.push(not.to_owned());
        }
        if self.pinning.shared {
            notes.push("The generator and the system share a core.".to_owned());
        }
        for setting in &self.trial.host.kernel {
            let in_force = self.kernel.get(&setting.name).unwrap_or(&setting.value);
            if !journal::same(in_force, &setting.value) {
                notes.push(format!(
                    "The kernel made {} of {} for {}.",
                    in_force, setting.value, setting.name
                ));
            }
        }
        let pad = system::mailbox_pad_bytes(&self.trial.system);
        if pad > 0 {
            notes.push(format!(
                "Each mailbox is padded by {pad} bytes before the trial."
            ));
        } else if let Some(MailSpec { messages, .. }) = system::mail(&self.trial.system) {
            notes.push(format!(
                "Each mailbox holds {messages} messages before the trial, which begins with a copy of \
                 data that was filled once."
            ));
        } else if system::is_groupware(&self.trial.system) {
            let not = "Mailboxes are not padded: they hold what the workload puts into them.";
            notes.push(not.to_owned());
        }
        if let Some(threads) = system::http_threads(&self.trial.system) {
            notes.push(format!(
                "http_threads {threads}: that many threads, and at most that many requests worked \
                 on at once. Unlike in a server that gives each request a thread, a thread serves \
                 the connections that the kernel gave it, works on another request while one waits \
                 for the disk, and sends responses outside of that bound."
            ));
        }
        if let LoadKind::Sequence { sessions } = self.trial.load.kind
            && facts.measured.sessions < u64::from(sessions)
        {
            notes.push(format!(
                "The sequence was cut by the end of its time: {} of {sessions} sessions were begun.",
                facts.measured.sessions
            ));
        }
        let timeout = self.limits().request_timeout.as_secs_f64();
        notes.push(match self.trial.load.time_limit_ms {
            Some(_) => format!(
                "An operation that takes over {timeout} s is given up: its step has a bound \
                 instead of times, and is not repeated any further in that session."
            ),
            None => format!("A request that takes over {timeout} s is a timeout, an error."),
        });
        TrialRecord {
            schema: TRIAL_SCHEMA.to_owned(),
            id: self.trial.id,
            started: facts.started.unwrap_or_else(calendar),
            end,
            ramp_ms: self.trial.load.ramp_ms,
            hold_ms: self.trial.load.hold_ms,
            elapsed_ms: whole_ms(facts.measured.elapsed),
            provision_ms: whole_ms(facts.provision),
            setup_ms: whole_ms(facts.setup),
            setup_transactions: facts.setup_transactions,
            setup_errors: facts.setup_errors,
            error_examples: facts.error_examples,
            unanswered: (unanswered.count > 0).then(|| lab_archive::Unanswered {
                count: unanswered.count,
                oldest_ms: record::ms(unanswered.oldest),
            }),
            raw: facts.raw,
            generator,
            start_data_bytes: facts.start_data_bytes,
            circumstances: facts.circumstances,
            system_settings: self.settings(),
            notes,
        }
    }

    /// Those of the system, then those around it.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = system::settings(&self.trial.system);
        let kernel = self.kernel.iter();
        settings.extend(kernel.map(|(name, value)| (format!("kernel {name}"), value.clone())));
        let host = &self.trial.host;
        if host.cpus.is_some() {
            let cores = cores::words(&self.pinning.system);
            settings.insert("cpus".to_owned(), cores);
        }
        if let Some(storage) = &host.storage {
            let kind = machine::filesystem(storage.as_ref()).unwrap_or_default();
            settings.insert("storage".to_owned(), format!("{storage} ({kind})"));
        }
        settings
    }

    fn tell(&mut self, event: Event) {
        (self.events)(event);
    }
}

fn whole_ms(t: Duration) -> u64 {
    u64::try_from(t.as_millis()).unwrap_or(u64::MAX)
}

/// The next thing that happens.
enum Input {
    /// The driver tells something.
    Driver(DriverEvent),
    /// Nothing, and something else is due.
    Due,
    /// The driver tells nothing any more.
    Ended,
}

impl Facts {
    /// Keeps an example of an error; other events tell nothing here.
    fn example(&mut self, event: DriverEvent) {
        if let DriverEvent::ErrorExample {
            t,
            step,
            class,
            detail,
        } = event
        {
            let class = record::class(class);
            self.error_examples.push(ErrorExample {
                t_ms: whole_ms(t),
                step,
                class,
                detail,
            });
        }
    }
}

/// A generator that fails is a fact of its trial, as a failing system is.
fn driver_stop(error: DriverError) -> Stop {
    match error {
        DriverError::Generator { .. } => Stop::Generator(error.to_string()),
        error => error.into(),
    }
}

/// Awaits the driver's end. One that does not end is left behind, told to stop.
fn end_driver(
    driver: Driver,
    events: &Receiver<DriverEvent>,
    expect_whole: bool,
) -> Result<DriveSummary, Stop> {
    let watch = Stopwatch::start();
    loop {
        match events.recv_timeout(LOOK) {
            Ok(DriverEvent::Done) | Err(RecvTimeoutError::Disconnected) => break,
            _ if watch.elapsed() > DRIVER_GRACE => {
                return Err(Stop::Fatal(ConductError::DriverEnded));
            }
            _ => {}
        }
    }
    let summary = driver.join().map_err(driver_stop)?;
    if expect_whole && summary.stopped_early {
        return Err(Stop::Fatal(ConductError::DriverEnded));
    }
    Ok(summary)
}
