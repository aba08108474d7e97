//! The timers of one worker: exact wake-ups for waits, and deadlines that cost nothing to move.
//!
//! tokio's own wheel rounds every sleep up to the next millisecond, which at sixty-fold speed is one per cent of a
//! wait. Here one timerfd per worker, set to the earliest entry of a heap, wakes with a precision of a few
//! microseconds. A request's deadline is a number in a slot: setting it later than the heap entry that the slot already
//! has touches no heap, so that a request costs two stores.
//!
//! It knows no user and no request. Time is read from the worker's clock, and an [`Alarm`] wakes the worker.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::alarm::Alarm;
use crate::clock::Clock;
use lab_client::Nanos;

const NEVER: Nanos = Nanos::MAX;
/// In place of a due time: the timer has fired; in a sleep: its timer is set.
const FIRED: Nanos = NEVER - 1;

/// Returns a time that a timer can be set to. It differs from `due` only after centuries.
pub(crate) fn settable(due: Nanos) -> Nanos {
    if due == FIRED { NEVER } else { due }
}

/// The timers of one worker. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Timers {
    inner: Rc<Inner>,
}

struct Inner {
    clock: Clock,
    alarm: Alarm,
    state: RefCell<State>,
}

/// The pure part: slots and a heap, with time as an argument.
#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    free: Vec<u32>,
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The alarm's current setting.
    armed: Option<Nanos>,
}

struct Slot {
    /// The time to wake; `NEVER` = not set, `FIRED` = fired.
    due: Nanos,
    /// The earliest entry of this slot in the heap; `NEVER` = none. Later ones are stale.
    queued: Nanos,
    waker: Option<Waker>,
}

impl State {
    fn acquire(&mut self) -> u32 {
        let slot = Slot {
            due: NEVER,
            queued: NEVER,
            waker: None,
        };
        if let Some(index) = self.free.pop() {
            // An entry that the former owner left in the heap only causes an extra wake-up.
            let queued = self.slots[index as usize].queued;
            self.slots[index as usize] = Slot { queued, ..slot };
            return index;
        }
        self.slots.push(slot);
        u32::try_from(self.slots.len() - 1).expect("far fewer than 2^32 timers")
    }

    fn set(&mut self, index: u32, due: Nanos) {
        let due = settable(due);
        let slot = &mut self.slots[index as usize];
        slot.due = due;
        if due < slot.queued {
            slot.queued = due;
            self.heap.push(Reverse((due, index)));
        }
    }

    /// Wakes the due tasks.
    fn fire(&mut self, now: Nanos) {
        while let Some(Reverse((at, index))) = self.heap.peek().copied() {
            if at > now {
                break;
            }
            self.heap.pop();
            let slot = &mut self.slots[index as usize];
            if at != slot.queued {
                continue;
            }
            slot.queued = NEVER;
            if slot.due <= now {
                slot.due = FIRED;
                if let Some(waker) = slot.waker.take() {
                    waker.wake();
                }
            } else if slot.due < FIRED {
                slot.queued = slot.due;
                self.heap.push(Reverse((slot.due, index)));
            }
        }
    }

    fn earliest(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

impl Timers {
    /// Creates timers on this worker's clock. Must be called within a tokio runtime.
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self {
            inner: Rc::new(Inner {
                clock,
                alarm: Alarm::new()?,
                state: RefCell::default(),
            }),
        })
    }

    /// Returns a new timer, not set.
    pub(crate) fn timer(&self) -> Timer {
        let slot = self.inner.state.borrow_mut().acquire();
        Timer {
            timers: self.clone(),
            slot,
        }
    }

    /// Waits until `due`, for callers that wait rarely.
    pub(crate) async fn sleep_until(&self, due: Nanos) {
        self.timer().sleep_until(due).await;
    }

    /// Serves the timers; never returns. One task per worker.
    pub(crate) async fn serve(&self) -> io::Error {
        loop {
            if let Err(error) = self.inner.alarm.rung().await {
                return error;
            }
            let mut state = self.inner.state.borrow_mut();
            state.armed = None;
            state.fire(self.inner.clock.nanos());
            if let Err(error) = self.arm(&mut state) {
                return error;
            }
        }
    }

    /// Sets the alarm to the earliest entry, if that is earlier than its current setting.
    fn arm(&self, state: &mut State) -> io::Result<()> {
        let Some(at) = state.earliest() else {
            return Ok(());
        };
        if state.armed.is_some_and(|armed| armed <= at) {
            return Ok(());
        }
        state.armed = Some(at);
        let left = at.saturating_sub(self.inner.clock.nanos());
        self.inner.alarm.set(left)
    }
}

