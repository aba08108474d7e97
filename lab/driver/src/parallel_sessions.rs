//! Additional sessions of a user, for parallel requests. It knows no requests.

use std::cell::RefCell;
use std::collections::VecDeque;

use lab_client::time::Nanos;

use crate::client::Client;

/// The users' sessions for parallel requests, and the requests that wait for a slot. Empty if a population has no
/// parallel requests.
pub(crate) struct ParallelSessions<C: Client> {
    /// By the user's index on its worker.
    users: Box<[RefCell<UserSessions<C>>]>,
    /// The maximum number of parallel requests per user.
    at_once: usize,
}

/// The parallel sessions of one user.
struct UserSessions<C: Client> {
    /// Sessions that are not in use.
    sessions: Vec<C::Session>,
    /// Queued requests: the step as which each counts, and when all of them were due.
    queue: VecDeque<(usize, Nanos)>,
}

impl<C: Client> Default for UserSessions<C> {
    fn default() -> Self {
        Self {
            sessions: Vec::new(),
            queue: VecDeque::new(),
        }
    }
}

impl<C: Client> ParallelSessions<C> {
    /// Returns the sessions for this number of users and of parallel requests per user.
    pub(crate) fn new(users: usize, at_once: usize) -> Self {
        let users = if at_once > 0 { users } else { 0 };
        Self {
            users: (0..users).map(|_| RefCell::default()).collect(),
            at_once,
        }
    }

    /// Returns the maximum number of requests in progress for this number of users.
    pub(crate) fn places(users: usize, at_once: usize) -> usize {
        users * (1 + at_once)
    }

    /// Returns the slot for a request in progress. The slots of users themselves come first.
    pub(crate) fn place(&self, user: usize, number: usize) -> usize {
        self.users.len() + user * self.at_once + number
    }

    /// Sets the queued requests of a user.
    pub(crate) fn wait(&self, user: usize, queue: VecDeque<(usize, Nanos)>) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().queue = queue;
        }
    }

    /// Removes the queued request of a user at this place: it starts now.
    pub(crate) fn next(&self, user: usize, place: usize) {
        if let Some(kept) = self.users.get(user) {
            kept.borrow_mut().queue.remove(place);
        }
    }

    /// Returns all queued requests: the step as which each counts, and when it was due.
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
