//! The client of all dialogues: connections, time limits, checks of responses. It knows no protocol and no schedule.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use lab_workload::{UserScope, Workload};

use super::judged::Judged;
use super::session::{
    DialogueSession, Ended, ExchangeBuffers, MadeRequest, OpenedConnection, SharedSlot, Stopped,
    failed,
};
use super::{Dialogue, Out, Reply, Transport};
use crate::connection::{Connection, Route};
use crate::exchange::{
    Client, ClientCounts, Details, ErrorClass, EventTimes, Exchange, FailedRequest, Made, Phase,
    Phases, RequestId, Sizes, Unmade,
};
use crate::server::{Limits, Server};
use crate::streams::{Sharing, Windows, builder};
use crate::tap::Tap;
use crate::time::{Nanos, Time, nanos, within};
use crate::tls::{self, Tls, TlsError};
use lab_units::BaseUrl;

/// The size of the read buffer that all connections of a worker share.
pub(super) const READ_BYTES: usize = 64 << 10;
/// The maximum number of buffer sets kept for reuse, and the maximum size of a buffer kept in one.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 64 << 10;
/// The client checks a connection before use if it was idle for longer.
const LOOK_AFTER: Nanos = 1_000_000;
/// Receive windows for one response, and for all responses on a shared connection. Some users may leave unrequested
/// messages unread, up to the stream window; the other users still receive theirs.
const WINDOWS: Windows = Windows {
    stream: 1 << 20,
    connection: (1 << 31) - 1,
    tiny_frames: 64 << 20,
};

/// One worker's client of a dialogue.
pub struct DialogueClient<D: Dialogue, T: Time> {
    pub(super) dialogue: D,
    requests: Vec<Judged>,
    base: BaseUrl,
    route: Result<Route, Box<str>>,
    tls: Tls,
    pub(super) limits: Limits,
    /// Connections that all users share.
    pub(super) sharing: Option<Sharing>,
    /// Configures new HTTP/2 connections.
    pub(super) builder: h2::client::Builder,
    pub(super) time: T,
    counts: Cell<ClientCounts>,
    pub(super) details: Details,
    pub(super) read: RefCell<Box<[u8]>>,
    desks: RefCell<Vec<ExchangeBuffers<D::ExchangeState>>>,
    pub(super) tap: Option<Rc<dyn Tap>>,
}

/// An exchange in progress.
pub(super) struct Call<'a, T> {
    pub(super) deadline: &'a T,
    /// When sending of the request began, on an open connection.
    pub(super) began: Nanos,
    /// When the first byte arrived after the last send. A send between messages doesn't change it.
    pub(super) first: Option<Nanos>,
    /// Bytes were sent since the last read: kept bytes may be the response to them.
    pub(super) anew: bool,
    /// Bytes received.
    pub(super) came: u64,
    /// Arrival times of messages, for protocols with several messages in a response.
    pub(super) times: EventTimes,
    last: Nanos,
}

