//! Assigns connections to arriving sessions. One pool serves all workers of a generator, so that no session waits while
//! a connection of another worker is free. A session gets the connection of its own worker first, and there the one
//! that was free for longest. The longest waiting session gets the next free one. It knows no time but the arrivals'.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Nanoseconds of one clock.
type Nanos = u64;

/// A session that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number over all workers: it names the session's random streams.
    pub number: u64,
    /// The arrival time, on the worker's clock.
    pub at: Nanos,
    /// The worker that received it.
    pub worker: usize,
}

/// The outcome of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A free slot has received it.
    Begun,
    /// The session waits.
    Waits,
    /// Too many sessions wait already.
    Dropped,
}

/// A slot: its worker and its index there.
pub type SlotId = (usize, usize);

/// The pool as its workers share it. Locked when a session arrives and when one ends, never to record a request.
#[derive(Debug, Clone, Default)]
pub struct SharedPool(Arc<Mutex<Pool>>);

impl SharedPool {
    /// Returns a pool for this number of workers, without slots yet.
    pub fn new(workers: usize, max_waiting: usize) -> Self {
        Self(Arc::new(Mutex::new(Pool {
            workers: std::iter::repeat_with(Slots::default)
                .take(workers)
                .collect(),
            waiting: VecDeque::new(),
            max_waiting,
            is_closed: false,
        })))
    }

