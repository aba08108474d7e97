//! The engine of a script on a worker, and its use by a population. It sends nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use lab_script::{
    Bundle, Call, Event, Facts, Level, Outcome, Program, Runtime, Source, Turn, Variables,
};
use lab_workload::{Inputs, SESSION, ScriptSource, Scripted, Workload};

/// The assumed memory for all engines if the machine's memory is unknown.
const USUAL_MEMORY: u64 = 1 << 30;

/// The programs of a load, each loaded once for all workers.
#[derive(Clone, Default)]
pub struct Programs(Arc<[(Arc<[ScriptSource]>, Program)]>);

/// The engines of a worker: one for each program, which all its populations share.
pub struct Engines {
    programs: Programs,
    /// By program.
    made: RefCell<Vec<Option<Rc<Engine>>>>,
}

/// A program in its engine.
type Engine = RefCell<Runtime>;

/// A program as it plays the sessions of a population on a worker.
pub struct Playing {
    engine: Rc<Engine>,
    scripted: Arc<Scripted>,
    /// The index of its own step in the session: its errors, checks, and metrics.
    pub own_step: usize,
    /// The transactions by name.
    groups: HashMap<Box<str>, usize>,
    /// The events of the last turn.
    events: Cell<Vec<Event>>,
    /// Sessions begun on this worker.
    begun: Cell<u64>,
    /// Receives the lines of the script's log.
    log: Option<Log>,
    terms: Terms,
    clock: WallClock,
}

/// Receives a line of a script's log.
type Log = Box<dyn Fn(Level, &str)>;

/// The clock of a worker.
#[derive(Clone)]
pub struct WallClock {
    /// The time now, in ns on the worker's clock.
    pub now: Rc<dyn Fn() -> u64>,
    /// The time of day at a time on the worker's clock, in ms since 1970.
    pub unix_ms: Rc<dyn Fn(u64) -> f64>,
}

/// The terms of a population.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Its name as the name of a scenario.
    pub scenario: String,
    /// The executor of k6 with such a load.
    pub executor: &'static str,
    /// Its users.
    pub users: u32,
    /// The number of users before it.
    pub first: u32,
    /// The workers of this program.
    pub workers: usize,
    /// The seed of all randomness.
    pub seed: u64,
    /// The block of the trial.
    pub block: u32,
    /// The length of the trial, ns.
    pub length: u64,
}

impl Programs {
    /// Loads the programs of these workloads.
    ///
    /// # Errors
    /// In words, when a script can't be loaded.
    pub fn load<'w>(workloads: impl Iterator<Item = &'w Workload>) -> Result<Self, String> {
        let mut all: Vec<(Arc<[ScriptSource]>, Program)> = Vec::new();
        for workload in workloads {
            if let Some(scripted) = &workload.scripted
                && all.iter().all(|(known, _)| *known != scripted.sources)
            {
                let program = load(scripted, &workload.inputs)?;
                all.push((Arc::clone(&scripted.sources), program));
            }
        }
        Ok(Self(all.into()))
    }
}

impl Engines {
    /// Returns the engines of a worker; each is made when it is first used.
    #[must_use]
    pub fn new(programs: Programs) -> Self {
        let made = RefCell::new(vec![None; programs.0.len()]);
        Self { programs, made }
    }

    /// Returns the program of a population's sessions, if a script plays them.
    ///
    /// # Errors
    /// In words, when the script can't be loaded, or one of its modules throws.
    pub fn of(
        &self,
        workload: &Workload,
        terms: Terms,
        clock: &WallClock,
    ) -> Result<Option<Playing>, String> {
        let Some(scripted) = &workload.scripted else {
            return Ok(None);
        };
        let engine = self.engine(scripted, &terms, clock);
        let engine = engine.map_err(|why| workload.inputs.mask(&why))?;
        Ok(Some(Playing {
            engine,
            scripted: Arc::clone(scripted),
            own_step: workload.session.steps.len().saturating_sub(1),
            groups: groups(workload),
            events: Cell::default(),
            begun: Cell::new(0),
            log: None,
            clock: clock.clone(),
            terms,
        }))
    }

    fn engine(
        &self,
        scripted: &Scripted,
        terms: &Terms,
        clock: &WallClock,
    ) -> Result<Rc<Engine>, String> {
        let mut programs = self.programs.0.iter();
        let place = programs.position(|(of, _)| *of == scripted.sources);
        let place = place.ok_or("a script of no program")?;
        let mut made = self.made.borrow_mut();
        if let Some(engine) = &made[place] {
            return Ok(Rc::clone(engine));
        }
        let limits = lab_script::Limits {
            turn: scripted.limits.turn,
            memory: memory(scripted, terms.workers * made.len()),
            stack: scripted.limits.stack,
        };
        let seed = lab_workload::seed_of(terms.seed, "script") ^ u64::from(terms.block);
        let runtime = Runtime::new(&self.programs.0[place].1, limits, seed);
        let mut runtime = runtime.map_err(|thrown| thrown.to_string())?;
        let of_day = clock.clone();
        runtime.set_clock(Box::new(move || (of_day.unix_ms)((of_day.now)())));
        let engine = Rc::new(RefCell::new(runtime));
        made[place] = Some(Rc::clone(&engine));
        Ok(engine)
    }
}

