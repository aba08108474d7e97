//! What the host knows about the users of a runtime: whose turn it is, and what happened in it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rquickjs::{Ctx, Exception, Object, Persistent, Value};

use crate::engine::Budget;
use crate::event::Event;
use crate::program::Program;
use crate::turn::Facts;
use lab_modules::joined;

/// The state of a runtime that functions of the host read and write.
pub(crate) struct Shared {
    /// The script.
    pub(crate) program: Program,
    /// The time that the turn may still take.
    pub(crate) budget: Rc<Budget>,
    /// The user whose turn it is.
    pub(crate) user: Cell<u32>,
    /// Whether modules or initialisers run, and not a call.
    pub(crate) initialising: Cell<bool>,
    /// What happened in this turn.
    pub(crate) events: RefCell<Vec<Event>>,
    /// Files that were opened, but aren't there.
    pub(crate) wanted: Rc<RefCell<Vec<String>>>,
    facts: RefCell<Vec<Option<Box<Facts>>>>,
    streams: RefCell<Vec<Option<Box<Xoshiro256PlusPlus>>>>,
    seed: u64,
    clock: RefCell<Option<Box<dyn Fn() -> f64>>>,
    pub(crate) engine: RefCell<Option<EngineValues>>,
    /// Promises that were rejected, and that nothing has handled yet. They must be dropped before the engine.
    pub(crate) rejections: RefCell<Vec<Rejection>>,
    /// The bytes outside of the engine that values of the script hold.
    pub(crate) held: Rc<Cell<u64>>,
    /// The bytes in the engine after the last run of the cycle collector, and the most of both.
    pub(crate) live: Cell<u64>,
    most: u64,
    /// What the API keeps.
    pub(crate) api: crate::api::State,
}

/// The most jobs of promises that run after a turn was ended.
const JOBS: usize = 100_000;
/// The most rejections of a user that are kept.
const REJECTIONS: usize = 100;

/// A promise of a user that was rejected.
pub(crate) struct Rejection {
    user: u32,
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// Bytes outside of the engine that a value of the script holds, until it is dropped.
pub(crate) struct Held {
    all: Rc<Cell<u64>>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.bytes);
    }
}

/// Values of the engine that the host keeps. They must be dropped before the engine.
pub(crate) struct EngineValues {
    pub(crate) place: Persistent<Object<'static>>,
    pub(crate) data: Option<(Arc<serde_json::Value>, Persistent<Value<'static>>)>,
}

impl Shared {
    pub(crate) fn new(
        program: Program,
        (budget, most): (Rc<Budget>, u64),
        seed: u64,
        wanted: Rc<RefCell<Vec<String>>>,
    ) -> Shared {
        Shared {
            program,
            budget,
            user: Cell::new(0),
            initialising: Cell::new(true),
            events: RefCell::default(),
            wanted,
            facts: RefCell::default(),
            streams: RefCell::default(),
            seed,
            clock: RefCell::default(),
            engine: RefCell::default(),
            rejections: RefCell::default(),
            held: Rc::default(),
            live: Cell::new(0),
            most,
            api: crate::api::State::default(),
        }
    }

    /// Counts bytes outside of the engine that a value of the script holds.
    ///
    /// # Errors
    ///
    /// The error that the engine throws when its own memory is used up.
    pub(crate) fn hold(&self, ctx: &Ctx<'_>, bytes: usize) -> rquickjs::Result<Held> {
        let bytes = bytes as u64;
        let all = self.held.get() + bytes;
        if all + self.live.get() > self.most {
            return Err(Exception::throw_internal(ctx, "out of memory"));
        }
        self.held.set(all);
        Ok(Held {
            all: Rc::clone(&self.held),
            bytes,
        })
    }

    /// Takes the number of the call site that was entered last; 0 if it is unknown.
    pub(crate) fn take_site(&self, ctx: &Ctx<'_>) -> u32 {
        let engine = self.engine.borrow();
        let Some(place) = engine.as_ref().map(|values| values.place.clone()) else {
            return 0;
        };
        let Ok(place) = place.restore(ctx) else {
            return 0;
        };
        let site = place.get("s").unwrap_or(0);
        let _ = place.set("s", 0);
        site
    }

