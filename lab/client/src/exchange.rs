//! The interface between engine and protocol. The engine calls a [`Client`], which knows its protocol and no schedule;
//! the engine knows the schedule and no protocol.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::task::Context;

pub use lab_counts::ErrorClass;
use lab_workload::{RenderError, TraceContext, UserScope};
use serde::{Deserialize, Serialize};

use crate::parts::{Parts, WholeAnswer};
use crate::tap::Tap;
use crate::time::{Nanos, Time};

/// The number of a request of the workload, as in [`lab_workload::Workload::requests`].
pub type RequestId = u32;

/// The protocol client of a worker's users: the contract between the engine, which has the schedule, and a protocol.
/// One per worker thread; never shared between threads, so that it needs no locks.
///
/// The rules for every client, checked by the tests in `conformance`:
///
/// - **One exchange is one operation**, and one transaction. It ends when the response is whole, and waits only for the
///   server and the deadline that it sets itself. Everything sent is counted: repeated sends are in
///   [`ClientCounts::stale_retries`].
/// - **Time** is read where it matters. [`Exchange::Done`]'s `sent` is just before the first byte is sent, or before a
///   connection is opened for it. `ended` is just after the last byte is received, before the response is judged. All
///   rendering is done before `sent`. The engine computes the delay against the planned time; a client knows no plan.
/// - **Errors** have the class that [`ErrorClass`] defines. After all of them except [`ErrorClass::Status`] and a
///   failed check of a whole response, the client drops the connection or cancels the request. No late response can
///   then be taken for another one.
/// - **Cancellation**: a caller that drops the future drops the session, too, and with it the connection. An exchange
///   may end at every `await`, and leaves nothing running.
/// - **Connections** are kept in the session and reused. The number of opened connections is counted.
/// - **Bounds**: no response takes more memory than the limits allow; no exchange lasts longer.
pub trait Client: 'static {
    /// The worker's clock and timers.
    type Time: Time;

    /// The state of a user between requests: a connection, cookies.
    type Session: 'static;

    /// Returns the session of a new user.
    fn session(&self) -> Self::Session;

    /// Returns a session with the same identity (cookies) and a connection of its own.
    fn sibling(&self, session: &Self::Session) -> Self::Session;

    /// Returns a session for requests sent in parallel with others of the same user: as [`Client::sibling`], but on the
    /// user's shared connections, or on the user's own connection if it carries several requests.
    fn parallel_session(&self, session: &mut Self::Session) -> Self::Session {
        self.sibling(session)
    }

    /// Returns whether parallel requests of the user share a connection; `None` until the server has chosen a protocol.
    fn multiplexes(&self, _session: &Self::Session) -> Option<bool> {
        Some(false)
    }

    /// Completes when the server has chosen a protocol on a connection opened from now on.
    fn chosen(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }

    /// Renders the request from the user's variables and sends nothing, so that several can be rendered before the
    /// first is sent. Returns nothing if the client renders only when it sends.
    ///
    /// # Errors
    /// Why the request can't be rendered.
    fn make(
        &self,
        _session: &Self::Session,
        _request: RequestId,
        _scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        Ok(Box::new(()))
    }

    /// Makes the next exchange of the request send `_made` as it is.
    fn take_up(&self, _session: &mut Self::Session, _made: Made) {}

    /// Renders a request that a program made, as [`Client::make`] renders one of the workload. It counts as `_request`.
    /// After [`Client::take_up`] and the exchange, [`Client::take_answer`] returns its response, whatever its status.
    ///
    /// # Errors
    /// Why the request can't be rendered.
    fn make_of(
        &self,
        _session: &Self::Session,
        _request: RequestId,
        _parts: &Parts,
    ) -> Result<Made, Unmade> {
        Err(Unmade::Failed("scripts send only HTTP requests".into()))
    }

    /// Returns the response to the last request that a program made.
    fn take_answer(&self, _session: &mut Self::Session) -> Option<Box<WholeAnswer>> {
        None
    }

    /// Removes the cookies that servers set.
    fn clear_cookies(&self, _session: &Self::Session) {}

    /// Stores a cookie as if a response to a request for `_path` had set it, by the value of `Set-Cookie`.
    fn set_cookie(&self, _session: &Self::Session, _value: &str, _path: &str) {}

    /// Renders the request from the user's variables, sends it, awaits the whole response, judges it by the request's
    /// `expect`, and keeps its captures in `scope`.
    ///
    /// `deadline` is a timer for the client's own use. A caller that drops the future drops the session too.
    fn exchange(
        &self,
        session: &mut Self::Session,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &<Self::Time as Time>::Timer,
    ) -> impl Future<Output = Exchange>;

    /// Serves the user's connection between requests, for example by responding to a ping. Wakes the task when there is
    /// more. Does nothing for a protocol whose servers send no unrequested messages.
    #[inline]
    fn poll_idle(&self, _session: &mut Self::Session, _cx: &mut Context<'_>) {}

    /// Clears the variables that the request would have captured, so that later steps don't use an older value after a
    /// skipped or failed step.
    fn forget(&self, request: RequestId, scope: &mut UserScope);

    /// Makes the next exchange of this request, which has just failed, send the same message again. A client that
    /// doesn't keep the message renders it again.
    fn again(&self, _session: &mut Self::Session, _request: RequestId) {}

    /// Reports that the step with this first request was skipped, because a condition doesn't hold.
    fn left_out(&self, _request: RequestId) {}

    /// Returns the client with a tap on all its traffic. A client without support for taps reports nothing.
    #[must_use]
    fn tapped(self, _tap: Rc<dyn Tap>) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Returns the counts since the last call.
    fn take_counts(&self) -> ClientCounts;
}

