//! Connections of HTTP/1.1 that all users of a worker share: each carries one request at a time, and is
//! nobody's in between. It knows nothing of requests.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::connection::Connection;

/// A worker's shared connections. All of them are opened before one is used again, and then the one that
/// has been free for longest is taken, so that all are kept in use.
pub(super) struct Pool {
    free: RefCell<VecDeque<Box<Connection>>>,
    /// One for each request under way.
    places: Semaphore,
    most: usize,
}

impl Pool {
    /// At most so many connections, one at least.
    pub(super) fn new(connections: u32) -> Self {
        let most = connections.max(1) as usize;
        Self {
            free: RefCell::default(),
            places: Semaphore::new(most),
            most,
        }
    }

    /// A place for a request, if one is free.
    pub(super) fn try_place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// A place for a request; who waits for longest has the next one.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.places.acquire().await.ok()
    }

    /// A connection for who has a place; `None` where one more may be opened.
    pub(super) fn take(&self) -> Option<Box<Connection>> {
        let mut free = self.free.borrow_mut();
        let taken = self.most - self.places.available_permits();
        // The taker's own is among those taken, and not open yet.
        match free.len() + taken > self.most {
            true => free.pop_front(),
            false => None,
        }
    }

    /// Takes a connection back that may be used again.
    pub(super) fn give_back(&self, connection: Box<Connection>) {
        self.free.borrow_mut().push_back(connection);
    }
}
