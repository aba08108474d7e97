//! Sessions beside a user's own, for requests that go out at the same time. It knows no requests.

use std::cell::RefCell;

use crate::client::Client;

/// The sessions that users have for such requests, and where those under way are noted. Of a population without any it
/// holds nothing.
pub(crate) struct Beside<C: Client> {
    /// By the user's place on its worker; those that are not in use.
    sessions: Box<[RefCell<Vec<C::Session>>]>,
    /// The most of a user at once.
    at_once: usize,
}

impl<C: Client> Beside<C> {
    /// Those of so many users, each with so many requests at once.
    pub(crate) fn new(users: usize, at_once: usize) -> Self {
        let users = if at_once > 0 { users } else { 0 };
        Self {
            sessions: (0..users).map(|_| RefCell::default()).collect(),
            at_once,
        }
    }

    /// How many requests of so many users may be under way.
    pub(crate) fn places(users: usize, at_once: usize) -> usize {
        users * (1 + at_once)
    }

    /// Where a request of a user is noted while it is under way, behind those of users themselves.
    pub(crate) fn place(&self, user: usize, number: usize) -> usize {
        self.sessions.len() + user * self.at_once + number
    }

    pub(crate) fn take(&self, user: usize) -> Option<C::Session> {
        self.sessions.get(user)?.borrow_mut().pop()
    }

    pub(crate) fn keep(&self, user: usize, session: C::Session) {
        if let Some(sessions) = self.sessions.get(user) {
            sessions.borrow_mut().push(session);
        }
    }

    /// Ends a user's sessions.
    pub(crate) fn end(&self, user: usize) {
        if let Some(sessions) = self.sessions.get(user) {
            sessions.take();
        }
    }
}
