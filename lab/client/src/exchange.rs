//! The border between *when* and *how*: the engine calls a [`Client`], which knows its protocol
//! and no schedule; the engine knows the schedule and no protocol.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::task::Context;

pub use lab_counts::ErrorClass;
use lab_workload::{RenderError, TraceContext, UserScope};
use serde::{Deserialize, Serialize};

use crate::tap::Tap;
use crate::time::{Nanos, Time};

/// Which request of the workload, as [`lab_workload::Workload::requests`] numbers them.
pub type RequestId = u32;

/// What a worker's users speak with: the contract between the engine, which knows when, and a protocol,
/// which knows how. One per worker thread; never shared between threads, so that nothing in it is locked.
///
/// What every client holds to, and what the tests in `conformance` ask of each:
///
/// - **One exchange is one operation**, and one transaction: it ends when all of the answer is there, and
///   waits for nothing but the server and the deadline that it sets itself. Nothing is sent that isn't
///   counted: what goes out a second time is in [`ClientCounts::stale_retries`].
/// - **Time** is read where it matters: [`Exchange::Done`]'s `sent` just before the first byte goes out,
///   or before a connection is opened for it, and `ended` just after the last byte came in, before the
///   answer is judged. All that needs making is made before `sent`. How long after the planned moment that
///   is, the engine works out by itself; a client knows no plan.
/// - **Errors** have the class that [`ErrorClass`] tells. After all of them but
///   [`ErrorClass::Status`] and a judgement on a whole answer, the connection is given up, or what was asked on
///   it is cancelled, so that no late answer is taken for another's.
/// - **Cancellation**: whoever drops the future drops the session, too, and with it the connection. An
///   exchange may end at every `await`, and leaves nothing behind that runs on.
/// - **Connections** are kept in the session and used again. How many were opened is counted.
/// - **Bounds**: no answer takes more memory than the limits say; no exchange lasts longer.
pub trait Client: 'static {
    /// The worker's clock and timers.
    type Time: Time;

    /// What is kept per user between requests: a connection, cookies.
    type Session: 'static;

    /// The session of a new user.
    fn session(&self) -> Self::Session;

    /// A session with the same identity (cookies) and a connection of its own.
    fn sibling(&self, session: &Self::Session) -> Self::Session;

    /// A session for requests that go out beside others of the same user: as [`Client::sibling`], but over the
    /// connections that the user shares, and over the user's own connection where that carries several requests.
    fn beside(&self, session: &mut Self::Session) -> Self::Session {
        self.sibling(session)
    }

    /// Whether requests that go out beside others of the user share a connection; `None` until the server has chosen a
    /// protocol.
    fn multiplexes(&self, _session: &Self::Session) -> Option<bool> {
        Some(false)
    }

    /// Ends when the server has chosen a protocol on a connection that is opened from now on.
    fn chosen(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }

    /// Makes the request from the user's variables and sends nothing, so that several are made before the first is
    /// sent. A client that makes none before it sends it has nothing to give.
    ///
    /// # Errors
    /// Why it can't be made.
    fn make(
        &self,
        _session: &Self::Session,
        _request: RequestId,
        _scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        Ok(Box::new(()))
    }

    /// The next exchange of the request that was made is to send it as it is.
    fn take_up(&self, _session: &mut Self::Session, _made: Made) {}

    /// Makes the request from the user's variables, sends it, awaits the whole answer, judges it
    /// by the request's `expect`, and keeps its captures in `scope`.
    ///
    /// `deadline` is a timer for the client's own use. Whoever drops the future drops the session too.
    fn exchange(
        &self,
        session: &mut Self::Session,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &<Self::Time as Time>::Timer,
    ) -> impl Future<Output = Exchange>;

    /// Looks after the user's connection while nothing is asked on it: what a server must be answered at once, such
    /// as a ping, is answered. The task is woken when there is more. Of a client whose servers say nothing unasked,
    /// nothing is done.
    #[inline]
    fn poll_idle(&self, _session: &mut Self::Session, _cx: &mut Context<'_>) {}

    /// Forgets what the request would have captured, so that a skipped or failed step leaves no
    /// older value behind for later steps to act on a second time.
    fn forget(&self, request: RequestId, scope: &mut UserScope);

    /// The next exchange of this request, which failed just now, is to send the same message again. Of a
    /// client that doesn't keep it, the request is made anew.
    fn again(&self, _session: &mut Self::Session, _request: RequestId) {}

    /// The step whose first request this is was left out, because a condition doesn't hold.
    fn left_out(&self, _request: RequestId) {}

    /// The same, with somebody who hears all that goes over the wire. Of a client that doesn't tell,
    /// nothing is heard.
    #[must_use]
    fn tapped(self, _tap: Rc<dyn Tap>) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Counts since the last call.
    fn take_counts(&self) -> ClientCounts;
}

/// A request that was made and not sent yet, as its client has it.
pub type Made = Box<dyn Any>;

/// How a request went.
#[derive(Debug)]
pub enum Exchange {
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
        /// The answer's body.
        sizes: Sizes,
        /// Where its time went; of a failed request nothing.
        phases: Phases,
        /// Whether it met its `expect`, or redirects to where that is to be found.
        result: Result<(), FailedRequest>,
        /// When events came, of a request that listens for them.
        events: Option<Box<EventTimes>>,
        /// It redirects: the same request is to be exchanged once more, and goes there.
        redirected: bool,
        /// The trace that it began.
        trace: Option<TraceContext>,
    },
}