/// A request that was rendered and not sent yet, in its client's form.
pub type Made = Box<dyn Any>;

/// The outcome of an exchange.
#[derive(Debug)]
pub enum Exchange {
    /// A list that the request needs is empty: nothing was sent.
    Skipped,
    /// The request could not be rendered, for any other reason: nothing was sent.
    Unmade {
        /// Why.
        detail: Box<str>,
    },
    /// The request was sent, or a connection for it was tried.
    Done {
        /// Just before the first byte was sent, or before the connection was opened for it.
        sent: Nanos,
        /// Just after the last byte of the response, or at the failure.
        ended: Nanos,
        /// The size of the response's body.
        sizes: Sizes,
        /// The time per phase; empty for a failed request.
        phases: Phases,
        /// Whether the response met its `expect`, or redirects.
        result: Result<(), FailedRequest>,
        /// Arrival times of events, of a request that receives them.
        events: Option<Box<EventTimes>>,
        /// The response redirects: the next exchange of the same request follows the redirect.
        redirected: bool,
        /// The trace that the request began.
        trace: Option<TraceContext>,
    },
}

impl Exchange {
    /// Returns the class of the failure; `None` if the request met its `expect` or was not sent.
    #[must_use]
    pub fn failure(&self) -> Option<ErrorClass> {
        match self {
            Self::Done { result, .. } => result.as_ref().err().map(|failure| failure.class),
            Self::Skipped | Self::Unmade { .. } => None,
        }
    }

    /// Returns true if the same request is to be exchanged once more.
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

/// A phase of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Name resolution of a server that only the workload names. The names of the study's own servers are resolved
    /// once, before the load.
    Dns,
    /// Opening a connection, with all that a protocol sends on it before the first request.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Waiting for another user to open a shared connection, or for a free stream on it.
    Blocked,
    /// From the first byte sent to the first byte of the response.
    Wait,
    /// From there to its last byte; 0 if all of it arrived at once.
    Receive,
}

impl Phase {
    /// The number of phases.
    pub const COUNT: usize = 6;

    /// All phases, in their order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Blocked,
        Self::Wait,
        Self::Receive,
    ];
}

/// The duration of each phase, in the order of [`Phase::ALL`]; `None` for a phase that did not occur. An exchange on a
/// kept connection has no [`Phase::Connect`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases(pub [Option<Nanos>; Phase::COUNT]);

impl Phases {
    /// Sets the duration of `phase`.
    pub fn set(&mut self, phase: Phase, took: Nanos) {
        self.0[phase as usize] = Some(took);
    }

    /// Returns the sums of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (phase, took) in Phase::ALL.into_iter().zip(other.0) {
            if let Some(took) = took {
                self.add(phase, took);
            }
        }
        self
    }

    /// Adds to the duration of `phase`.
    pub fn add(&mut self, phase: Phase, took: Nanos) {
        let before = self.0[phase as usize].unwrap_or_default();
        self.set(phase, before.saturating_add(took));
    }
}

/// Arrival times of server-sent events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventTimes {
    /// Arrival of the first event; `None` if there was none.
    pub first: Option<Nanos>,
    /// The time between each further event and the previous one.
    pub gaps: Vec<Nanos>,
}

impl EventTimes {
    /// Returns the number of events.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::from(self.first.is_some()) + self.gaps.len() as u64
    }
}

/// The size of a response's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// As received, bytes.
    pub wire: u64,
    /// After decoding, bytes. Equal to `wire` unless the response was compressed on request.
    pub plain: u64,
}

impl Sizes {
    /// Returns the sizes of a body without an encoding.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self {
            wire: bytes,
            plain: bytes,
        }
    }
}

/// Why a request can't be rendered.
#[derive(Debug)]
pub enum Unmade {
    /// A list has no entry: the step is skipped.
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
    /// The error class.
    pub class: ErrorClass,
    /// Status and first bytes, or the cause; empty once the worker has enough examples.
    pub detail: Box<str>,
    /// The delay in seconds before a retry, if the response requests one (`Retry-After`).
    pub retry_after: Option<u32>,
    /// The status of the response, if it is not an expected one.
    pub status: Option<u16>,
}

impl FailedRequest {
    /// Returns a failure without a status and without `Retry-After`.
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

/// Describes failures up to the number that reports show; later ones have only their class.
#[derive(Debug)]
pub(crate) struct Details(Cell<usize>);

impl Default for Details {
    fn default() -> Self {
        Self(Cell::new(40))
    }
}

impl Details {
    /// Returns a failure, with its detail while details are wanted.
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
    /// HTTP/2 connections opened.
    #[serde(default)]
    pub http2_connects: u64,
    /// Requests sent a second time because the server had closed the kept connection while it was idle, or reported
    /// that it did not process them; see [`crate::http`] for the rule.
    pub stale_retries: u64,
    /// Cookies that users lost because a server set more than a user keeps.
    #[serde(default)]
    pub evicted_cookies: u64,
}

impl ClientCounts {
    /// Returns the sums of both.
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