impl<T> Call<'_, T> {
    pub(super) fn new(deadline: &T, began: Nanos) -> Call<'_, T> {
        Call {
            deadline,
            began,
            first: None,
            anew: true,
            came: 0,
            times: EventTimes::default(),
            last: 0,
        }
    }

    /// Records the arrival of messages up to the total count `messages`.
    pub(super) fn has_heard(&mut self, messages: u32, now: Nanos) {
        while self.times.count() < u64::from(messages) {
            match self.times.first {
                None => self.times.first = Some(now),
                Some(_) => self.times.gaps.push(now.saturating_sub(self.last)),
            }
            self.last = now;
        }
    }
}

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Returns a client for the workload's requests, in their order.
    pub fn new(workload: &Workload, dialogue: D, server: Server, time: T) -> Self {
        let Server {
            base,
            addresses,
            tls,
            limits,
            sources,
            protocol,
            resolve: _,
        } = server;
        let secure = || Ok((tls.config()?, tls.name_of(&base)?));
        let route = base.secure.then(secure).transpose();
        let route = route
            .map(|tls| Route {
                addresses,
                tls,
                sources,
            })
            .map_err(|error: TlsError| error.to_string().into());
        let sharing = protocol.shared.filter(|_| dialogue.streams().is_some());
        Self {
            sharing: sharing.map(Sharing::new),
            builder: builder(&limits, &WINDOWS),
            dialogue,
            requests: workload.requests().map(Judged::new).collect(),
            base,
            route,
            tls,
            limits,
            time,
            counts: Cell::default(),
            details: Details::default(),
            read: RefCell::new(vec![0; READ_BYTES].into()),
            desks: RefCell::default(),
            tap: None,
        }
    }

    /// Prepares the request, and the opening of a connection if none is usable.
    async fn begin(
        &self,
        session: &mut DialogueSession<D>,
        request: RequestId,
        scope: &mut UserScope,
        desk: &mut ExchangeBuffers<D::ExchangeState>,
    ) -> Result<(), Unmade> {
        let made = session.seat.as_mut().and_then(|seat| seat.made.take());
        match made.filter(|made| made.request == request) {
            Some(made) => *desk = made.desk,
            None => self.dialogue.ask(request, scope, &mut desk.talk)?,
        }
        self.drop_unusable(session, &desk.talk).await;
        if session.link.is_none() && session.place().is_none() {
            self.dialogue.open(scope, &mut desk.opening)?;
        }
        Ok(())
    }

    /// Drops a connection that was idle for too long, or that the server has closed.
    async fn drop_unusable(&self, session: &mut DialogueSession<D>, talk: &D::ExchangeState) {
        let Some(link) = &mut session.link else {
            return;
        };
        if D::READS_BETWEEN {
            let is_kept = poll_fn(|cx| Poll::Ready(self.attend(link, cx))).await;
            let dialogue = &self.dialogue;
            let goes_on = || dialogue.reports_end() || dialogue.only_listens(talk);
            if !is_kept || (link.ended.is_some() && !goes_on()) {
                session.link = None;
            }
            return;
        }
        let since = link.connection.idle_since.unwrap_or_default();
        let idle = self.time.now().saturating_sub(since);
        let limit = nanos(self.limits.keep_alive_idle);
        if idle > limit || (idle > LOOK_AFTER && link.connection.is_stale().await) {
            session.link = None;
        }
    }

    /// Reports the messages of a turn to the tap.
    pub(super) fn tell(&self, out: &mut Out) {
        let Some(tap) = &self.tap else { return };
        for (side, text) in out.told.drain(..) {
            tap.spoke(self.time.now(), side, &text);
        }
    }

    /// Opens a connection by the deadline.
    pub(super) async fn reach(
        &self,
        deadline: &T::Timer,
        transport: Transport,
        phases: &mut Phases,
    ) -> Result<Connection, String> {
        let route = self.route.as_ref().map_err(|text| text.to_string())?;
        let began = self.time.now();
        if transport == Transport::Udp {
            let connection = Connection::datagrams(route).map_err(|error| error.to_string())?;
            phases.set(Phase::Connect, self.time.now().saturating_sub(began));
            self.count(|counts| counts.connects += 1);
            return Ok(connection);
        }
        let open = Connection::open(route, None, &self.time, phases);
        let connection = match within(deadline, open).await {
            Some(Ok(connection)) => connection,
            Some(Err(error)) => return Err(tls::in_words(&error)),
            None => return Err("no connection within the connect timeout".to_owned()),
        };
        self.count(|counts| counts.connects += 1);
        if let Some(tap) = &self.tap {
            tap.connected(&self.base, began, self.time.now());
        }
        Ok(connection)
    }

    /// Opens a connection and sends what the protocol requires first, within the connect timeout.
    async fn connect(
        &self,
        desk: &mut ExchangeBuffers<D::ExchangeState>,
        call: &mut Call<'_, T::Timer>,
        phases: &mut Phases,
    ) -> Result<OpenedConnection<D::Line>, String> {
        let transport = self.dialogue.transport();
        let mut link = OpenedConnection::new(self.reach(call.deadline, transport, phases).await?);
        let greeted = self.time.now();
        let mut securing = 0;
        loop {
            let talk = (&mut desk.opening, &mut desk.out);
            match self.converse(&mut link, talk, call).await {
                Ok(Ended::Done(Reply { refused: None, .. })) => break,
                Ok(Ended::Done(reply)) => return Err(reply.refused.unwrap_or_default().into()),
                Ok(Ended::Secure) => {
                    let at = self.time.now();
                    link = self.secured(link, call).await?;
                    securing += self.time.now().saturating_sub(at);
                }
                Err(stopped) => return Err(self.opening_failed(stopped)),
            }
        }
        let took = self.time.now().saturating_sub(greeted);
        phases.add(Phase::Connect, took.saturating_sub(securing));
        if securing > 0 {
            phases.add(Phase::Tls, securing);
        }
        Ok(link)
    }

    /// Upgrades the connection to TLS.
    async fn secured(
        &self,
        link: OpenedConnection<D::Line>,
        call: &Call<'_, T::Timer>,
    ) -> Result<OpenedConnection<D::Line>, String> {
        if !link.rest.is_empty() {
            return Err("the server says more before TLS than it is asked".to_owned());
        }
        let words = |error: TlsError| error.to_string();
        let tls = (
            self.tls.config().map_err(words)?,
            self.tls.name_of(&self.base).map_err(words)?,
        );
        let secured = link.connection.secured(&tls);
        match within(call.deadline, secured).await {
            Some(Ok(connection)) => Ok(OpenedConnection { connection, ..link }),
            Some(Err(error)) => Err(tls::in_words(&error)),
            None => Err("no TLS within the connect timeout".to_owned()),
        }
    }

    fn opening_failed(&self, stopped: Stopped) -> String {
        match stopped {
            Stopped::Late => "the server doesn't greet within the connect timeout".to_owned(),
            Stopped::Broken(error) => {
                format!(
                    "the connection ended while it was opened: {}",
                    tls::in_words(&error)
                )
            }
            Stopped::Fault(what) => what,
        }
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut ClientCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn give_back(&self, mut desk: ExchangeBuffers<D::ExchangeState>) {
        let mut desks = self.desks.borrow_mut();
        if desks.len() < KEPT {
            for buffer in [&mut desk.out.say, &mut desk.out.body] {
                buffer.clear();
                buffer.shrink_to(KEPT_BYTES);
            }
            desks.push(desk);
        }
    }

    /// Describes the end of a connection, unless the request can still read kept messages.
    fn ended(&self, link: &OpenedConnection<D::Line>, talk: &D::ExchangeState) -> Option<String> {
        let why = link.ended.as_deref()?;
        let can_read = self.dialogue.keeps(&link.line) && self.dialogue.only_listens(talk);
        (!can_read).then(|| format!("the connection ended between requests: {why}"))
    }

    /// Sends the request on the session's connection, or on a new one.
    async fn answered(
        &self,
        session: &mut DialogueSession<D>,
        desk: &mut ExchangeBuffers<D::ExchangeState>,
        (sent, phases, times): (Nanos, &mut Phases, &mut EventTimes),
        (deadline, patience): (&T::Timer, Duration),
    ) -> (Nanos, Sizes, Result<Reply, FailedRequest>) {
        use crate::time::Timer as _;
        let mut call = Call::new(deadline, sent);
        let ends = sent.saturating_add(nanos(patience));
        let fail = |class, detail: String| {
            let failure = self.details.failure(class, || detail);
            (self.time.now(), Sizes::default(), Err(failure))
        };
        let mut link = match session.link.take() {
            Some(link) => match self.ended(&link, &desk.talk) {
                Some(detail) => return fail(ErrorClass::Reset, detail),
                None => link,
            },
            None => {
                let connected = sent.saturating_add(nanos(self.limits.connect_timeout));
                deadline.set(ends.min(connected));
                match Box::pin(self.connect(desk, &mut call, phases)).await {
                    Ok(link) => link,
                    Err(detail) => return fail(ErrorClass::Connect, detail),
                }
            }
        };
        deadline.set(ends);
        desk.out.body.clear();
        desk.out.messages = 0;
        desk.out.told.clear();
        desk.out.looked_at = self.tap.is_some();
        desk.out.say.append(&mut link.owed);
        call = Call::new(deadline, self.time.now());
        let talk = (&mut desk.talk, &mut desk.out);
        let ended = match self.converse(&mut link, talk, &mut call).await {
            Ok(Ended::Done(reply)) => Ok(reply),
            Ok(Ended::Secure) => Err(Stopped::Fault("TLS in the middle of a request".to_owned())),
            Err(stopped) => Err(stopped),
        };
        *times = std::mem::take(&mut call.times);
        self.tell(&mut desk.out);
        match ended {
            Ok(reply) => {
                let at = self.time.now();
                let first = call.first.unwrap_or(at);
                phases.set(Phase::Wait, first.saturating_sub(call.began));
                phases.set(Phase::Receive, at.saturating_sub(first));
                link.connection.idle_since = Some(at);
                session.link = (!reply.ends).then_some(link);
                (at, Sizes::of(call.came), Ok(reply))
            }
            Err(stopped) => {
                // A missed deadline of the request's own concerns the request alone. Silence for the maximum request
                // timeout concerns the connection.
                let longest = self.limits.request_timeout;
                let since = link.silence.miss(call.began);
                let silent = self.time.now().saturating_sub(since);
                let is_own = patience < longest && silent < nanos(longest);
                if matches!(stopped, Stopped::Late) && is_own {
                    let goes_on = self.dialogue.give_up(&mut link.line, &mut link.owed);
                    session.link = goes_on.then_some(link);
                }
                let (class, detail) = failed(&stopped);
                fail(class, detail)
            }
        }
    }
}