impl Exchange {
    /// The class of its failure; `None` if it met its `expect` or was not sent.
    #[must_use]
    pub fn failure(&self) -> Option<ErrorClass> {
        match self {
            Self::Done { result, .. } => result.as_ref().err().map(|failure| failure.class),
            Self::Skipped | Self::Unmade { .. } => None,
        }
    }

    /// Whether the same request is to be exchanged once more.
    #[must_use]
    pub fn redirected(&self) -> bool {
        matches!(
            self,
            Self::Done {
                redirected: true,
                ..
            }
        )
    }
}

/// A stretch of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Asking for the addresses of a server that only the workload names; the study's own are asked
    /// for once, before the load.
    Dns,
    /// Opening a connection, with what a protocol says on it before the first request.
    Connect,
    /// The handshake of TLS on it.
    Tls,
    /// Waiting for a shared connection that another user opens, or for the server to allow one more
    /// request on it.
    Blocked,
    /// From the first byte sent to the first byte of the answer.
    Wait,
    /// From there to its last byte; 0 where all of it was there at once.
    Receive,
}

impl Phase {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// All of them, in their order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Blocked,
        Self::Wait,
        Self::Receive,
    ];
}

/// How long the phases of an exchange took, in the order of [`Phase::ALL`]; `None` of one that it did not
/// have, as all exchanges on a kept connection have no [`Phase::Connect`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases(pub [Option<Nanos>; Phase::COUNT]);

impl Phases {
    /// Sets what `phase` took.
    pub fn set(&mut self, phase: Phase, took: Nanos) {
        self.0[phase as usize] = Some(took);
    }

    /// The sums of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (phase, took) in Phase::ALL.into_iter().zip(other.0) {
            if let Some(took) = took {
                self.add(phase, took);
            }
        }
        self
    }

    /// Adds to what `phase` took.
    pub fn add(&mut self, phase: Phase, took: Nanos) {
        let before = self.0[phase as usize].unwrap_or_default();
        self.set(phase, before.saturating_add(took));
    }
}

/// When server-sent events came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventTimes {
    /// When the first came; `None` where none did.
    pub first: Option<Nanos>,
    /// How long after the one before each further one came.
    pub gaps: Vec<Nanos>,
}

impl EventTimes {
    /// How many came.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::from(self.first.is_some()) + self.gaps.len() as u64
    }
}

/// How large the body of an answer was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// As it came, bytes.
    pub wire: u64,
    /// As it was meant, bytes: decoded, where it came compressed and was asked for so.
    pub plain: u64,
}

impl Sizes {
    /// Of a body that came as it was meant.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self {
            wire: bytes,
            plain: bytes,
        }
    }
}

/// Why a request can't be made.
#[derive(Debug)]
pub enum Unmade {
    /// A list has no entry: the step is to be skipped.
    Empty,
    /// Anything else.
    Failed(Box<str>),
}

impl From<RenderError> for Unmade {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::EmptyList { .. } => Self::Empty,
            other => Self::Failed(other.to_string().into()),
        }
    }
}

/// A failed request.
#[derive(Debug)]
pub struct FailedRequest {
    /// Its class.
    pub class: ErrorClass,
    /// Status and first bytes, or the cause; empty once the worker has examples enough.
    pub detail: Box<str>,
    /// How many seconds later it is to be sent again, where the answer says so (`Retry-After`).
    pub retry_after: Option<u32>,
    /// The status of the answer, if it is not an expected one.
    pub status: Option<u16>,
}

impl FailedRequest {
    /// A failure without a status and without `Retry-After`.
    #[must_use]
    pub fn new(class: ErrorClass, detail: impl Into<Box<str>>) -> Self {
        Self {
            class,
            detail: detail.into(),
            retry_after: None,
            status: None,
        }
    }
}

/// Describes failures, as many as anybody shows; later ones have their class alone.
#[derive(Debug)]
pub(crate) struct Details(Cell<usize>);

impl Default for Details {
    fn default() -> Self {
        Self(Cell::new(40))
    }
}

impl Details {
    /// A failure, with its detail as long as such are wanted.
    pub(crate) fn failure(
        &self,
        class: ErrorClass,
        detail: impl FnOnce() -> String,
    ) -> FailedRequest {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        let detail = if left == 0 { String::new() } else { detail() };
        FailedRequest::new(class, detail)
    }
}

/// What a client counts besides the outcome of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCounts {
    /// Connections opened.
    pub connects: u64,
    /// Those of them that speak HTTP/2.
    #[serde(default)]
    pub http2_connects: u64,
    /// Requests sent a second time because the server had closed the kept connection while it was
    /// idle, or said that it did nothing with them; see [`crate::http`] for the rule.
    pub stale_retries: u64,
    /// Cookies that users lost because a server set more than they keep.
    #[serde(default)]
    pub evicted_cookies: u64,
}

impl ClientCounts {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            connects: self.connects + other.connects,
            http2_connects: self.http2_connects + other.http2_connects,
            stale_retries: self.stale_retries + other.stale_retries,
            evicted_cookies: self.evicted_cookies + other.evicted_cookies,
        }
    }
}
