//! Users of a worker that wait for a value each: the longest wait is served first.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The queue may hold this many tickets of users who left.
const GONE: usize = 32;

/// The waiting users.
#[derive(Debug)]
pub(crate) struct Waiters<T> {
    queue: VecDeque<Ticket<T>>,
    /// The number of users that wait.
    waiting: usize,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            waiting: 0,
        }
    }
}

/// The position of a user in the queue.
#[derive(Debug)]
pub(crate) struct Ticket<T>(Rc<RefCell<Place<T>>>);

impl<T> Clone for Ticket<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

#[derive(Debug)]
enum Place<T> {
    Waits(Option<Waker>),
    Given(T),
    Left,
}

/// How a user left the queue.
#[derive(Debug)]
pub(crate) enum Left<T> {
    /// With its value.
    Taken,
    /// Before it was given a value.
    Waiting,
    /// After it was given a value that it didn't take.
    Given(T),
}

impl<T> Waiters<T> {
    /// Adds a user.
    pub(crate) fn join(&mut self) -> Ticket<T> {
        let ticket = Ticket(Rc::new(RefCell::new(Place::Waits(None))));
        self.queue.push_back(ticket.clone());
        self.waiting += 1;
        ticket
    }

    /// Returns true if no user waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Gives a value to the user with the longest wait; returns it if no user waits.
    pub(crate) fn give(&mut self, what: T) -> Result<(), T> {
        if self.waiting == 0 {
            return Err(what);
        }
        while let Some(ticket) = self.queue.pop_front() {
            let place = &mut *ticket.0.borrow_mut();
            if let Place::Waits(waker) = place {
                let waker = waker.take();
                *place = Place::Given(what);
                self.waiting -= 1;
                if let Some(waker) = waker {
                    waker.wake();
                }
                return Ok(());
            }
        }
        Err(what)
    }

    /// Removes a user from the queue.
    pub(crate) fn leave(&mut self, ticket: &Ticket<T>) -> Left<T> {
        let place = std::mem::replace(&mut *ticket.0.borrow_mut(), Place::Left);
        match place {
            Place::Given(what) => Left::Given(what),
            Place::Left => Left::Taken,
            Place::Waits(_) => {
                self.waiting -= 1;
                if self.queue.len() > 2 * self.waiting + GONE {
                    self.queue
                        .retain(|one| matches!(&*one.0.borrow(), Place::Waits(_)));
                }
                Left::Waiting
            }
        }
    }
}

impl<T> Ticket<T> {
    /// Returns the given value; otherwise its task is woken when a value is given.
    pub(crate) fn poll_given(&self, cx: &Context<'_>) -> Poll<T> {
        let place = &mut *self.0.borrow_mut();
        if let Place::Waits(waker) = place {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match std::mem::replace(place, Place::Left) {
            Place::Given(what) => Poll::Ready(what),
            // The value was taken before.
            Place::Left | Place::Waits(_) => Poll::Pending,
        }
    }
}