impl<D: Dialogue, T: Time> Client for DialogueClient<D, T> {
    type Time = T;
    type Session = DialogueSession<D>;

    fn session(&self) -> DialogueSession<D> {
        let place = self.sharing.as_ref().map(Sharing::deal);
        DialogueSession {
            link: None,
            seat: place.map(|place| SharedSlot::at(Some(place))),
        }
    }

    fn sibling(&self, _: &DialogueSession<D>) -> DialogueSession<D> {
        DialogueSession {
            link: None,
            seat: None,
        }
    }

    fn parallel_session(&self, session: &mut DialogueSession<D>) -> DialogueSession<D> {
        DialogueSession {
            link: None,
            seat: Some(SharedSlot::at(session.place())),
        }
    }

    fn multiplexes(&self, _: &DialogueSession<D>) -> Option<bool> {
        Some(self.sharing.is_some())
    }

    fn make(
        &self,
        _: &DialogueSession<D>,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        let mut desk = self.desks.borrow_mut().pop().unwrap_or_default();
        self.dialogue.ask(request, scope, &mut desk.talk)?;
        Ok(Box::new(MadeRequest { request, desk }))
    }

    fn take_up(&self, session: &mut DialogueSession<D>, made: Made) {
        if let Some(seat) = &mut session.seat {
            seat.made = made.downcast().ok();
        }
    }

