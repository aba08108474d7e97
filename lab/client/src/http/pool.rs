//! HTTP/1.1 connections that all users of a worker share: each carries one request at a time, and belongs to no user in
//! between. It knows nothing of requests.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::connection::Connection;

/// A worker's shared connections. All of them are opened before one is reused. Then the one that was free for longest
/// is taken, so that all stay in use.
pub(super) struct Pool {
    free: RefCell<VecDeque<Box<Connection>>>,
    /// One permit for each request in progress.
    places: Semaphore,
    most: usize,
}

impl Pool {
    /// Returns a pool of at most this number of connections, at least one.
    pub(super) fn new(connections: u32) -> Self {
        let most = connections.max(1) as usize;
        Self {
            free: RefCell::default(),
            places: Semaphore::new(most),
            most,
        }
    }

    /// Returns a permit for a request, if one is free.
    pub(super) fn try_place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// Waits for a permit for a request, in order of arrival.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.places.acquire().await.ok()
    }

    /// Returns a connection for a permit holder; `None` if one more may be opened.
    pub(super) fn take(&self) -> Option<Box<Connection>> {
        let mut free = self.free.borrow_mut();
        let taken = self.most - self.places.available_permits();
        // The permits in use include the caller's own, whose connection is not open yet.
        match free.len() + taken > self.most {
            true => free.pop_front(),
            false => None,
        }
    }

    /// Returns a reusable connection to the pool.
    pub(super) fn give_back(&self, connection: Box<Connection>) {
        self.free.borrow_mut().push_back(connection);
    }
}
