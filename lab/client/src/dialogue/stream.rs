//! Requests of users with shared connections, each in an HTTP/2 stream: choice of the connection, repetition, and
//! outcome. It knows no protocol but HTTP/2.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::client::{Call, DialogueClient};
use super::session::{ExchangeBuffers, UserSlot};
use super::{Dialogue, Out, Reply, StreamEnd, StreamSlot, Streams, Transport};
use crate::exchange::{ErrorClass, EventTimes, FailedRequest, Phase, Phases, Sizes};
use crate::streams::Link;
use crate::time::{Nanos, Time, Timer, nanos, or_late, within};

/// The outcome of a request without a reply.
enum Lost {
    /// The request was not sent: the connection had ended.
    Unsent(String),
    /// The server reports that it did not process the request. Holds the outcome if it isn't sent again.
    Unprocessed(Reply),
    /// Anything else.
    Failed(ErrorClass, String),
}

/// A request in progress in a stream.
struct Going<'a, L, K> {
    streams: &'a dyn Streams<L, K>,
    line: &'a mut L,
    talk: &'a mut K,
    out: &'a mut Out,
}

impl<D: Dialogue, T: Time> DialogueClient<D, T> {
    /// Sends the request in a stream of its own, or in an open one. Sends it at most twice: again if the server did not
    /// process it, or if it was not sent.
    pub(super) async fn answered_in_stream(
        &self,
        (seat, streams): (&mut UserSlot<D>, &dyn Streams<D::Line, D::ExchangeState>),
        desk: &mut ExchangeBuffers<D::ExchangeState>,
        (sent, phases, times): (Nanos, &mut Phases, &mut EventTimes),
        (deadline, patience): (&T::Timer, Duration),
    ) -> (Nanos, Sizes, Result<Reply, FailedRequest>) {
        let ends = sent.saturating_add(nanos(patience));
        let mut first = true;
        let (call, ended) = loop {
            deadline.set(ends);
            let mut call = Call::new(deadline, sent);
            self.clear(&mut desk.out);
            let during = (&mut call, &mut *phases, ends);
            let lost = match self
                .once_in_stream((&mut *seat, streams), desk, during)
                .await
            {
                Ok(reply) => break (call, Ok(reply)),
                Err(lost) => lost,
            };
            match lost {
                Lost::Unsent(_) if first => {}
                Lost::Unprocessed(_) if first => self.count(|counts| counts.stale_retries += 1),
                Lost::Unsent(why) => break (call, Err((ErrorClass::Reset, why))),
                Lost::Unprocessed(reply) => break (call, Ok(reply)),
                Lost::Failed(class, why) => break (call, Err((class, why))),
            }
            first = false;
        };
        let at = self.time.now();
        self.tell(&mut desk.out);
        *times = call.times;
        match ended {
            Ok(reply) => {
                let first = call.first.unwrap_or(at);
                phases.set(Phase::Wait, first.saturating_sub(call.began));
                phases.set(Phase::Receive, at.saturating_sub(first));
                let bytes = desk.out.came.unwrap_or_default();
                (at, Sizes::of(bytes), Ok(reply))
            }
            Err((class, why)) => {
                let failure = self.details.failure(class, || why);
                (at, Sizes::default(), Err(failure))
            }
        }
    }

    /// Clears the previous response.
    fn clear(&self, out: &mut Out) {
        out.body.clear();
        out.told.clear();
        out.messages = 0;
        out.came = None;
        out.looked_at = self.tap.is_some();
    }