/// One timer, owned by one task.
pub(crate) struct Timer {
    timers: Timers,
    slot: u32,
}

impl Timer {
    /// Sets the timer to fire at `due`, in place of any earlier setting.
    pub(crate) fn set(&self, due: Nanos) {
        let state = &mut *self.timers.inner.state.borrow_mut();
        state.set(self.slot, due);
        // It fails only for a bad descriptor or time, which `new` and `arm` rule out.
        self.timers.arm(state).expect("the alarm takes any time");
    }

    /// Returns ready once the timer has fired; otherwise the task is woken when it fires.
    pub(crate) fn poll_fired(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.timers.inner.state.borrow_mut();
        let slot = &mut state.slots[self.slot as usize];
        if slot.due == FIRED {
            return Poll::Ready(());
        }
        match &mut slot.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Returns ready when `due` has passed; `due` is `FIRED` once the timer is set.
    pub(crate) fn poll_due(&self, due: &mut Nanos, cx: &Context<'_>) -> Poll<()> {
        if *due != FIRED {
            if self.timers.inner.clock.nanos() >= *due {
                return Poll::Ready(());
            }
            self.set(*due);
            *due = FIRED;
        }
        self.poll_fired(cx)
    }

    /// Waits until `due`; returns at once if that has passed.
    pub(crate) fn sleep_until(&self, due: Nanos) -> Sleep<'_> {
        Sleep {
            timer: self,
            due: settable(due),
        }
    }
}

/// A wait. Written by hand, since each waiting user has one, and the compiled form of an async fn is twice as large.
pub(crate) struct Sleep<'a> {
    timer: &'a Timer,
    /// `FIRED` once the timer is set.
    due: Nanos,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_due(&mut self.due, cx)
    }
}

impl lab_client::Time for Timers {
    type Timer = Timer;

    #[inline]
    fn now(&self) -> Nanos {
        self.inner.clock.nanos()
    }

    fn timer(&self) -> Timer {
        Self::timer(self)
    }
}

impl lab_client::Timer for Timer {
    fn set(&self, due: Nanos) {
        Self::set(self, due);
    }

    fn poll_fired(&self, cx: &Context<'_>) -> Poll<()> {
        Self::poll_fired(self, cx)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut state = self.timers.inner.state.borrow_mut();
        let slot = &mut state.slots[self.slot as usize];
        slot.due = NEVER;
        slot.waker = None;
        state.free.push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn slot(state: &mut State) -> (u32, Arc<Count>) {
        let count = Arc::new(Count::default());
        let index = state.acquire();
        state.slots[index as usize].waker = Some(count.clone().into());
        (index, count)
    }

    fn woken(count: &Count) -> usize {
        count.0.load(Ordering::Relaxed)
    }

    #[test]
    fn fires_when_due_and_not_before() {
        let mut state = State::default();
        let (a, count) = slot(&mut state);
        state.set(a, 100);
        state.fire(99);
        assert_eq!(woken(&count), 0);
        state.fire(100);
        assert_eq!(woken(&count), 1);
        assert!(state.slots[a as usize].due == FIRED && state.heap.is_empty());
    }

    #[test]
    fn a_deadline_moved_later_needs_no_second_entry() {
        let mut state = State::default();
        let (a, count) = slot(&mut state);
        for due in 100..1000 {
            state.set(a, due);
        }
        assert_eq!(state.heap.len(), 1);
        state.fire(998);
        assert_eq!((woken(&count), state.earliest()), (0, Some(999)));
        state.fire(999);
        assert_eq!(woken(&count), 1);
    }

    #[test]
    fn a_timer_moved_earlier_fires_once() {
        let mut state = State::default();
        let (a, count) = slot(&mut state);
        state.set(a, 1000);
        state.set(a, 10);
        state.fire(10);
        state.fire(2000);
        assert_eq!(woken(&count), 1);
        assert!(state.heap.is_empty());
    }

    #[test]
    fn a_reused_slot_is_not_fired_by_its_former_owner() {
        let mut state = State::default();
        let (a, _) = slot(&mut state);
        state.set(a, 50);
        state.slots[a as usize].due = NEVER;
        state.free.push(a);
        let (b, count) = slot(&mut state);
        assert_eq!(a, b);
        state.set(b, 80);
        state.fire(60);
        assert_eq!(woken(&count), 0);
        state.fire(80);
        assert_eq!(woken(&count), 1);
    }
}
