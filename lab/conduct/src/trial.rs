//! One trial: start, provision, setup, ramp, hold, stop; all of it recorded. Judges nothing.
//!
//! The measured part is a loop of *select* (wait for the next thing, and no longer than the next
//! thing due), and *apply* (record it; never waits).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use lab_archive::{ErrorExample, Pinning, TRIAL_SCHEMA, TrialEnd, TrialRecord, TrialWriter};
use lab_driver::{BaseUrl, Clock, Drive, DriveSummary, Driver, DriverEvent, TlsOptions, Window};
use lab_monitor::{Monitor, MonitorSpec, Roots};
use lab_study::plan::{Plan, Trial};
use lab_study::{User, Workload};

use crate::clock::{Stopwatch, calendar};
use crate::event::{Event, Phase};
use crate::health::{Health, thread_times};
use crate::progress::Rolling;
use crate::provision::{self, Registry, UserExtra};
use crate::scratch::Scratch;
use crate::system::{self, System, SystemStart};
use crate::{ConductError, record};

/// Events that may wait for the conductor.
const QUEUE: usize = 64;
/// Longest wait between two looks at the interrupt and the system.
const LOOK: Duration = Duration::from_millis(100);
/// Counters are sampled this often, or sixty times a hold if that is more often.
const SAMPLE: Duration = Duration::from_secs(1);
const SAMPLES_PER_HOLD: u32 = 60;
/// A sample costs half a millisecond; more often than this it would load the generator.
const SAMPLE_AT_LEAST: Duration = Duration::from_millis(20);
/// Progress is told this often.
const TELL: Duration = Duration::from_secs(1);
/// A setup that gets no answer for so long has failed.
const SETUP_SILENCE: Duration = Duration::from_secs(300);
/// How long a driver may take to end: when told to, and after the end of its hold.
const DRIVER_GRACE: Duration = Duration::from_secs(30);

