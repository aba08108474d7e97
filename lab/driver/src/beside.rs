//! Sessions beside a user's own, for requests that go out at the same time. It knows no requests.

use std::cell::RefCell;
use std::collections::VecDeque;

use lab_client::time::Nanos;

use crate::client::Client;

/// The sessions that users have for such requests, and the requests that wait for their turn. It is empty where a
/// population has no such requests.
pub(crate) struct Beside<C: Client> {
    /// By the user's place on its worker.
    users: Box<[RefCell<Kept<C>>]>,
    /// The most of a user at once.
    at_once: usize,
}

/// What one user has.
struct Kept<C: Client> {
    /// Those that are not in use.
    sessions: Vec<C::Session>,
    /// The step as which each request counts that waits for its turn, and when all of them were due.
    queue: VecDeque<(usize, Nanos)>,
}

impl<C: Client> Default for Kept<C> {
    fn default() -> Self {
        Self {
            sessions: Vec::new(),
            queue: VecDeque::new(),
        }
    }
}

impl<C: Client> Beside<C> {
    /// Those of so many users, each with so many requests at once.
    pub(crate) fn new(users: usize, at_once: usize) -> Self {
        let users = if at_once > 0 { users } else { 0 };
        Self {
            users: (0..users).map(|_| RefCell::default()).collect(),
            at_once,
        }
    }

    /// How many requests of so many users may be under way.
    pub(crate) fn places(users: usize, at_once: usize) -> usize {
        users * (1 + at_once)
    }

    /// Where a request of a user is noted while it is under way, behind those of users themselves.
    pub(crate) fn place(&self, user: usize, number: usize) -> usize {
        self.users.len() + user * self.at_once + number
    }

    /// These requests of a user wait for their turn.
    pub(crate) fn wait(&self, user: usize, queue: VecDeque<(usize, Nanos)>) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().queue = queue;
        }
    }

    /// The first of those that wait has its turn.
    pub(crate) fn next(&self, user: usize) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().queue.pop_front();
        }
    }

    /// All requests that wait for their turn: the step as which each counts, and when it was due.
    pub(crate) fn queued(&self) -> Vec<(usize, Nanos)> {
        let mut all = Vec::new();
        for kept in &self.users {
            all.extend(&kept.borrow().queue);
        }
        all
    }

    pub(crate) fn take(&self, user: usize) -> Option<C::Session> {
        self.users.get(user)?.borrow_mut().sessions.pop()
    }

    pub(crate) fn keep(&self, user: usize, session: C::Session) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().sessions.push(session);
        }
    }

    /// Ends a user's sessions.
    pub(crate) fn end(&self, user: usize) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().sessions.clear();
        }
    }
}
