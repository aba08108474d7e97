//! The client: renders a request, sends it on the user's connection, reads and judges the response.
//!
//! Its rules are in [`crate::http`]. It knows no schedule.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::Poll;

use lab_workload::{Tracing, UserScope, Workload};
use tokio::sync::{Notify, SemaphorePermit};

use super::POOLED_BYTES;
use super::call::{Answer, Call, timeout_text, unanswered};
use super::cookie::Jar;
use super::events::Listening;
use super::message::Message;
use super::pool::Pool;
use super::request::{Prepared, Scratch};
use super::session::{HttpSession, MadeOfParts, Shares};
use super::two::WINDOWS;
use crate::clock;
use crate::connection::{Connection, Route};
use crate::exchange::{Client, ClientCounts, Details, ErrorClass, Exchange, FailedRequest};
use crate::exchange::{Made, Phase, Phases, RequestId, Sizes, Unmade};
use crate::parts::{Parts, WholeAnswer};
use crate::resolve::Resolve;
use crate::server::{Limits, Server};
use crate::streams::{Sharing, builder};
use crate::tap::Tap;
use crate::time::{Nanos, Time, Timer, nanos, or_late, within};
use crate::tls::{self, Tls, TlsError};
use lab_units::BaseUrl;
use lab_units::Sources;
use lab_units::{Offer, Protocol, Version};

/// The size of the read buffer that all connections of a worker share.
const READ_BYTES: usize = 64 << 10;
/// The maximum number of buffers kept for reuse.
const POOLED: usize = 256;
/// The client checks a connection before use if it was idle for longer. A connection in constant use can't go stale
/// unnoticed.
const LOOK_AFTER: Nanos = 1_000_000;

/// One worker's HTTP client.
pub struct HttpClient<T: Time> {
    pub(super) requests: Vec<Prepared>,
    /// The requests whose messages are kept when they fail.
    pub(super) retried: Vec<bool>,
    pub(super) base: BaseUrl,
    route: Result<Route, Box<str>>,
    tls: Tls,
    resolve: Resolve,
    sources: Sources,
    pub(super) limits: Limits,
    pub(super) request_timeout: Nanos,
    connect_timeout: Nanos,
    pub(super) idle_limit: Nanos,
    pub(super) offer: Offer,
    /// The last choice of version by the base server, if it has the choice.
    pub(super) chosen: Cell<Option<Version>>,
    /// Notified when the server has chosen.
    pub(super) choices: Notify,
    /// The configuration of new HTTP/2 connections.
    pub(super) builder: ::h2::client::Builder,
    /// HTTP/2 connections that all users share.
    pub(super) sharing: Option<Sharing>,
    /// HTTP/1.1 connections that all users share.
    pool: Option<Pool>,
    pub(super) time: T,
    counts: Cell<ClientCounts>,
    details: Details,
    pub(super) read: RefCell<Box<[u8]>>,
    pub(super) scratch: RefCell<Scratch>,
    texts: RefCell<Vec<String>>,
    /// The rules for responses to programs' last requests, by the index of the workload's request.
    pub(super) variants: RefCell<Vec<Option<Rc<Prepared>>>>,
    /// The buffer for decoded responses.
    pub(super) decoded: RefCell<Vec<u8>>,
    pub(super) tap: Option<Rc<dyn Tap>>,
    pub(super) tracing: Option<Tracing>,
}

/// The end time and the outcome of an exchange.
pub(super) type Outcome = (Nanos, Sizes, Result<(), FailedRequest>);

/// The outcome of a write turn.
enum Turn {
    /// The write ended with this result.
    Wrote(io::Result<()>),
    /// The response was whole before the message was sent, or the connection ended.
    Answered(Answer),
}

