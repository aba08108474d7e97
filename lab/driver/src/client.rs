//! The border between *when* and *how*: the engine calls a [`Client`], which knows its protocol
//! and no schedule; the engine knows the schedule and no protocol.

use std::future::Future;

use lab_workload::UserScope;
use serde::{Deserialize, Serialize};

use crate::clock::Nanos;
use crate::event::ErrorClass;
use crate::timers::Timer;

/// Which request of the workload: setup first, then the session, then the probe, in file order.
pub(crate) type RequestId = u32;

/// What a worker's users speak with. One per worker thread; never shared between threads.
pub(crate) trait Client: 'static {
    /// What is kept per user between requests: a connection, cookies.
    type Session: 'static;

    /// The session of a new user.
    fn session(&self) -> Self::Session;

    /// A session with the same identity (cookies) and a connection of its own.
    fn sibling(&self, session: &Self::Session) -> Self::Session;

    /// Makes the request from the user's variables, sends it, awaits the whole answer, judges it
    /// by the request's `expect`, and keeps its captures in `scope`.
    ///
    /// `deadline` is a timer for the client's own use. Whoever drops the future drops the session too.
    fn exchange(
        &self,
        session: &mut Self::Session,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &Timer,
    ) -> impl Future<Output = Exchange>;

    /// Forgets what the requests would have captured, so that a skipped or failed step leaves no
    /// older value behind for later steps to act on a second time.
    fn forget(&self, request: RequestId, scope: &mut UserScope);

    /// Counts since the last call.
    fn take_counts(&self) -> ClientCounts;
}

/// How a request went.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// A list that the request needs is empty: nothing was sent.
    Skipped,
    /// The request could not be made, for any other reason: nothing was sent.
    Unmade {
        /// Why.
        detail: Box<str>,
    },
    /// It was sent, or a connection for it was tried.
    Done {
        /// Just before the first byte was sent, or before the connection was opened for it.
        sent: Nanos,
        /// Just after the last byte of the answer, or when it failed.
        ended: Nanos,
        /// Bytes of the response body.
        bytes: u64,
        /// Whether it met its `expect`.
        result: Result<(), Failure>,
    },
}

/// A failed request.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Its class.
    pub(crate) class: ErrorClass,
    /// Status and first bytes, or the cause; empty once the worker has examples enough.
    pub(crate) detail: Box<str>,
}

/// What a client counts besides the outcome of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientCounts {
    /// Connections opened.
    pub(crate) connects: u64,
    /// See [`crate::Window::stale_retries`].
    pub(crate) stale_retries: u64,
}