    /// No worker panics while it holds the lock; a panic elsewhere ends the load anyway.
    pub fn lock(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of all workers and the waiting sessions.
#[derive(Debug, Default)]
pub struct Pool {
    workers: Vec<Slots>,
    waiting: VecDeque<Arrived>,
    max_waiting: usize,
    is_closed: bool,
}

/// The slots of a worker.
#[derive(Debug, Default)]
struct Slots {
    slots: Vec<Slot>,
    free: VecDeque<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    session: Option<Arrived>,
    waker: Option<Waker>,
}

impl Pool {
    /// Adds slots to a worker, none of which is free yet.
    pub fn add(&mut self, worker: usize, slots: usize) {
        let own = &mut self.workers[worker];
        own.slots.resize_with(slots, Slot::default);
        own.free.reserve(slots);
    }

    /// Assigns an arriving session to a slot, queues it, or drops it.
    pub fn arrive(&mut self, session: Arrived) -> Fate {
        if self.is_closed {
            self.waiting.push_back(session);
            Fate::Waits
        } else if let Some((worker, place)) = self.free(session.worker) {
            let slot = &mut self.workers[worker].slots[place];
            slot.session = Some(session);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
            Fate::Begun
        } else if self.waiting.len() < self.max_waiting {
            self.waiting.push_back(session);
            Fate::Waits
        } else {
            Fate::Dropped
        }
    }

    /// Returns a free slot, the worker's own before others'.
    fn free(&mut self, worker: usize) -> Option<SlotId> {
        let count = self.workers.len();
        (worker..count).chain(0..worker).find_map(|worker| {
            let place = self.workers[worker].free.pop_front()?;
            Some((worker, place))
        })
    }

    /// Ends the slot's session: the slot takes the longest waiting one, or becomes free.
    pub fn release(&mut self, (worker, place): SlotId) {
        if self.is_closed {
            return;
        }
        let own = &mut self.workers[worker];
        own.slots[place].session = self.waiting.pop_front();
        if own.slots[place].session.is_none() {
            own.free.push_back(place);
        }
    }

    /// Returns the session assigned to the slot; otherwise its task is woken when one is assigned.
    pub fn poll_session(&mut self, (worker, place): SlotId, cx: &Context<'_>) -> Poll<Arrived> {
        let slot = &mut self.workers[worker].slots[place];
        match slot.session.take_if(|_| !self.is_closed) {
            Some(session) => Poll::Ready(session),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns the number of waiting sessions.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Stops assigning sessions. The first worker that ends reports those that have not begun. A worker that ends a
    /// moment later must not start them meanwhile.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns the arrival times of a worker's sessions that no slot has begun.
    pub fn arrivals(&self, worker: usize) -> impl Iterator<Item = Nanos> {
        let slots = self.workers.iter().flat_map(|worker| &worker.slots);
        let given = slots.filter_map(|slot| slot.session.as_ref());
        let all = given.chain(&self.waiting);
        all.filter(move |session| session.worker == worker)
            .map(|session| session.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u64) -> Arrived {
        Arrived {
            number,
            at: 10 * number,
            worker: 0,
        }
    }

    fn pool(slots: &[usize], max_waiting: usize) -> SharedPool {
        let pool = SharedPool::new(slots.len(), max_waiting);
        for (worker, slots) in slots.iter().enumerate() {
            pool.lock().add(worker, *slots);
        }
        pool
    }

    fn take(pool: &mut Pool, slot: usize) -> Option<u64> {
        take_of(pool, (0, slot))
    }

    fn take_of(pool: &mut Pool, place: SlotId) -> Option<u64> {
        match pool.poll_session(place, &Context::from_waker(Waker::noop())) {
            Poll::Ready(session) => Some(session.number),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_slot_that_is_free_for_longest_comes_first() {
        let pool = pool(&[3], 9);
        let pool = &mut pool.lock();
        for slot in [2, 0, 1] {
            pool.release((0, slot));
        }
        assert_eq!(take(pool, 2), None);
        for (number, slot) in [(0, 2), (1, 0)] {
            assert_eq!(pool.arrive(session(number)), Fate::Begun);
            assert_eq!(take(pool, slot), Some(number));
        }
        pool.release((0, 2));
        pool.arrive(session(2));
        assert_eq!((take(pool, 2), take(pool, 1)), (None, Some(2)));
    }

    #[test]
    fn sessions_wait_in_order_and_none_is_lost_unseen() {
        let pool = pool(&[1], 2);
        let pool = &mut pool.lock();
        pool.release((0, 0));
        let fates = [0, 1, 2, 3].map(|number| pool.arrive(session(number)));
        assert_eq!(
            fates,
            [Fate::Begun, Fate::Waits, Fate::Waits, Fate::Dropped]
        );
        // Session 0 is assigned but not begun: it counts as one without a response.
        assert_eq!(pool.arrivals(0).collect::<Vec<_>>(), [0, 10, 20]);
        assert_eq!(take(pool, 0), Some(0));
        pool.release((0, 0));
        assert_eq!((take(pool, 0), pool.waiting()), (Some(1), 1));
        pool.release((0, 0));
        assert_eq!((take(pool, 0), pool.waiting()), (Some(2), 0));
        pool.release((0, 0));
        assert_eq!(pool.arrive(session(4)), Fate::Begun);
    }

    #[test]
    fn what_one_worker_tells_of_at_its_end_no_other_begins() {
        let pool = pool(&[1, 1], 1);
        let pool = &mut pool.lock();
        for place in [(0, 0), (1, 0)] {
            pool.release(place);
        }
        for number in 0..3 {
            pool.arrive(session(number));
        }
        assert_eq!(take_of(pool, (0, 0)), Some(0));
        pool.close();
        // One is assigned to the other worker's slot, and one waits.
        assert_eq!(pool.arrivals(0).collect::<Vec<_>>(), [10, 20]);
        pool.release((0, 0));
        assert_eq!((take_of(pool, (0, 0)), take_of(pool, (1, 0))), (None, None));
        // The other worker still reports its late arrivals, and none is dropped.
        let late = Arrived {
            worker: 1,
            ..session(3)
        };
        assert_eq!(pool.arrive(late), Fate::Waits);
        assert_eq!((pool.arrivals(0).count(), pool.arrivals(1).count()), (2, 1));
    }

    #[test]
    fn no_session_waits_while_another_worker_has_a_free_slot() {
        let pool = pool(&[1, 2], 9);
        let pool = &mut pool.lock();
        for place in [(0, 0), (1, 0), (1, 1)] {
            pool.release(place);
        }
        let fates = [0, 1, 2, 3].map(|number| pool.arrive(session(number)));
        assert_eq!(fates, [Fate::Begun, Fate::Begun, Fate::Begun, Fate::Waits]);
        assert_eq!(take_of(pool, (0, 0)), Some(0), "its own worker's first");
        assert_eq!(take_of(pool, (1, 0)), Some(1));
        // All four arrived at the first worker: it alone reports those that have not begun.
        assert_eq!(pool.arrivals(0).count(), 2);
        assert_eq!(pool.arrivals(1).count(), 0);
        pool.release((1, 0));
        assert_eq!(
            take_of(pool, (1, 0)),
            Some(3),
            "handed on to the next slot that is free"
        );
    }
}