impl<T: Time> HttpClient<T> {
    /// Returns a client for the workload's requests, in their order.
    pub fn new(workload: &Workload, server: Server, time: T) -> Self {
        let Server {
            base,
            addresses,
            tls,
            resolve,
            sources,
            protocol,
            limits,
        } = server;
        let limits = Limits {
            max_response_bytes: workload.max_body.unwrap_or(limits.max_response_bytes),
            ..limits
        };
        let Protocol { offer, shared } = protocol;
        let tracing = |share| Tracing::new(share, clock::unix_seconds() as u32, base.to_string());
        let tracing = workload.trace.map(tracing);
        let requests = workload.requests();
        let requests = requests
            .map(|request| Prepared::new(request, &workload.files, &workload.variables, &base));
        let secure = || Ok((tls.config()?, tls.name_of(&base)?));
        let secure = base.secure.then(secure).transpose();
        let route = secure
            .map(|tls| Route {
                addresses,
                tls,
                sources: sources.clone(),
            })
            .map_err(|error: TlsError| error.to_string().into());
        Self {
            requests: requests.collect(),
            retried: Vec::new(),
            base,
            route,
            tls,
            resolve,
            sources,
            request_timeout: nanos(limits.request_timeout),
            connect_timeout: nanos(limits.connect_timeout),
            idle_limit: nanos(limits.keep_alive_idle),
            offer,
            chosen: Cell::default(),
            choices: Notify::new(),
            builder: builder(&limits, &WINDOWS),
            sharing: shared.filter(|_| offer != Offer::One).map(Sharing::new),
            pool: shared.filter(|_| offer == Offer::One).map(Pool::new),
            limits,
            time,
            counts: Cell::default(),
            details: Details::default(),
            read: RefCell::new(vec![0; READ_BYTES].into()),
            scratch: RefCell::default(),
            texts: RefCell::default(),
            variants: RefCell::default(),
            decoded: RefCell::default(),
            tap: None,
            tracing,
        }
    }

    /// Returns the client set to keep failed messages of these requests (by index) for [`Client::again`].
    #[must_use]
    pub fn retrying(self, retried: Vec<bool>) -> Self {
        Self { retried, ..self }
    }