/// Why a trial stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The system under test failed; with its last lines.
    System(String),
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
    elapsed: Duration,
    transactions: u64,
    errors: u64,
    workers: usize,
    health: Health,
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
            Err(Stop::Interrupted) => return Ok(false),
            Err(Stop::Fatal(error)) => return Err(error),
        };
        let (transactions, errors) = (facts.transactions, facts.errors);
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
        self.tell(Event::Phase(Phase::Starting));
        let start = SystemStart {
            program: self.program,
            spec: &self.trial.system,
            cores: &self.pinning.system,
            scratch: self.scratch,
            output: writer.output_path(),
        };
        let mut system = start.start(self.interrupt)?;
        let result = self.with_system(&mut system, writer, facts);
        self.tell(Event::Phase(Phase::Stopping));
        facts.notes.extend(system.stop());
        result
    }

    fn with_system(
        &mut self,
        system: &mut System,
        writer: &mut TrialWriter,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        self.tell(Event::Phase(Phase::Provisioning));
        let watch = Stopwatch::start();
        let user_extra = self.provision(system)?;
        facts.provision = watch.elapsed();
        self.tell(Event::Phase(Phase::Setup));
        let (sender, events) = sync_channel(QUEUE);
        let driver = Driver::start(self.drive(system, user_extra), sender)?;
        facts.workers = driver.worker_threads().len();
        let result = self
            .setup(&events, system, facts)
            .and_then(|()| self.measure(&driver, &events, system, writer, facts));
        if result.is_err() {
            driver.stop();
        }
        end_driver(driver, &events, result.is_ok()).and_then(|_| result)
    }

    fn provision(&self, system: &mut System) -> Result<UserExtra, Stop> {
        let first = User {
            index: 0,
            users: self.trial.load.users,
            seed: self.plan.seed,
            block: self.trial.block,
            base_date: self.plan.dates_from,
        };
        let names = provision::names(self.workload, first)
            .map_err(|problem| Stop::Fatal(ConductError::Unsupported(problem)))?;
        let Some(names) = names else {
            return Ok(UserExtra::new());
        };
        let mailbox_pad_bytes = system::mailbox_pad_bytes(&self.trial.system);
        let registry = Registry {
            server: system.address(),
            token: system.token(),
            mailbox_pad_bytes,
        };
        let registered = registry.register(&names, self.interrupt);
        // A dead server says more by its last lines than by a refused connection.
        if let Err(Stop::System(_)) = &registered {
            system.check()?;
        }
        registered
    }

    fn drive(&self, system: &System, user_extra: UserExtra) -> Drive {
        let load = &self.trial.load;
        let address = system.address();
        let cores = self.pinning.generator.iter().map(|core| *core as usize);
        Drive {
            workload: Arc::clone(self.workload),
            base: BaseUrl {
                secure: false,
                host: address.ip().to_string(),
                port: address.port(),
            },
            tls: TlsOptions::default(),
            users: load.users,
            user_extra,
            seed: self.plan.seed,
            block: self.trial.block,
            base_date: self.plan.dates_from,
            cores: cores.collect(),
            ramp: self.ramp(),
            hold: self.hold(),
            window: Duration::from_millis(load.window_ms.max(1)),
            limits: lab_driver::Limits::default(),
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
        facts.start_data_bytes = self.scratch.data_bytes();
        let mut measuring = self.measuring(driver, system);
        writer.monitor_header(measuring.monitor.columns())?;
        facts.started = Some(calendar());
        measuring.clock = driver.begin();
        self.tell(Event::Phase(Phase::Ramp));
        let planned = self.ramp() + self.hold();
        let result = loop {
            let now = measuring.clock.now();
            if now > planned + DRIVER_GRACE {
                break Err(Stop::Fatal(ConductError::DriverEnded));
            }
            if let Err(error) = measuring.due(now, writer, facts, self.events) {
                break Err(error);
            }
            let input = match self.select(events, system, measuring.wait(measuring.clock.now())) {
                Ok(input) => input,
                Err(stop) => break Err(stop),
            };
            match input {
                Input::Driver(DriverEvent::Window(window)) => {
                    if let Err(error) = measuring.window(&window, writer) {
                        break Err(error);
                    }
                }
                Input::Driver(DriverEvent::Done) | Input::Ended => break Ok(()),
                Input::Driver(event) => facts.example(event),
                Input::Due => {}
            }
        };
        facts.transactions = measuring.rolling.transactions();
        facts.errors = measuring.rolling.errors();
        facts.elapsed = measuring.last_end;
        result
    }

    fn measuring(&self, driver: &Driver, system: &System) -> Measuring {
        let spec = MonitorSpec {
            data_dir: Some(self.scratch.data()),
            processes: vec![
                ("system".to_owned(), system.pid()),
                ("generator".to_owned(), std::process::id()),
            ],
            roots: Roots::default(),
        };
        let monitor = Monitor::new(&spec);
        let resident = monitor
            .columns()
            .iter()
            .position(|name| name == "generator.rss_mb");
        let (ramp, hold) = (self.ramp(), self.hold());
        Measuring {
            clock: driver.clock(),
            monitor,
            resident,
            threads: driver.worker_threads(),
            rolling: Rolling::new(ramp + hold, self.after),
            steps: self.workload.session.steps.len(),
            hold_at: ramp,
            end_at: ramp + hold,
            every: sample_interval(hold),
            sample_at: Duration::ZERO,
            tell_at: TELL,
            holding: false,
            last_end: Duration::ZERO,
        }
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
        let (generator, note) = facts.health.summary(facts.workers);
        let mut notes = facts.notes;
        if matches!(end, TrialEnd::Complete) {
            notes.extend(note);
        }
        if self.pinning.shared {
            notes.push("The generator and the system share one core.".to_owned());
        }
        let pad = system::mailbox_pad_bytes(&self.trial.system);
        if pad > 0 {
            notes.push(format!(
                "Each mailbox is padded by {pad} bytes before the trial."
            ));
        }
        TrialRecord {
            schema: TRIAL_SCHEMA.to_owned(),
            id: self.trial.id,
            started: facts.started.unwrap_or_else(calendar),
            end,
            ramp_ms: self.trial.load.ramp_ms,
            hold_ms: self.trial.load.hold_ms,
            elapsed_ms: whole_ms(facts.elapsed),
            provision_ms: whole_ms(facts.provision),
            setup_ms: whole_ms(facts.setup),
            setup_transactions: facts.setup_transactions,
            setup_errors: facts.setup_errors,
            error_examples: facts.error_examples,
            generator,
            start_data_bytes: facts.start_data_bytes,
            system_settings: system::settings(&self.trial.system),
            notes,
        }
    }

    fn tell(&mut self, event: Event) {
        (self.events)(event);
    }
}

