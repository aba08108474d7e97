//! The runtime of a worker thread: it plays one turn of one user at a time.
//!
//! Users are suspended generators in one engine. The module `prelude.js` keeps them, by number; this side sees what a
//! turn ended with, and holds the limits.

mod budget;
mod exception;
mod realm;
mod turns;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rquickjs::{Context, Ctx, Function, Persistent, Value};

use crate::event::Event;
use crate::program::Program;
use crate::shared::Shared;
use crate::thrown::Thrown;
use crate::turn::{Call, Outcome, Turn};

pub(crate) use budget::Budget;
pub use budget::Limits;

use realm::Functions;

/// The least growth of the heap, in bytes, after which the cycle collector runs again.
const GROWTH: u64 = 16 << 20;

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
    /// The limit of the engine's memory, in bytes.
    limit: u64,
    /// The bytes that values may hold outside of the engine before the cycle collector runs.
    next_collection: Cell<u64>,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.functions = None;
        *self.shared.engine.borrow_mut() = None;
        self.shared.rejections.borrow_mut().clear();
    }
}

impl Runtime {
    /// Makes a runtime and runs the modules of the program once.
    ///
    /// # Errors
    ///
    /// The error that a module of the script throws.
    pub fn new(program: &Program, limits: Limits, seed: u64) -> Result<Runtime, Thrown> {
        let runtime = Runtime::loading(program, limits, seed, &Rc::default())?;
        runtime.engine.run_gc();
        runtime.watch();
        Ok(runtime)
    }

