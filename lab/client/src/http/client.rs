//! The client: renders a request, sends it on the user's connection, reads and judges the answer.
//!
//! Its rules are in [`crate::http`]. It knows no schedule.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use lab_workload::{Request, UserScope};

use super::POOLED_BYTES;
use super::capture::{HeaderFinds, read_answer};
use super::connection::{Connection, Route};
use super::cookie::Jar;
use super::head::Fault;
use super::request::{Prepared, Scratch, Unmade, path_of};
use super::response::{Complete, KeptBody, ResponseReader, Terms};
use super::server::{Limits, Server};
use crate::exchange::{Client, ClientCounts, ErrorClass, Exchange, Failure, RequestId};
use crate::resolve::Resolve;
use crate::tap::Tap;
use crate::time::{Nanos, Time, Timer, nanos};
use crate::tls::{self, Tls, TlsError};
use crate::url::BaseUrl;

/// Size of the one buffer that all connections of a worker read into.
const READ_BYTES: usize = 64 << 10;
/// Most buffers kept for reuse.
const POOLED: usize = 256;
/// How much of an unexpected answer is kept for the reader.
const EXAMPLE_BYTES: usize = 200;
/// A connection in use without a pause can't have gone stale unseen; one idle for longer is looked
/// at before it is used.
const LOOK_AFTER: Nanos = 1_000_000;

/// Most failures that a client describes: more than anybody shows. Later ones have their class alone.
const MAX_DETAILS: usize = 40;

/// One worker's HTTP client.
pub struct HttpClient<T: Time> {
    requests: Vec<Prepared>,
    base: BaseUrl,
    route: Result<Route, Box<str>>,
    tls: Tls,
    resolve: Resolve,
    limits: Limits,
    request_timeout: Nanos,
    connect_timeout: Nanos,
    idle_limit: Nanos,
    time: T,
    counts: Cell<ClientCounts>,
    details_left: Cell<usize>,
    read: RefCell<Box<[u8]>>,
    scratch: RefCell<Scratch>,
    messages: RefCell<Vec<String>>,
    tap: Option<Rc<dyn Tap>>,
}

/// What is kept of a user between requests.
#[derive(Default)]
pub struct HttpSession {
    connection: Option<Connection>,
    jar: Rc<RefCell<Jar>>,
}

/// How reading an answer ended.
enum Answer {
    /// Whole, and judged.
    Whole {
        at: Nanos,
        bytes: u64,
        result: Result<(), Failure>,
    },
    /// The connection ended before one byte of it.
    Nothing(io::Error),
    /// Anything else.
    Failed(ErrorClass, String),
}

/// What came of a turn of writing.
enum Turn {
    /// It ended so.
    Wrote(io::Result<()>),
    /// The answer was whole before the message was, or the connection ended.
    Answered(Answer),
}

