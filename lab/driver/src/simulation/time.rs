//! Simulated time: it stands still while anything can be done, and then jumps to the next alarm.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use lab_client::time::{Nanos, nanos};

/// A time that is never reached.
pub(super) const NEVER: Nanos = Nanos::MAX;
/// The time of this thread's simulation, and its alarms.
struct World {
    base: Instant,
    passed: Nanos,
    alarms: Vec<Rc<Alarm>>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Begins a simulation on this thread.
pub(super) fn begin(base: Instant) {
    WORLD.set(Some(World {
        base,
        passed: 0,
        alarms: Vec::new(),
    }));
}

/// Ends the simulation.
pub(super) fn end() {
    WORLD.set(None);
}

fn with<T>(act: impl FnOnce(&mut World) -> T) -> Option<T> {
    WORLD.with_borrow_mut(|world| world.as_mut().map(act))
}

/// Returns the simulated time; none outside a simulation.
pub(crate) fn now() -> Option<Instant> {
    with(|world| world.base + Duration::from_nanos(world.passed))
}

/// Returns a new alarm; none outside a simulation.
pub(crate) fn alarm() -> Option<Rc<Alarm>> {
    with(|world| {
        let alarm = Rc::new(Alarm::default());
        world.alarms.push(Rc::clone(&alarm));
        alarm
    })
}

/// Lets time pass in which a worker is blocked: by its own work, or by other threads on its core.
pub(crate) fn hold_up(time: Duration) {
    with(|world| world.passed += nanos(time));
}

/// The alarm of a worker's timers.
pub(crate) struct Alarm {
    at: Cell<Nanos>,
    rings: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            at: Cell::new(NEVER),
            rings: Cell::new(false),
            waker: RefCell::default(),
        }
    }
}

impl Alarm {
    pub(crate) fn set(&self, left: Nanos) {
        let passed = with(|world| world.passed).expect("it was made in a simulation");
        self.at.set(passed.saturating_add(left));
    }

    pub(crate) async fn rung(&self) {
        let poll = |cx: &mut Context<'_>| {
            if self.rings.take() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        };
        poll_fn(poll).await;
    }

    fn ring(&self) {
        self.at.set(NEVER);
        self.rings.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Sets the clock to the next alarm and rings it.
pub(super) fn jump() {
    let due: Vec<Rc<Alarm>> = with(|world| {
        let next = world.alarms.iter().map(|alarm| alarm.at.get()).min();
        let next = next.filter(|at| *at < NEVER);
        let next = next.expect("nothing more will ever happen, but workers wait");
        world.passed = world.passed.max(next);
        let due = |alarm: &&Rc<Alarm>| alarm.at.get() <= world.passed;
        world.alarms.iter().filter(due).cloned().collect()
    })
    .expect("a simulation");
    due.iter().for_each(|alarm| alarm.ring());
}