    /// As [`Runtime::new`], and lists files that the script opens and that aren't among its sources.
    pub(crate) fn loading(
        program: &Program,
        limits: Limits,
        seed: u64,
        wanted: &Rc<RefCell<Vec<String>>>,
    ) -> Result<Runtime, Thrown> {
        let budget = Rc::new(Budget::new(limits.turn));
        let (engine, context) = realm::engine(program, limits, &budget)?;
        let budget = (budget, limits.memory);
        let shared = Shared::new(program.clone(), budget, seed, Rc::clone(wanted));
        let mut runtime = Runtime {
            functions: None,
            context,
            engine,
            shared: Rc::new(shared),
            limit: limits.memory,
            next_collection: Cell::new(GROWTH),
        };
        let shared = Rc::clone(&runtime.shared);
        let own = Rc::clone(&shared);
        let tracker = move |_: Ctx<'_>, promise: Value<'_>, reason: Value<'_>, is_handled| {
            own.note_rejection(&promise, &reason, is_handled);
        };
        let engine = &runtime.engine;
        engine.set_host_promise_rejection_tracker(Some(Box::new(tracker)));
        shared.budget.begin();
        shared.budget.load(true);
        let functions = runtime.run(0, |ctx| realm::prepare(ctx, program, &shared))?;
        runtime.functions = Some(functions);
        runtime.shared.initialising.set(false);
        Ok(runtime)
    }

    /// Sets the clock that `Date.now` reads: milliseconds since 1970. Without one, it is the time of the last call.
    pub fn set_clock(&mut self, clock: Box<dyn Fn() -> f64>) {
        self.shared.set_clock(clock);
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
        self.shared.forget_rejections(user);
        let Functions { begin, fail, .. } = self.functions();
        let (begin, fail) = (begin.clone(), fail.clone());
        let shared = Rc::clone(&self.shared);
        let turn = self.played(user, |ctx| {
            let data = turns::data(ctx, &shared, call.data.as_ref())?;
            let begin = begin.restore(ctx)?;
            let end: Value = begin.call((user, call.function.as_str(), data))?;
            turn_of(ctx, &shared, (user, &fail), end)
        });
        self.judged(user, turn)
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
                    let thrown = ctx.catch();
                    fail.clone().restore(ctx)?.call((user, thrown))?
                }
                Err(error) => return Err(error),
            };
            turn_of(ctx, &shared, (user, &fail), end)
        });
        self.judged(user, turn)
    }

    /// Makes an error of the end of a call that left a rejected promise which nothing handles.
    fn judged(&self, user: u32, turn: Result<Turn, Thrown>) -> Turn {
        let turn = turn.unwrap_or_else(Turn::Threw);
        if !matches!(turn, Turn::Done { .. }) || self.shared.rejections.borrow().is_empty() {
            return turn;
        }
        let Some(reason) = self.shared.take_rejection(user) else {
            return turn;
        };
        self.context.with(|ctx| match reason.restore(&ctx) {
            Ok(reason) => Turn::Threw(exception::rejected(&self.shared, &reason)),
            Err(_) => turn,
        })
    }

    /// Ends the call of a user; the user's state stays. `finally` blocks don't run.
    pub fn end_call(&mut self, user: u32) {
        let end_call = self.functions().end_call.clone();
        let _ = self.played(user, |ctx| end_call.restore(ctx)?.call::<_, ()>((user,)));
        self.shared.forget_rejections(user);
    }

    /// Moves what happened in the last turn into `into`, in order. Call it after each turn.
    pub fn events(&mut self, into: &mut Vec<Event>) {
        into.append(&mut self.shared.events.borrow_mut());
    }

    /// Lets the engine run the cycle collector when the heap has grown by half, or by [`GROWTH`].
    fn watch(&self) {
        let live = self.in_engine();
        self.shared.live.set(live);
        let free = self.limit.saturating_sub(live + self.shared.held.get());
        let room = (live / 2).max(GROWTH).min(free / 2);
        let threshold = usize::try_from(live + room).unwrap_or(usize::MAX);
        self.engine.set_gc_threshold(threshold);
        let made = self.context.with(|ctx| {
            let made = realm::watch(&ctx, &self.shared.budget);
            if made.is_err() {
                ctx.catch();
            }
            made
        });
        // Without it, the engine goes on by its own rule: growth by half.
        let _ = made;
    }

    /// Runs the cycle collector. It visits all objects: call it when no user is measured.
    pub fn collect(&mut self) -> Collected {
        let before = self.memory();
        self.engine.run_gc();
        Collected {
            bytes: before.saturating_sub(self.memory()),
        }
    }

    /// The bytes that the engine has allocated, and those that its values hold outside of it. It visits all objects: call it when no user is measured.
    pub fn memory(&self) -> u64 {
        self.in_engine() + self.shared.held.get()
    }

    fn in_engine(&self) -> u64 {
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
        self.collect_held();
        self.shared.budget.begin();
        let played = self.run(user, part);
        if self.shared.budget.take_collected() {
            self.watch();
        }
        played
    }

    /// Runs the cycle collector if values hold much more outside of the engine than after its last run: the engine
    /// doesn't know of it.
    fn collect_held(&self) {
        let held = &self.shared.held;
        if held.get() > self.next_collection.get() {
            self.engine.run_gc();
            let room = held.get().max(GROWTH);
            let room_left = self.limit.saturating_sub(self.shared.live.get());
            let most = (held.get() + room_left) / 2;
            self.next_collection.set((held.get() + room).min(most));
        }
    }

    fn run<T>(
        &self,
        user: u32,
        part: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, Thrown> {
        self.shared.user.set(user);
        self.context.with(|ctx| {
            let played = part(&ctx).map_err(|error| exception::thrown(&ctx, &self.shared, &error));
            // What promises call belongs to the turn of their user.
            self.shared.run_jobs(&ctx);
            match played {
                Ok(_) if self.shared.budget.was_over() => Err(exception::over(&self.shared.budget)),
                played => played,
            }
        })
    }
}

/// Makes a turn of what the prelude returned. An error of its parameters is thrown into the script, which may catch it.
fn turn_of<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    (user, fail): (u32, &Persistent<Function<'static>>),
    mut end: Value<'js>,
) -> rquickjs::Result<Turn> {
    loop {
        match turns::turn(ctx, shared, &end) {
            Err(error) if error.is_exception() && turns::waits(&end) => {
                let thrown = ctx.catch();
                end = fail.clone().restore(ctx)?.call((user, thrown))?;
            }
            other => return other,
        }
    }
}