impl<T: Time> HttpClient<T> {
    /// A client for these requests, by their place among them.
    pub fn new<'a>(requests: impl Iterator<Item = &'a Request>, server: Server, time: T) -> Self {
        let Server {
            base,
            addresses,
            tls,
            resolve,
            limits,
        } = server;
        let secure = || Ok((tls.config()?, tls.name_of(&base)?));
        let secure = base.secure.then(secure).transpose();
        let route = secure
            .map(|tls| Route { addresses, tls })
            .map_err(|error: TlsError| error.to_string().into());
        Self {
            requests: requests.map(|r| Prepared::new(r, &base)).collect(),
            base,
            route,
            tls,
            resolve,
            request_timeout: nanos(limits.request_timeout),
            connect_timeout: nanos(limits.connect_timeout),
            idle_limit: nanos(limits.keep_alive_idle),
            limits,
            time,
            counts: Cell::default(),
            details_left: Cell::new(MAX_DETAILS),
            read: RefCell::new(vec![0; READ_BYTES].into()),
            scratch: RefCell::default(),
            messages: RefCell::default(),
            tap: None,
        }
    }

    /// The same, with somebody who hears all that goes over the wire.
    #[must_use]
    pub fn tapped(self, tap: Rc<dyn Tap>) -> Self {
        Self {
            tap: Some(tap),
            ..self
        }
    }

    /// Sends a rendered message and reads the answer; at most twice, by the rule above.
    async fn converse(
        &self,
        session: &mut HttpSession,
        call: &mut Call<'_, T::Timer>,
        other: Option<Box<BaseUrl>>,
    ) -> (Nanos, u64, Result<(), Failure>) {
        self.drop_unusable(session, other.as_deref(), call.sent)
            .await;
        call.deadline
            .set(call.sent.saturating_add(self.request_timeout));
        loop {
            let reused = session.connection.is_some();
            if !reused && let Err(detail) = Box::pin(self.connect(session, call, &other)).await {
                return self.failed(ErrorClass::Connect, || detail);
            }
            let answer = match session.connection.as_mut() {
                Some(connection) => self.once(connection, &session.jar, call).await,
                None => Answer::Nothing(io::ErrorKind::NotConnected.into()),
            };
            match answer {
                Answer::Whole { at, bytes, result } => {
                    if !call.reusable {
                        session.connection = None;
                    } else if let Some(connection) = &mut session.connection {
                        connection.idle_since = Some(at);
                    }
                    return (at, bytes, result);
                }
                Answer::Nothing(_) if reused && call.prepared.idempotent => {
                    session.connection = None;
                    self.count(|counts| counts.stale_retries += 1);
                }
                Answer::Nothing(error) => {
                    session.connection = None;
                    return self.failed(ErrorClass::Reset, || broken(&error));
                }
                Answer::Failed(class, detail) => {
                    session.connection = None;
                    return self.failed(class, || detail);
                }
            }
        }
    }

    /// Drops a connection that this request can't use: to another server, idle for too long, or
    /// closed by the server meanwhile.
    async fn drop_unusable(&self, session: &mut HttpSession, other: Option<&BaseUrl>, now: Nanos) {
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

    /// Opens the session's connection within the connect timeout.
    async fn connect(
        &self,
        session: &mut HttpSession,
        call: &Call<'_, T::Timer>,
        other: &Option<Box<BaseUrl>>,
    ) -> Result<(), String> {
        let request_ends = call.sent.saturating_add(self.request_timeout);
        let began = self.time.now();
        let connect_ends = began.saturating_add(self.connect_timeout);
        call.deadline.set(connect_ends.min(request_ends));
        let open = async {
            let route = match other.as_deref() {
                None => self
                    .route
                    .clone()
                    .map_err(|text| io::Error::other(text.into_string()))?,
                Some(server) => self.route_to(server).await?,
            };
            Connection::open(&route, other.clone(), &self.time).await
        };
        let opened = within(call.deadline, open).await;
        call.deadline.set(request_ends);
        match opened {
            Some(Ok(connection)) => {
                self.count(|counts| counts.connects += 1);
                if let Some(tap) = &self.tap {
                    let server = other.as_deref().unwrap_or(&self.base);
                    tap.connected(server, began, self.time.now());
                }
                session.connection = Some(connection);
                Ok(())
            }
            Some(Err(error)) => Err(tls::in_words(&error)),
            None => Err("no connection within the connect timeout".to_owned()),
        }
    }

    /// The way to a server that only the workload names.
    async fn route_to(&self, server: &BaseUrl) -> io::Result<Route> {
        let secure = || Ok((self.tls.config()?, tls::server_name(&server.host)?));
        let tls = server.secure.then(secure).transpose();
        Ok(Route {
            tls: tls.map_err(|error: TlsError| io::Error::other(error))?,
            addresses: self.resolve.look_up(server).await?,
        })
    }

    /// Sends the message once and reads the answer.
    async fn once(
        &self,
        connection: &mut Connection,
        jar: &RefCell<Jar>,
        call: &mut Call<'_, T::Timer>,
    ) -> Answer {
        let (mut written, mut reader) = (0, None);
        if let Some(tap) = &self.tap {
            let server = connection.other.as_deref().unwrap_or(&self.base);
            tap.sent(server, self.time.now(), call.message.as_bytes());
        }
        let sent = loop {
            let turn = poll_fn(|cx| {
                let wrote = connection.poll_write_turn(cx, call.message.as_bytes(), &mut written);
                if wrote.is_pending() {
                    // A server that answers while it reads may read no further until its answer
                    // is taken.
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
            // Behind the other users, their timers, and their answers.
            tokio::task::yield_now().await;
        };
        // A server may answer and close before it has read everything: the answer counts then.
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

    /// Reads on. `reader` holds what came so far, if that wasn't all of it.
    fn poll_answer(
        &self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        jar: &RefCell<Jar>,
        call: &mut Call<'_, T::Timer>,
        reader: &mut Option<Box<ResponseReader>>,
    ) -> Poll<Answer> {
        let space = &mut *self.read.borrow_mut();
        loop {
            let count = match connection.poll_read(cx, space) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(self.ended(call, reader, None)),
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(self.ended(call, reader, Some(error)));
                }
            };
            let input = &space[..count];
            if let Some(tap) = &self.tap {
                tap.received(self.time.now(), input);
            }
            let mut fresh = None;
            let current = match reader.as_deref_mut() {
                Some(reader) => reader,
                None => fresh.insert(ResponseReader::new(self.terms(call))),
            };
            match self.feed(current, input, jar, call) {
                Ok(Some(complete)) => {
                    let body = match &complete.body {
                        KeptBody::Input(range) => &input[range.clone()],
                        KeptBody::Kept => current.kept(),
                    };
                    return Poll::Ready(self.judge(&complete, body, call));
                }
                Ok(None) => {
                    if let Some(fresh) = fresh {
                        *reader = Some(Box::new(fresh));
                    }
                }
                Err(fault) => {
                    return Poll::Ready(Answer::Failed(ErrorClass::Check, fault.to_string()));
                }
            }
        }
    }

    fn feed(
        &self,
        reader: &mut ResponseReader,
        input: &[u8],
        jar: &RefCell<Jar>,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<Option<Complete>, Fault> {
        let prepared = call.prepared;
        let keep = |status| {
            if !prepared.expects(status) {
                EXAMPLE_BYTES
            } else if prepared.keeps_body {
                usize::MAX
            } else {
                0
            }
        };
        let Call {
            message,
            finds,
            other,
            ..
        } = call;
        reader.feed(input, keep, &mut |name, value| {
            if prepared.reads_headers {
                finds.header(prepared, name, value);
            }
            if name.len() == 10 && name.eq_ignore_ascii_case("set-cookie") {
                let Ok(value) = std::str::from_utf8(value) else {
                    return;
                };
                // Another server's cookies are looked at and not kept.
                let mut passing = Jar::default();
                let mut own = jar.borrow_mut();
                let jar = if *other { &mut passing } else { &mut *own };
                if let Some((name, value)) = jar.store(value, &self.base.host, path_of(message)) {
                    finds.cookie(&prepared.captures, name, value);
                }
            }
        })
    }

    /// Judges a whole answer and keeps its captures.
    fn judge(&self, complete: &Complete, body: &[u8], call: &mut Call<'_, T::Timer>) -> Answer {
        let at = self.time.now();
        call.reusable = complete.reusable;
        let prepared = call.prepared;
        let result = if !prepared.expects(complete.status) {
            Err(self.failure(ErrorClass::Status, || status_text(complete.status, body)))
        } else if prepared.captures.is_empty() && prepared.answer.is_empty() {
            Ok(())
        } else {
            read_answer(prepared, body, &call.finds, call.message, call.scope).map_err(|cause| {
                self.failure(ErrorClass::Check, || {
                    format!("{cause}; {}", status_text(complete.status, body))
                })
            })
        };
        Answer::Whole {
            at,
            bytes: complete.body_bytes,
            result,
        }
    }

    /// The connection ended or broke.
    fn ended(
        &self,
        call: &mut Call<'_, T::Timer>,
        reader: &mut Option<Box<ResponseReader>>,
        error: Option<io::Error>,
    ) -> Answer {
        let clean = error.is_none();
        let error = error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
        let Some(reader) = reader else {
            return Answer::Nothing(error);
        };
        match reader.end().filter(|_| clean) {
            Some(complete) => self.judge(&complete, reader.kept(), call),
            None if reader.begun() => Answer::Failed(ErrorClass::Reset, broken(&error)),
            None => Answer::Nothing(error),
        }
    }

    fn terms(&self, call: &Call<'_, T::Timer>) -> Terms {
        Terms {
            head_request: call.prepared.is_head(),
            max_header_bytes: self.limits.max_header_bytes,
            max_body_bytes: self.limits.max_response_bytes,
        }
    }

    fn failed(
        &self,
        class: ErrorClass,
        detail: impl FnOnce() -> String,
    ) -> (Nanos, u64, Result<(), Failure>) {
        (self.time.now(), 0, Err(self.failure(class, detail)))
    }

    /// A failure, with its detail as long as such are wanted.
    fn failure(&self, class: ErrorClass, detail: impl FnOnce() -> String) -> Failure {
        let left = self.details_left.get();
        if left == 0 {
            return Failure {
                class,
                detail: Box::default(),
            };
        }
        self.details_left.set(left - 1);
        Failure {
            class,
            detail: detail().into(),
        }
    }

    fn count(&self, change: impl FnOnce(&mut ClientCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn take_message(&self) -> String {
        self.messages.borrow_mut().pop().unwrap_or_default()
    }

    fn give_back(&self, mut message: String) {
        if message.capacity() > POOLED_BYTES {
            self.scratch.borrow_mut().keep(message);
            return;
        }
        let mut messages = self.messages.borrow_mut();
        if messages.len() < POOLED {
            message.clear();
            messages.push(message);
        }
    }
}

/// One request under way.
struct Call<'a, T> {
    prepared: &'a Prepared,
    message: &'a str,
    scope: &'a mut UserScope,
    deadline: &'a T,
    finds: HeaderFinds,
    sent: Nanos,
    /// It goes to another server than the drive's.
    other: bool,
    /// Whether its connection may be used again.
    reusable: bool,
}

impl<T: Time> Client for HttpClient<T> {
    type Time = T;
    type Session = HttpSession;

    fn session(&self) -> HttpSession {
        HttpSession::default()
    }

    fn sibling(&self, session: &HttpSession) -> HttpSession {
        HttpSession {
            connection: None,
            jar: Rc::clone(&session.jar),
        }
    }

    async fn exchange(
        &self,
        session: &mut HttpSession,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &T::Timer,
    ) -> Exchange {
        let prepared = &self.requests[request as usize];
        let mut message = self.take_message();
        let rendered = {
            let scratch = &mut *self.scratch.borrow_mut();
            let jar = &mut *session.jar.borrow_mut();
            prepared.render(&self.base, scope, jar, scratch, &mut message)
        };
        let other = match rendered {
            Ok(other) => other,
            Err(unmade) => {
                self.give_back(message);
                return match unmade {
                    Unmade::Empty => Exchange::Skipped,
                    Unmade::Failed(detail) => Exchange::Unmade { detail },
                };
            }
        };
        let sent = self.time.now();
        let mut call = Call {
            prepared,
            message: &message,
            scope,
            deadline,
            finds: HeaderFinds::default(),
            sent,
            other: other.is_some(),
            reusable: false,
        };
        let (ended, bytes, result) = self.converse(session, &mut call, other).await;
        self.give_back(message);
        Exchange::Done {
            sent,
            ended,
            bytes,
            result,
        }
    }

    fn forget(&self, request: RequestId, scope: &mut UserScope) {
        for capture in &self.requests[request as usize].captures {
            scope.clear(capture.slot);
        }
    }

    fn take_counts(&self) -> ClientCounts {
        self.counts.take()
    }
}

/// Ready with `None` once the deadline has fired.
fn or_late<T>(deadline: &impl Timer, cx: &Context<'_>, found: Poll<T>) -> Poll<Option<T>> {
    match found {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => deadline.poll_fired(cx).map(|()| None),
    }
}

/// The future's output, unless the deadline fires before.
async fn within<F: Future>(deadline: &impl Timer, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let found = future.as_mut().poll(cx);
        or_late(deadline, cx, found)
    })
    .await
}

fn timeout_text<T>(call: &Call<'_, T>) -> String {
    format!("no whole answer from {} in time", path_of(call.message))
}

fn broken(error: &io::Error) -> String {
    let error = tls::in_words(error);
    format!("the connection ended before the answer was whole: {error}")
}

fn status_text(status: u16, body: &[u8]) -> String {
    let shown = &body[..body.len().min(EXAMPLE_BYTES)];
    let text = String::from_utf8_lossy(shown);
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("status {status}: {}", text.trim())
}
