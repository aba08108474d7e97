//! Where sessions that arrive meet connections: the one that has been free for longest takes the one
//! that has waited for longest. Pure; time is in the arrivals.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use crate::clock::Nanos;

/// A session that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Its number over all workers: it names the session's random streams.
    pub(crate) number: u64,
    /// When, on the worker's clock.
    pub(crate) at: Nanos,
}

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A free slot has it.
    Begun,
    /// It waits.
    Waits,
    /// Too many wait already.
    Dropped,
}

/// The slots of a worker and the sessions that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    waiting: VecDeque<Arrived>,
    max_waiting: usize,
}

#[derive(Debug, Default)]
struct Slot {
    session: Option<Arrived>,
    waker: Option<Waker>,
}

impl Pool {
    /// A pool of slots none of which is free yet.
    pub(crate) fn new(slots: usize, max_waiting: usize) -> Self {
        Self {
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            free: VecDeque::with_capacity(slots),
            waiting: VecDeque::new(),
            max_waiting,
        }
    }

    /// Takes in a session that arrives.
    pub(crate) fn arrive(&mut self, session: Arrived) -> Fate {
        if let Some(slot) = self.free.pop_front() {
            let slot = &mut self.slots[slot];
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

    /// The slot's last session is over: it takes the one that waits for longest, or becomes free.
    pub(crate) fn release(&mut self, slot: usize) {
        self.slots[slot].session = self.waiting.pop_front();
        if self.slots[slot].session.is_none() {
            self.free.push_back(slot);
        }
    }

    /// The session that the slot has been given; else its task is woken when it is given one.
    pub(crate) fn poll_session(&mut self, slot: usize, cx: &Context<'_>) -> Poll<Arrived> {
        let slot = &mut self.slots[slot];
        match slot.session.take() {
            Some(session) => Poll::Ready(session),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// How many sessions wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When those arrived that no slot has begun.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = Nanos> {
        let given = self.slots.iter().filter_map(|slot| slot.session.as_ref());
        given.chain(&self.waiting).map(|session| session.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u64) -> Arrived {
        Arrived {
            number,
            at: 10 * number,
        }
    }

    fn take(pool: &mut Pool, slot: usize) -> Option<u64> {
        match pool.poll_session(slot, &Context::from_waker(Waker::noop())) {
            Poll::Ready(session) => Some(session.number),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_slot_that_is_free_for_longest_comes_first() {
        let mut pool = Pool::new(3, 9);
        for slot in [2, 0, 1] {
            pool.release(slot);
        }
        assert_eq!(take(&mut pool, 2), None);
        for (number, slot) in [(0, 2), (1, 0)] {
            assert_eq!(pool.arrive(session(number)), Fate::Begun);
            assert_eq!(take(&mut pool, slot), Some(number));
        }
        pool.release(2);
        pool.arrive(session(2));
        assert_eq!((take(&mut pool, 2), take(&mut pool, 1)), (None, Some(2)));
    }

    #[test]
    fn sessions_wait_in_order_and_none_is_lost_unseen() {
        let mut pool = Pool::new(1, 2);
        pool.release(0);
        let fates = [0, 1, 2, 3].map(|number| pool.arrive(session(number)));
        assert_eq!(
            fates,
            [Fate::Begun, Fate::Waits, Fate::Waits, Fate::Dropped]
        );
        // Session 0 is given but not begun: it counts as one that has no answer.
        assert_eq!(pool.arrivals().collect::<Vec<_>>(), [0, 10, 20]);
        assert_eq!(take(&mut pool, 0), Some(0));
        pool.release(0);
        assert_eq!((take(&mut pool, 0), pool.waiting()), (Some(1), 1));
        pool.release(0);
        assert_eq!((take(&mut pool, 0), pool.waiting()), (Some(2), 0));
        pool.release(0);
        assert_eq!(pool.arrive(session(4)), Fate::Begun);
    }
}