    /// Sends the request once, and reads its response.
    async fn once_in_stream(
        &self,
        (seat, streams): (&mut UserSlot<D>, &dyn Streams<D::Line, D::ExchangeState>),
        desk: &mut ExchangeBuffers<D::ExchangeState>,
        (call, phases, ends): (&mut Call<'_, T::Timer>, &mut Phases, Nanos),
    ) -> Result<Reply, Lost> {
        let mut link = None;
        let mut to = None;
        if !streams.goes_on(&seat.line, &desk.talk) {
            let place = self.place(seat, (call.deadline, phases, ends)).await?;
            if let Some(held) = &seat.held {
                link = Some(Rc::clone(&held.link));
                to = Some((held.sender(), place));
            }
        }
        call.began = self.time.now();
        let begun = streams.begin(&mut seat.line, &mut desk.talk, to, &mut desk.out);
        self.tell(&mut desk.out);
        let mut going = Going {
            streams,
            line: &mut seat.line,
            talk: &mut desk.talk,
            out: &mut desk.out,
        };
        let ended = match begun {
            Err(end) => Some(Err(end)),
            Ok(()) => {
                let came = poll_fn(|cx| {
                    let came = self.poll_stream(cx, &mut going, call);
                    or_late(call.deadline, cx, came)
                });
                came.await
            }
        };
        if let Some(link) = link.as_ref().filter(|_| call.first.is_some()) {
            link.hear(self.time.now());
        }
        let end = match ended {
            Some(Ok(reply)) => return Ok(reply),
            Some(Err(end)) => Some(end),
            None => None,
        };
        streams.give_up(&mut seat.line);
        let lost = lost(end, link.as_deref());
        if let (Lost::Failed(ErrorClass::Timeout, _), Some(link)) = (&lost, &link) {
            let since = link.miss(call.began);
            let silent = self.time.now().saturating_sub(since);
            if silent >= nanos(self.limits.request_timeout) {
                // The connection may be dead. Requests that wait on it continue to wait.
                link.retire();
            }
        }
        Err(lost)
    }

    /// Reads on.
    fn poll_stream(
        &self,
        cx: &mut Context<'_>,
        going: &mut Going<'_, D::Line, D::ExchangeState>,
        call: &mut Call<'_, T::Timer>,
    ) -> Poll<Result<Reply, StreamEnd>> {
        let Going {
            streams,
            line,
            talk,
            out,
        } = going;
        let came = streams.poll(cx, line, talk, out);
        if out.came.is_some() || out.messages > 0 {
            let now = self.time.now();
            call.first.get_or_insert(now);
            call.has_heard(out.messages, now);
            self.tell(out);
            let most = self.limits.max_response_bytes;
            if out.came.is_some_and(|bytes| bytes > most) {
                let what = format!("the answer has more than {most} bytes");
                return Poll::Ready(Err(StreamEnd::Fault(what)));
            }
        }
        came
    }

    /// Returns a place for the request on the user's connection, and opens the connection if needed.
    async fn place(
        &self,
        seat: &mut UserSlot<D>,
        (deadline, phases, ends): (&T::Timer, &mut Phases, Nanos),
    ) -> Result<StreamSlot, Lost> {
        if let Some(held) = &mut seat.held
            && held.is_unusable().await
        {
            seat.held = None;
        }
        let held = match &seat.held {
            Some(held) => held,
            None => {
                let sharing = self.sharing.as_ref().ok_or_else(nothing_shared)?;
                let open = self.open_shared((deadline, &mut *phases, ends));
                let open = async { open.await.map(Some) };
                let shared = seat.place.ok_or_else(nothing_shared)?;
                let joined = sharing.join(shared, (&self.time, deadline), open);
                let (blocked, joined) = Box::pin(joined).await;
                if let Some(blocked) = blocked {
                    phases.add(Phase::Blocked, blocked);
                }
                let held = joined.map_err(|(class, why)| Lost::Failed(class, why))?;
                let held = held.ok_or_else(nothing_shared)?;
                &*seat.held.insert(held)
            }
        };
        if let Some(place) = held.link.try_place() {
            return Ok(place);
        }
        let asked = self.time.now();
        let got = within(deadline, held.link.place()).await;
        phases.add(Phase::Blocked, self.time.now().saturating_sub(asked));
        let ended = || Lost::Unsent("the shared connection ended before the call".to_owned());
        match got {
            Some(place) => place.ok_or_else(ended),
            None => Err(unplaced(&held.link)),
        }
    }

    /// Opens a shared connection, and waits until the server sends its HTTP/2 preface, as clients of its protocols do:
    /// within the connect timeout.
    async fn open_shared(
        &self,
        (deadline, phases, ends): (&T::Timer, &mut Phases, Nanos),
    ) -> Result<Rc<Link>, String> {
        let timeout = nanos(self.limits.connect_timeout);
        let connected = self.time.now().saturating_add(timeout);
        deadline.set(ends.min(connected));
        let connection = self.reach(deadline, Transport::Tcp, phases).await?;
        let began = self.time.now();
        let (link, _) = Link::begin(&self.builder, connection)
            .await
            .map_err(|error| format!("a connection doesn't begin: {error}"))?;
        self.count(|counts| counts.http2_connects += 1);
        let greeted = within(deadline, link.greeting()).await;
        deadline.set(ends);
        phases.add(Phase::Connect, self.time.now().saturating_sub(began));
        match greeted {
            Some(true) => {
                link.hear(self.time.now());
                Ok(link)
            }
            Some(false) => Err("the server speaks no HTTP/2: it ends the connection".to_owned()),
            None => Err("the server doesn't greet within the connect timeout".to_owned()),
        }
    }
}

/// Returns the meaning of a stream's end for its request; `None` is a timeout.
fn lost(end: Option<StreamEnd>, link: Option<&Link>) -> Lost {
    match end {
        Some(StreamEnd::Unsent(why)) => Lost::Unsent(why),
        Some(StreamEnd::Unprocessed(reply)) => Lost::Unprocessed(reply),
        Some(StreamEnd::Broken(why)) => Lost::Failed(ErrorClass::Reset, why),
        Some(StreamEnd::Fault(what)) => Lost::Failed(ErrorClass::Check, what),
        None => match link.filter(|link| link.allowed() == 0) {
            Some(link) => unplaced(link),
            None => Lost::Failed(ErrorClass::Timeout, "no whole answer in time".to_owned()),
        },
    }
}

/// The error for a request that waited too long for a free stream.
fn unplaced(link: &Link) -> Lost {
    let why = format!(
        "not sent in time: the server allows {} calls at once on the connection",
        link.allowed()
    );
    Lost::Failed(ErrorClass::Timeout, why)
}

fn nothing_shared() -> Lost {
    Lost::Failed(
        ErrorClass::Connect,
        "no connections are shared here".to_owned(),
    )
}