/// Loads the program again from its files.
///
/// # Errors
/// In words, with file and line.
pub fn load(scripted: &Scripted, given: &Inputs) -> Result<Program, String> {
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
        given.mask(&errors.join("\n"))
    })
}

/// Returns the memory of one engine of this number on the machine.
fn memory(scripted: &Scripted, engines: usize) -> u64 {
    scripted.limits.memory.unwrap_or_else(|| {
        let quarter = machine_memory().map_or(USUAL_MEMORY, |all| all / 4);
        quarter / engines.max(1) as u64
    })
}

/// Returns the memory of the machine or of the container, in bytes.
fn machine_memory() -> Option<u64> {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse().ok());
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kib << 10).min(limit.unwrap_or(u64::MAX)))
}

/// Returns the transactions of a session by name, without the session itself.
fn groups(workload: &Workload) -> HashMap<Box<str>, usize> {
    let names = workload.session.transaction_names().enumerate();
    let groups = names.filter(|(_, name)| *name != SESSION);
    groups.map(|(place, name)| (name.into(), place)).collect()
}

/// A user of a program: its number among all users, and its session.
#[derive(Debug, Clone, Copy)]
pub struct Player {
    /// Among the users of all populations.
    pub user: u32,
    /// The number of the user's session, from 0.
    pub session: u64,
}

impl Playing {
    /// Begins a session of a user.
    pub fn begin(&self, player: Player, zero: u64) -> Turn {
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
    pub fn resume(&self, player: Player, outcome: Outcome) -> Turn {
        let mut runtime = self.engine.borrow_mut();
        runtime.resume(player.user, outcome)
    }

    /// Ends a session before its end; the user's state stays.
    pub fn end_early(&self, player: Player) {
        self.engine.borrow_mut().end_call(player.user);
    }

    /// Calls `take` with each event of the last turn.
    pub fn each_event(&self, take: impl FnMut(Event)) {
        let mut events = self.events.take();
        self.engine.borrow_mut().events(&mut events);
        events.drain(..).for_each(take);
        self.events.set(events);
    }

    /// Sends all lines of the script's log to `log`.
    pub fn set_log(&mut self, log: Log) {
        self.log = Some(log);
    }

    /// Logs a line.
    pub fn log(&self, level: Level, text: &str) {
        if let Some(log) = &self.log {
            log(level, text);
        }
    }

    /// Returns the transaction of a group, by its index in the session.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.groups.get(name).copied()
    }

    /// Returns the measure of a check, by its index in its own step.
    pub fn check(&self, name: &str) -> Option<usize> {
        let found = self.scripted.checks.get(name);
        found.map(|place| *place as usize)
    }

    /// Returns the measure of a metric, by its index in its own step.
    pub fn metric(&self, name: &str) -> Option<usize> {
        let found = self.scripted.metrics.get(name);
        found.map(|place| *place as usize)
    }

    /// Returns the step of a request.
    pub fn step(&self, name: Option<&str>, site: u32) -> usize {
        self.scripted.step(name, site)
    }

    /// Returns the length of a wait.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a wait is no negative number, and a cast of a large one saturates"
    )]
    pub fn wait(&self, micros: u64) -> u64 {
        (micros as f64 * 1e3 / self.scripted.speed) as u64
    }

    fn facts(&self, player: Player, begun: u64, zero: u64) -> Facts {
        let terms = &self.terms;
        let now = (self.clock.now)();
        let index = u64::from(player.user - terms.first.min(player.user));
        // Unique, with gaps: no number is shared over workers.
        let in_test = index + player.session * u64::from(terms.users);
        // As in k6, what runs once around the load has the number 0.
        let number = match self.scripted.function.as_str() {
            "setup" | "teardown" => 0,
            _ => u64::from(player.user) + 1,
        };
        Facts {
            vu_in_test: number,
            vu_in_instance: number,
            iteration_in_test: in_test,
            iteration_in_instance: begun,
            iteration_in_scenario: player.session,
            iteration_of_user: player.session,
            scenario: terms.scenario.as_str().into(),
            executor: terms.executor.into(),
            start_ms: (self.clock.unix_ms)(zero),
            now_ms: (self.clock.unix_ms)(now),
            progress: (now.saturating_sub(zero) as f64 / terms.length.max(1) as f64).min(1.0),
            iterations_completed: begun,
            iterations_interrupted: 0,
            vus_active: u64::from(terms.users),
            vus_initialized: u64::from(terms.users),
        }
    }
}