    /// Sends a rendered message and reads the response, on the session's connection or on a shared one. For other
    /// servers each session has a connection of its own.
    async fn converse(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Outcome {
        let pool = self.pool.as_ref();
        let Some(pool) = pool.filter(|_| matches!(session.shares, Shares::Free) && other.is_none())
        else {
            return self.converse_on_own(session, call, other).await;
        };
        let place = match pool.try_place() {
            Some(place) => place,
            None => match Box::pin(self.await_turn(pool, call)).await {
                Some(place) => place,
                None => {
                    let late = "all shared connections were in use until the request timed out";
                    return self.failed(ErrorClass::Timeout, || late.to_owned());
                }
            },
        };
        let own = std::mem::replace(&mut session.connection, pool.take());
        let outcome = self.converse_on_own(session, call, other).await;
        if let Some(shared) = std::mem::replace(&mut session.connection, own) {
            pool.give_back(shared);
        }
        drop(place);
        outcome
    }

    /// Waits for a shared connection, as part of the response time.
    async fn await_turn<'p>(
        &self,
        pool: &'p Pool,
        call: &mut Call<'_, T::Timer>,
    ) -> Option<SemaphorePermit<'p>> {
        let asked = self.time.now();
        call.deadline.set(call.ends);
        let place = within(call.deadline, pool.place()).await;
        call.began = self.time.now();
        let waited = call.began.saturating_sub(asked);
        call.phases.add(Phase::Blocked, waited);
        place.flatten()
    }

    /// Sends a rendered message and reads the response; at most twice, by the rule in [`crate::http`].
    async fn converse_on_own(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Outcome {
        self.drop_unusable(session, other.as_deref(), call.sent)
            .await;
        call.deadline.set(call.ends);
        loop {
            let reused = session.connection.is_some();
            if !reused && let Err(detail) = Box::pin(self.connect(session, call, other)).await {
                return self.failed(ErrorClass::Connect, || detail);
            }
            let answer = match session.connection.as_mut() {
                Some(connection) => self.once(connection, &session.jar, call).await,
                None => Answer::Nothing(io::ErrorKind::NotConnected.into()),
            };
            match answer {
                Answer::Whole { at, sizes, result } => {
                    session.used(call.reusable, at);
                    return (at, sizes, result);
                }
                Answer::Nothing(_) if reused && call.prepared.idempotent => {
                    session.connection = None;
                    self.count(|counts| counts.stale_retries += 1);
                }
                Answer::Nothing(error) => {
                    session.connection = None;
                    let idempotent = call.prepared.idempotent;
                    return self
                        .failed(ErrorClass::Reset, || unanswered(&error, reused, idempotent));
                }
                Answer::Failed(class, detail) => {
                    session.connection = None;
                    return self.failed(class, || detail);
                }
            }
        }
    }

    /// Drops a connection that this request can't use: to another server, idle for too long, or closed by the server
    /// meanwhile.
    pub(super) async fn drop_unusable(
        &self,
        session: &mut HttpSession,
        other: Option<&BaseUrl>,
        now: Nanos,
    ) {
        let Some(connection) = &mut session.connection else {
            return;
        };
        let idle = connection
            .idle_since
            .map_or(0, |since| now.saturating_sub(since));
        let wrong = connection.other.as_deref() != other;
        if wrong || idle > self.idle_limit || (idle > LOOK_AFTER && connection.is_stale().await) {
            session.connection = None;
        }
    }

    /// Opens the session's connection.
    async fn connect(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Result<(), String> {
        session.connection = Some(Box::new(self.open(call, other).await?));
        Ok(())
    }

    /// Opens a connection within the connect timeout.
    pub(super) async fn open(
        &self,
        call: &mut Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Result<Connection, String> {
        let began = self.time.now();
        let connect_ends = began.saturating_add(self.connect_timeout);
        call.deadline.set(connect_ends.min(call.ends));
        let phases = &mut call.phases;
        let open = async {
            let route = match other.as_deref() {
                None => self
                    .route
                    .clone()
                    .map_err(|text| io::Error::other(text.into_string()))?,
                Some(server) => {
                    let asked = self.time.now();
                    let route = self.route_to(server).await?;
                    phases.set(Phase::Dns, self.time.now().saturating_sub(asked));
                    route
                }
            };
            Connection::open(&route, other.clone(), &self.time, phases).await
        };
        let opened = within(call.deadline, open).await;
        call.deadline.set(call.ends);
        match opened {
            Some(Ok(connection)) => {
                call.began = self.time.now();
                self.count(|counts| counts.connects += 1);
                if let Some(tap) = &self.tap {
                    let server = other.as_deref().unwrap_or(&self.base);
                    tap.connected(server, began, self.time.now());
                }
                Ok(connection)
            }
            Some(Err(error)) => Err(tls::in_words(&error)),
            None => Err("no connection within the connect timeout".to_owned()),
        }
    }

    /// Returns the route to a server that only the workload names.
    async fn route_to(&self, server: &BaseUrl) -> io::Result<Route> {
        let secure = || Ok((self.tls.config()?, tls::server_name(&server.host)?));
        let tls = server.secure.then(secure).transpose();
        Ok(Route {
            tls: tls.map_err(|error: TlsError| io::Error::other(error))?,
            addresses: self.resolve.look_up(server).await?,
            sources: self.sources.clone(),
        })
    }

    /// Sends the message once and reads the response.
    pub(super) async fn once(
        &self,
        connection: &mut Connection,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) -> Answer {
        let (mut written, mut reader) = (0, None);
        if let Some(tap) = &self.tap {
            let server = connection.other.as_deref().unwrap_or(&self.base);
            let now = self.time.now();
            tap.sent(server, Version::One, now, &call.message.whole());
        }
        let sent = loop {
            let turn = poll_fn(|cx| {
                let wrote = call.message.poll_write(cx, connection, &mut written);
                if wrote.is_pending() {
                    // A server that responds while it reads may stop reading until the client takes the response.
                    let answer = self.poll_answer(cx, connection, jar, call, &mut reader);
                    if let Poll::Ready(answer) = answer {
                        return Poll::Ready(Some(Turn::Answered(answer)));
                    }
                }
                or_late(call.deadline, cx, wrote.map(Turn::Wrote))
            });
            let turn = turn.await;
            if written == call.message.len() || !matches!(turn, Some(Turn::Wrote(Ok(())))) {
                break turn;
            }
            // Let other users, their timers, and their responses run first.
            tokio::task::yield_now().await;
        };
        // A server may respond and close before it has read everything: the response counts then.
        let write_error = match sent {
            Some(Turn::Wrote(result)) => result.err(),
            Some(Turn::Answered(answer)) => {
                // The rest of the message would be taken for the next one.
                call.reusable = false;
                return answer;
            }
            None => return Answer::Failed(ErrorClass::Timeout, timeout_text(call)),
        };
        let answer = poll_fn(|cx| {
            let answer = self.poll_answer(cx, connection, jar, call, &mut reader);
            or_late(call.deadline, cx, answer)
        });
        match answer.await {
            Some(Answer::Nothing(error)) => Answer::Nothing(write_error.unwrap_or(error)),
            Some(answer) => answer,
            None => Answer::Failed(ErrorClass::Timeout, timeout_text(call)),
        }
    }

    pub(super) fn failed(&self, class: ErrorClass, detail: impl FnOnce() -> String) -> Outcome {
        let failure = self.failure(class, detail);
        (self.time.now(), Sizes::default(), Err(failure))
    }

    /// Returns a failure, with its detail while details are wanted.
    pub(super) fn failure(
        &self,
        class: ErrorClass,
        detail: impl FnOnce() -> String,
    ) -> FailedRequest {
        self.details.failure(class, detail)
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut ClientCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    pub(super) fn take_text(&self) -> String {
        self.texts.borrow_mut().pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, message: Message) {
        let mut text = message.text;
        if text.capacity() > POOLED_BYTES {
            self.scratch.borrow_mut().keep(text);
            return;
        }
        let mut texts = self.texts.borrow_mut();
        if texts.len() < POOLED {
            text.clear();
            texts.push(text);
        }
    }
}

impl<T: Time> Client for HttpClient<T> {
    type Time = T;
    type Session = HttpSession;

    fn session(&self) -> HttpSession {
        HttpSession {
            shares: match (&self.sharing, &self.pool) {
                (Some(sharing), _) => Shares::Dealt(sharing.deal()),
                (None, Some(_)) => Shares::Free,
                (None, None) => Shares::Nothing,
            },
            ..HttpSession::default()
        }
    }

    fn sibling(&self, session: &HttpSession) -> HttpSession {
        HttpSession {
            jar: session.jar.share(),
            ..HttpSession::default()
        }
    }

    fn parallel_session(&self, session: &mut HttpSession) -> HttpSession {
        HttpSession {
            shares: self.shares_of(session),
            ..self.sibling(session)
        }
    }

    fn multiplexes(&self, session: &HttpSession) -> Option<bool> {
        self.carries_many(session)
    }

    fn chosen(&self) -> impl Future<Output = ()> {
        self.choices.notified()
    }

    fn make(
        &self,
        session: &HttpSession,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        let hop = self.rendered(session, request, scope)?;
        Ok(Box::new((request, hop)))
    }

    fn take_up(&self, session: &mut HttpSession, made: Made) {
        match made.downcast::<MadeOfParts>() {
            Ok(made) => {
                session.answer = None;
                (session.own, session.hop) = (Some(made.own), Some(made.hop));
            }
            Err(made) => session.hop = made.downcast().ok(),
        }
    }

    fn make_of(
        &self,
        session: &HttpSession,
        request: RequestId,
        parts: &Parts,
    ) -> Result<Made, Unmade> {
        Ok(Box::new(self.rendered_parts(session, request, parts)?))
    }

    fn take_answer(&self, session: &mut HttpSession) -> Option<Box<WholeAnswer>> {
        session.answer.take()
    }

    fn clear_cookies(&self, session: &HttpSession) {
        session.jar.clear();
    }

    fn set_cookie(&self, session: &HttpSession, value: &str, path: &str) {
        session.jar.store(value, &self.base.host, path);
    }

    async fn exchange(
        &self,
        session: &mut HttpSession,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &T::Timer,
    ) -> Exchange {
        let own = session.own.clone();
        let usual = || &self.requests[request as usize];
        let prepared = own.as_deref().unwrap_or_else(usual);
        session.failed.take_if(|failed| failed.0 == request);
        let next = self.next_message(session, (request, prepared), scope);
        let next = next.and_then(|hop| match listening(prepared, scope) {
            Ok(listening) => Ok((hop, listening)),
            Err(detail) => Err(Unmade::Failed(detail)),
        });
        let (hop, listening) = match next {
            Ok(next) => next,
            Err(Unmade::Empty) => return Exchange::Skipped,
            Err(Unmade::Failed(detail)) => return Exchange::Unmade { detail },
        };
        let (mut message, other, left) = (hop.message, hop.other, hop.left);
        let sent = self.time.now();
        let going = (&message, other.is_some(), left);
        let timeout = prepared.timeout.unwrap_or(self.request_timeout);
        let time = (deadline, sent, sent.saturating_add(timeout));
        let mut call = Call::new(prepared, going, scope, time);
        call.listening = listening;
        let (ended, sizes, mut result) = match self.offer {
            Offer::One => self.converse(session, &mut call, &other).await,
            _ => Box::pin(self.converse_as_offered(session, &mut call, &other)).await,
        };
        let events = call.listening.take().map(|one| Box::new(one.into_times()));
        let redirect = call.redirect.take();
        let server = other.as_deref().unwrap_or(&self.base);
        session.keep_answer(call.whole.take(), server, &message.text);
        let refused = (call.is_refused, call.challenge.take());
        let phases = result.as_ref().map_or(Phases::default(), |()| call.phases);
        if let Err(failure) = &mut result {
            failure.retry_after = call.retry_after;
        }
        message.remove_signature();
        if let Some((status, location)) = redirect
            && let Err(why) = self.follow(
                session,
                (request, prepared),
                (&message, &other, left),
                (status, &location),
            )
        {
            result = Err(self.failure(ErrorClass::Check, || why));
        }
        let trace = message.trace;
        let is_challenged = session.jar.refused(refused);
        match &result {
            Ok(()) if is_challenged => session.answer_next(request, (message, other, left)),
            Ok(()) => self.give_back(message),
            Err(_) => self.keep_failed(session, request, (message, other, left)),
        }
        Exchange::Done {
            sent,
            ended,
            sizes,
            phases,
            result,
            events,
            redirected: session.hop.is_some(),
            trace,
        }
    }

    fn forget(&self, request: RequestId, scope: &mut UserScope) {
        for capture in &self.requests[request as usize].captures {
            scope.clear(capture.slot);
        }
    }

    fn tapped(self, tap: Rc<dyn Tap>) -> Self {
        Self {
            tap: Some(tap),
            ..self
        }
    }

    fn again(&self, session: &mut HttpSession, request: RequestId) {
        session.hop = session.failed.take().filter(|failed| failed.0 == request);
    }

    fn take_counts(&self) -> ClientCounts {
        self.counts.take()
    }
}

/// Returns the events that a request receives.
fn listening<'a>(
    prepared: &'a Prepared,
    scope: &mut UserScope,
) -> Result<Option<Box<Listening<'a>>>, Box<str>> {
    let Some(events) = &prepared.events else {
        return Ok(None);
    };
    let mut until = None;
    if let Some(template) = &events.until {
        let mut text = String::new();
        let rendered = template.render(scope, &mut text);
        rendered.map_err(|error| error.to_string())?;
        until = Some(text);
    }
    Ok(Some(Box::new(Listening::new(events, until))))
}
