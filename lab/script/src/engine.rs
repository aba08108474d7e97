//! The runtime of a worker thread: it plays one turn of one user at a time.
//!
//! Users are suspended generators in one engine. The module `prelude.js` keeps them, by number; this side sees what a
//! turn ended with, and holds the limits.

mod budget;
mod exception;
mod realm;
mod turns;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::{Context, Ctx, Function, Persistent, Value};

use crate::event::Event;
use crate::program::Program;
use crate::shared::Shared;
use crate::thrown::Thrown;
use crate::turn::{Call, Outcome, Turn};

use budget::Budget;

/// The limits of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of one turn.
    pub turn: Duration,
    /// The memory of all users together, in bytes.
    pub memory: u64,
    /// The stack of the script's functions, in bytes.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            turn: Duration::from_millis(50),
            memory: 1 << 30,
            stack: 256 << 10,
        }
    }
}

/// The result of a run of the cycle collector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Bytes that were freed.
    pub bytes: u64,
}

/// The users of one worker thread, in one engine. It stays on its thread.
pub struct Runtime {
    // Fields are dropped in this order: values of the engine before the engine.
    functions: Option<Functions>,
    context: Context,
    engine: rquickjs::Runtime,
    shared: Rc<Shared>,
    budget: Rc<Budget>,
}

/// The functions of the prelude that play turns.
struct Functions {
    begin: Persistent<Function<'static>>,
    resume: Persistent<Function<'static>>,
    fail: Persistent<Function<'static>>,
    prepare: Persistent<Function<'static>>,
    describe: Persistent<Function<'static>>,
    end_call: Persistent<Function<'static>>,
    drop_user: Persistent<Function<'static>>,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.functions = None;
        *self.shared.engine.borrow_mut() = None;
    }
}

impl Runtime {
    /// Makes a runtime and runs the modules of the program once.
    ///
    /// # Errors
    ///
    /// The error that a module of the script throws.
    pub fn new(program: &Program, limits: Limits, seed: u64) -> Result<Runtime, Thrown> {
        Runtime::loading(program, limits, seed, &Rc::default())
    }

    /// As [`Runtime::new`], and lists files that the script opens and that aren't among its sources.
    pub(crate) fn loading(
        program: &Program,
        limits: Limits,
        seed: u64,
        wanted: &Rc<RefCell<Vec<String>>>,
    ) -> Result<Runtime, Thrown> {
        let shared = Rc::new(Shared::new(program.clone(), seed, Rc::clone(wanted)));
        realm::runtime(program, limits, shared)
    }

    /// Sets the clock that `Date.now` reads: milliseconds since 1970. Without one, it is the time of the last call.
    pub fn set_clock(&mut self, clock: Box<dyn Fn() -> f64>) {
        self.shared.set_clock(clock);
    }

    /// Runs the initialisers of a user ahead of its first call.
    ///
    /// # Errors
    ///
    /// The error that an initialiser throws.
    pub fn prepare(&mut self, user: u32) -> Result<(), Thrown> {
        let prepare = self.functions().prepare.clone();
        self.played(user, |ctx| prepare.restore(ctx)?.call::<_, ()>((user,)))
    }

    /// The options and the names of functions that the script exports, as JSON.
    pub(crate) fn describe(&mut self) -> Result<String, Thrown> {
        let describe = self.functions().describe.clone();
        self.played(0, |ctx| describe.restore(ctx)?.call((0,)))
    }

    /// Calls an exported function for a user, until the first end of a turn.
    pub fn begin(&mut self, user: u32, call: &Call) -> Turn {
        self.shared.set_facts(user, &call.facts);
        self.shared.initialising.set(false);
        let begin = self.functions().begin.clone();
        let shared = Rc::clone(&self.shared);
        let turn = self.played(user, |ctx| {
            let data = turns::data(ctx, &shared, call.data.as_ref())?;
            let begin = begin.restore(ctx)?;
            let end: Value = begin.call((user, call.function.as_str(), data))?;
            turns::turn(ctx, &shared, &end)
        });
        turn.unwrap_or_else(Turn::Threw)
    }

    /// Continues a user.
    pub fn resume(&mut self, user: u32, outcome: Outcome) -> Turn {
        let Functions { resume, fail, .. } = self.functions();
        let (resume, fail) = (resume.clone(), fail.clone());
        let shared = Rc::clone(&self.shared);
        let turn = self.played(user, |ctx| {
            let end: Value = match turns::outcome(ctx, &shared, outcome) {
                Ok(value) => resume.restore(ctx)?.call((user, value))?,
                Err(error) if error.is_exception() => {
                    fail.restore(ctx)?.call((user, ctx.catch()))?
                }
                Err(error) => return Err(error),
            };
            turns::turn(ctx, &shared, &end)
        });
        turn.unwrap_or_else(Turn::Threw)
    }

    /// Ends the call of a user, if there is one, and forgets the user. `finally` blocks don't run.
    pub fn drop_user(&mut self, user: u32) {
        let drop_user = self.functions().drop_user.clone();
        let _ = self.played(user, |ctx| drop_user.restore(ctx)?.call::<_, ()>((user,)));
        self.shared.forget(user);
    }

    /// Ends the call of a user; the user's state stays. `finally` blocks don't run.
    pub fn end_call(&mut self, user: u32) {
        let end_call = self.functions().end_call.clone();
        let _ = self.played(user, |ctx| end_call.restore(ctx)?.call::<_, ()>((user,)));
    }

    /// Moves what happened in the last turn into `into`, in order. Call it after each turn.
    pub fn events(&mut self, into: &mut Vec<Event>) {
        into.append(&mut self.shared.events.borrow_mut());
    }

    /// Runs the cycle collector. It visits all objects: call it when no user is measured.
    pub fn collect(&mut self) -> Collected {
        let before = self.memory();
        self.engine.run_gc();
        Collected {
            bytes: before.saturating_sub(self.memory()),
        }
    }

    /// The bytes that the engine has allocated. It visits all objects: call it when no user is measured.
    pub fn memory(&self) -> u64 {
        u64::try_from(self.engine.memory_usage().malloc_size).unwrap_or(0)
    }

    fn functions(&self) -> &Functions {
        self.functions
            .as_ref()
            .expect("the functions are there until the runtime is dropped")
    }

    /// Runs a part of a turn within its budget, and makes an error of what it throws.
    fn played<T>(
        &self,
        user: u32,
        part: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, Thrown> {
        self.shared.user.set(user);
        self.budget.begin();
        self.context.with(|ctx| {
            let played = part(&ctx)
                .map_err(|error| exception::thrown(&ctx, &self.shared, &self.budget, &error));
            // What promises call belongs to the turn of their user.
            while ctx.execute_pending_job() {}
            played
        })
    }
}