fn whole_ms(t: Duration) -> u64 {
    u64::try_from(t.as_millis()).unwrap_or(u64::MAX)
}

fn sample_interval(hold: Duration) -> Duration {
    (hold / SAMPLES_PER_HOLD).clamp(SAMPLE_AT_LEAST, SAMPLE)
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

/// The state of ramp and hold.
struct Measuring {
    clock: Clock,
    monitor: Monitor,
    /// Column of the generator's memory.
    resident: Option<usize>,
    threads: Vec<i32>,
    rolling: Rolling,
    /// Without the probe.
    steps: usize,
    hold_at: Duration,
    end_at: Duration,
    every: Duration,
    sample_at: Duration,
    tell_at: Duration,
    holding: bool,
    last_end: Duration,
}

impl Measuring {
    /// Time to the next sample or word.
    fn wait(&self, now: Duration) -> Duration {
        let next = self.sample_at.min(self.tell_at);
        let next = if self.holding {
            next
        } else {
            next.min(self.hold_at)
        };
        next.saturating_sub(now).min(LOOK)
    }

    /// Does what is due at `now`.
    fn due(
        &mut self,
        now: Duration,
        writer: &mut TrialWriter,
        facts: &mut Facts,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), Stop> {
        if !self.holding && now >= self.hold_at {
            self.holding = true;
            self.health(now, facts);
            events(Event::Phase(Phase::Hold));
        }
        if now >= self.sample_at && now <= self.end_at {
            let row = self.monitor.sample(now);
            if let Some(rss_mb) = self.resident.and_then(|column| row[column]) {
                facts.health.resident(rss_mb);
            }
            writer.monitor_row(record::ms(now), &row)?;
            if self.holding {
                self.health(now, facts);
            }
            self.sample_at = next_due(self.sample_at, self.every, now, self.end_at);
        } else if now > self.end_at {
            self.sample_at = Duration::MAX;
        }
        if now >= self.tell_at {
            events(Event::Progress(self.rolling.figures(now)));
            self.tell_at = next_due(self.tell_at, TELL, now, Duration::MAX);
        }
        Ok(())
    }

    fn health(&self, now: Duration, facts: &mut Facts) {
        let times = self.threads.iter().map(|tid| thread_times(*tid)).collect();
        facts.health.add(now, times);
    }

    fn window(&mut self, window: &Window, writer: &mut TrialWriter) -> Result<(), Stop> {
        record::write(writer, window)?;
        self.rolling.add(window, self.steps);
        self.last_end = window.end;
        Ok(())
    }
}

/// The next of the regular times after `now`: those missed are left out. Just before `end` there
/// is a last one, so that the hold is covered to its end while its threads still live.
fn next_due(last: Duration, every: Duration, now: Duration, end: Duration) -> Duration {
    let mut next = last + every;
    if next <= now {
        let missed = (now - last).as_nanos() / every.as_nanos().max(1);
        next = last + every * u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
    }
    let before_end = end.saturating_sub(every / 10);
    if now < before_end && next > before_end {
        before_end
    } else {
        next
    }
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
    let summary = driver.join()?;
    if expect_whole && summary.stopped_early {
        return Err(Stop::Fatal(ConductError::DriverEnded));
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn counters_are_sampled_sixty_times_a_hold_or_every_second() {
        assert_eq!(sample_interval(ms(48_000)), ms(800));
        assert_eq!(sample_interval(ms(2_880_000)), ms(1000));
        assert_eq!(sample_interval(ms(100)), ms(20));
    }

    #[test]
    fn due_times_are_regular_leave_out_missed_ones_and_cover_the_end() {
        let end = ms(10_000);
        assert_eq!(next_due(ms(0), ms(1000), ms(3), end), ms(1000));
        assert_eq!(next_due(ms(1000), ms(1000), ms(1999), end), ms(2000));
        assert_eq!(
            next_due(ms(1000), ms(1000), ms(4500), end),
            ms(5000),
            "held up"
        );
        assert_eq!(
            next_due(ms(9000), ms(1000), ms(9001), end),
            ms(9900),
            "the last one"
        );
        assert_eq!(
            next_due(ms(9900), ms(1000), ms(9901), end),
            ms(10_900),
            "none after it"
        );
        let forever = next_due(ms(1000), TELL, ms(1001), Duration::MAX);
        assert_eq!(forever, ms(2000));
    }
}
