//! The engine of a script on a worker, and its use by a population. It sends nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use lab_client::Nanos;
use lab_script::{Bundle, Call, Event, Facts, Outcome, Program, Runtime, Source, Turn, Variables};
use lab_workload::{Given, SESSION, Scripted, Workload};
use serde_json::Value;

use crate::clock::Clock;
use crate::drive::Drive;
use crate::error::DriverError;

/// A quarter of a machine's memory, divided by the workers, is an engine's; this if it is unknown.
const USUAL_MEMORY: u64 = 1 << 30;

/// The engines of a worker: one for each program, which all its populations share.
#[derive(Default)]
pub(crate) struct Engines(RefCell<Vec<(Arc<Scripted>, Rc<Engine>)>>);

/// A program in its engine.
type Engine = RefCell<Runtime>;

/// A program as it plays the sessions of a population on a worker.
pub(crate) struct Playing {
    engine: Rc<Engine>,
    scripted: Arc<Scripted>,
    /// The index of its own step in the session: its errors, checks, and metrics.
    pub(crate) own_step: usize,
    /// The transactions by name.
    groups: HashMap<Box<str>, usize>,
    /// The events of the last turn.
    events: Cell<Vec<Event>>,
    /// Sessions begun on this worker.
    begun: Cell<u64>,
    /// The end of the last session: its value, or its uncaught error.
    pub(crate) ended: RefCell<Result<Option<Value>, String>>,
    drive: Arc<Drive>,
    clock: Clock,
}

impl Engines {
    /// Returns the program of a population's sessions, if a script plays them.
    pub(crate) fn of(
        &self,
        drive: &Arc<Drive>,
        clock: Clock,
    ) -> Result<Option<Playing>, DriverError> {
        let Some(scripted) = &drive.workload.scripted else {
            return Ok(None);
        };
        let engine = self.engine(scripted, drive, clock)?;
        Ok(Some(Playing {
            engine,
            scripted: Arc::clone(scripted),
            own_step: drive.workload.session.steps.len().saturating_sub(1),
            groups: groups(&drive.workload),
            events: Cell::default(),
            begun: Cell::new(0),
            ended: RefCell::new(Ok(None)),
            drive: Arc::clone(drive),
            clock,
        }))
    }

    fn engine(
        &self,
        scripted: &Arc<Scripted>,
        drive: &Drive,
        clock: Clock,
    ) -> Result<Rc<Engine>, DriverError> {
        let mut engines = self.0.borrow_mut();
        let known = engines
            .iter()
            .find(|(of, _)| of.sources == scripted.sources);
        if let Some((_, engine)) = known {
            return Ok(Rc::clone(engine));
        }
        let program = load(scripted, &drive.workload.given)?;
        let limits = lab_script::Limits {
            turn: scripted.limits.turn,
            memory: memory(scripted, drive.workers()),
            stack: scripted.limits.stack,
        };
        let seed = lab_workload::seed_of(drive.seed, "script") ^ u64::from(drive.block);
        let runtime = Runtime::new(&program, limits, seed);
        let mut runtime = runtime.map_err(|thrown| DriverError::Script(thrown.to_string()))?;
        runtime.set_clock(Box::new(move || clock.unix_ms(clock.nanos())));
        let engine = Rc::new(RefCell::new(runtime));
        engines.push((Arc::clone(scripted), Rc::clone(&engine)));
        Ok(engine)
    }
}

/// Loads the program again from its files.
pub(super) fn load(scripted: &Scripted, given: &Given) -> Result<Program, DriverError> {
    let sources = scripted.sources.iter().map(|source| Source {
        name: source.name.clone(),
        text: source.content.clone(),
    });
    let sources: Vec<Source> = sources.collect();
    let entry = sources.first().map_or("", |source| source.name.as_str());
    let known = given.known();
    let variables = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = Variables(variables.collect());
    Program::load(entry, &Bundle(&sources), &variables).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        DriverError::Script(errors.join("\n"))
    })
}