    async fn exchange(
        &self,
        session: &mut DialogueSession<D>,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &T::Timer,
    ) -> Exchange {
        let mut desk = self.desks.borrow_mut().pop().unwrap_or_default();
        match self.begin(session, request, scope, &mut desk).await {
            Ok(()) => {}
            Err(Unmade::Empty) => return Exchange::Skipped,
            Err(Unmade::Failed(detail)) => return Exchange::Unmade { detail },
        }
        let sent = self.time.now();
        let mut phases = Phases::default();
        let mut times = EventTimes::default();
        let measured = (sent, &mut phases, &mut times);
        let timeout = self.requests[request as usize].timeout;
        let timeout = timeout.unwrap_or(self.limits.request_timeout);
        let patience = self.dialogue.patience(request);
        let patience = patience.map_or(timeout, |own| own.min(timeout));
        let time = (deadline, patience);
        let shared = session.seat.as_mut().filter(|seat| seat.place.is_some());
        let (ended, sizes, reply) = match (shared, self.dialogue.streams()) {
            (Some(seat), Some(streams)) => {
                let answered = self.answered_in_stream((seat, streams), &mut desk, measured, time);
                Box::pin(answered).await
            }
            _ => self.answered(session, &mut desk, measured, time).await,
        };
        let judged = &self.requests[request as usize];
        let is_open = reply.as_ref().is_ok_and(|reply| reply.open);
        let took = ended.saturating_sub(sent);
        let result = reply
            .and_then(|reply| judged.judge((&reply, &desk.out.body, took), scope, &self.details));
        if is_open && result.is_err() {
            session.link = None;
        }
        self.give_back(desk);
        Exchange::Done {
            sent,
            ended,
            sizes,
            phases: match result {
                Ok(()) => phases,
                Err(_) => Phases::default(),
            },
            result,
            events: D::SAYS_MESSAGES.then(|| Box::new(times)),
            redirected: false,
            trace: None,
        }
    }

    fn poll_idle(&self, session: &mut DialogueSession<D>, cx: &mut Context<'_>) {
        if D::READS_BETWEEN
            && let Some(link) = &mut session.link
            && !self.attend(link, cx)
        {
            session.link = None;
        }
    }

    fn forget(&self, request: RequestId, scope: &mut UserScope) {
        self.requests[request as usize].forget(scope);
    }

    fn tapped(self, tap: Rc<dyn Tap>) -> Self {
        Self {
            tap: Some(tap),
            ..self
        }
    }

    fn take_counts(&self) -> ClientCounts {
        self.counts.take()
    }
}