    /// Reads one fact of the user whose turn it is; `None` outside of a call.
    pub(crate) fn fact<T>(&self, read: impl FnOnce(&Facts) -> T) -> Option<T> {
        let facts = self.facts.borrow();
        let own = facts.get(self.user.get() as usize)?.as_ref()?;
        Some(read(own))
    }

    pub(crate) fn set_facts(&self, user: u32, new: &Facts) {
        self.api.begin(user);
        let mut facts = self.facts.borrow_mut();
        let at = user as usize;
        if facts.len() <= at {
            facts.resize_with(at + 1, || None);
        }
        match &mut facts[at] {
            Some(old) => (**old).clone_from(new),
            empty => *empty = Some(Box::new(new.clone())),
        }
    }

    pub(crate) fn set_clock(&self, clock: Box<dyn Fn() -> f64>) {
        *self.clock.borrow_mut() = Some(clock);
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> f64 {
        match &*self.clock.borrow() {
            Some(clock) => clock(),
            None => self.fact(|facts| facts.now_ms).unwrap_or(0.0),
        }
    }

    /// The next 64 random bits of the user whose turn it is.
    pub(crate) fn random_bits(&self) -> u64 {
        let mut streams = self.streams.borrow_mut();
        let user = self.user.get();
        let at = user as usize;
        if streams.len() <= at {
            streams.resize_with(at + 1, || None);
        }
        let seed = self.seed ^ (u64::from(user) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stream =
            streams[at].get_or_insert_with(|| Box::new(Xoshiro256PlusPlus::seed_from_u64(seed)));
        stream.next_u64()
    }

    /// A random number of the user whose turn it is, from 0 to below 1.
    pub(crate) fn random(&self) -> f64 {
        (self.random_bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Starts the random stream of the user whose turn it is anew.
    pub(crate) fn reseed(&self, seed: u64) {
        let _ = self.random_bits();
        let mut streams = self.streams.borrow_mut();
        streams[self.user.get() as usize] = Some(Box::new(Xoshiro256PlusPlus::seed_from_u64(seed)));
    }

    /// A file that the script opens: relative to the file that calls, or to the entry.
    pub(crate) fn opened(&self, base: &str, name: &str) -> Result<&[u8], String> {
        if !self.initialising.get() {
            return Err(format!(
                "open('{name}'): files can be opened at module level only"
            ));
        }
        let path = joined(base, name);
        if let Some(source) = self
            .program
            .sources()
            .iter()
            .find(|source| source.name == path)
        {
            return Ok(&source.text);
        }
        self.wanted.borrow_mut().push(path);
        Err(format!("open('{name}'): the file can't be read"))
    }

    /// Notes that a promise of the user whose turn it is was rejected, or that its rejection is handled after all.
    pub(crate) fn note_rejection(&self, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool) {
        let mut all = self.rejections.borrow_mut();
        if is_handled {
            all.retain(|one| {
                let kept = one.promise.clone().restore(promise.ctx());
                kept.is_ok_and(|kept| kept != *promise)
            });
            return;
        }
        let user = self.user.get();
        if all.iter().filter(|one| one.user == user).count() < REJECTIONS {
            all.push(Rejection {
                user,
                promise: Persistent::save(promise.ctx(), promise.clone()),
                reason: Persistent::save(reason.ctx(), reason.clone()),
            });
        }
    }

    /// Takes the reason of a user's first rejected promise, and forgets the others.
    pub(crate) fn take_rejection(&self, user: u32) -> Option<Persistent<Value<'static>>> {
        let mut all = self.rejections.borrow_mut();
        let (own, others): (Vec<_>, Vec<_>) = all.drain(..).partition(|one| one.user == user);
        *all = others;
        own.into_iter().next().map(|one| one.reason)
    }

    /// Forgets the rejected promises of a user.
    pub(crate) fn forget_rejections(&self, user: u32) {
        self.rejections.borrow_mut().retain(|one| one.user != user);
    }

    /// Runs the jobs of promises. After the budget is over, each is ended soon, and so is the loop.
    pub(crate) fn run_jobs(&self, ctx: &Ctx<'_>) {
        let mut left = JOBS;
        while left > 0 && ctx.execute_pending_job() {
            left -= usize::from(self.budget.was_over());
        }
    }

    pub(crate) fn record(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }
}