/// Returns the memory of one engine.
fn memory(scripted: &Scripted, workers: usize) -> u64 {
    scripted.limits.memory.unwrap_or_else(|| {
        let quarter = machine_memory().map_or(USUAL_MEMORY, |all| all / 4);
        quarter / workers.max(1) as u64
    })
}

/// Returns the memory of the machine, in bytes.
fn machine_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// Returns the transactions of a session by name, without the session itself.
fn groups(workload: &Workload) -> HashMap<Box<str>, usize> {
    let names = workload.session.transaction_names().enumerate();
    let groups = names.filter(|(_, name)| *name != SESSION);
    groups.map(|(place, name)| (name.into(), place)).collect()
}

/// A user of a program: its number among all users, and its session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Player {
    /// Among the users of all populations.
    pub(crate) user: u32,
    /// The number of the user's session, from 0.
    pub(crate) session: u64,
}

impl Playing {
    /// Begins a session of a user.
    pub(crate) fn begin(&self, player: Player, zero: Nanos) -> Turn {
        let begun = self.begun.get();
        self.begun.set(begun + 1);
        let call = Call {
            function: self.scripted.function.clone(),
            data: self.scripted.data.clone(),
            facts: self.facts(player, begun, zero),
        };
        self.engine.borrow_mut().begin(player.user, &call)
    }

    /// Continues a session.
    pub(crate) fn resume(&self, player: Player, outcome: Outcome) -> Turn {
        let mut runtime = self.engine.borrow_mut();
        runtime.resume(player.user, outcome)
    }

    /// Ends a session before its end; the user's state stays.
    pub(crate) fn end_early(&self, player: Player) {
        self.engine.borrow_mut().end_call(player.user);
    }

    /// Calls `take` with each event of the last turn.
    pub(crate) fn each_event(&self, take: impl FnMut(Event)) {
        let mut events = self.events.take();
        self.engine.borrow_mut().events(&mut events);
        events.drain(..).for_each(take);
        self.events.set(events);
    }

    /// Returns the transaction of a group, by its index in the session.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        self.groups.get(name).copied()
    }

    /// Returns the measure of a check, by its index in its own step.
    pub(crate) fn check(&self, name: &str) -> Option<usize> {
        let found = self.scripted.checks.get(name);
        found.map(|place| *place as usize)
    }

    /// Returns the measure of a metric, by its index in its own step.
    pub(crate) fn metric(&self, name: &str) -> Option<usize> {
        let found = self.scripted.metrics.get(name);
        found.map(|place| *place as usize)
    }

    /// Returns the step of a request.
    pub(crate) fn step(&self, name: Option<&str>, site: u32) -> usize {
        self.scripted.step(name, site)
    }

    /// Returns the length of a wait.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a wait is no negative number, and a cast of a large one saturates"
    )]
    pub(crate) fn wait(&self, micros: u64) -> Nanos {
        (micros as f64 * 1e3 / self.scripted.speed) as Nanos
    }

    fn facts(&self, player: Player, begun: u64, zero: Nanos) -> Facts {
        let drive = &self.drive;
        let now = self.clock.nanos();
        let length = lab_client::time::nanos(drive.ramp.saturating_add(drive.hold)).max(1);
        let index = u64::from(player.user - drive.first.min(player.user));
        // Unique, with gaps: no number is shared over workers.
        let in_test = index + player.session * u64::from(drive.users);
        let (scenario, executor) = self.scripted.scenario.clone();
        Facts {
            vu_in_test: u64::from(player.user) + 1,
            vu_in_instance: u64::from(player.user) + 1,
            iteration_in_test: in_test,
            iteration_in_instance: begun,
            iteration_in_scenario: player.session,
            iteration_of_user: player.session,
            scenario,
            executor,
            start_ms: self.clock.unix_ms(zero),
            now_ms: self.clock.unix_ms(now),
            progress: (now.saturating_sub(zero) as f64 / length as f64).min(1.0),
            iterations_completed: begun,
            iterations_interrupted: 0,
            vus_active: u64::from(drive.users),
            vus_initialized: u64::from(drive.users),
        }
    }
}
