//! An HTTP/2 connection. It serves itself, and limits the requests in progress.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use ::h2::RecvStream;
use ::h2::client::{Builder, SendRequest};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::connection::{Connection, Stream};
use crate::server::Limits;
use crate::silence::Silence;
use crate::time::Nanos;
use lab_units::BaseUrl;

/// h2's value for the server's limit before the server sends one; no server sends this value.
const UNSAID: usize = (1 << 30) + 0x5eed;
/// The maximum number of concurrent requests on one connection, whatever a server allows.
const MAX_AT_ONCE: usize = 1 << 20;

/// An open connection. It ends when its last holder drops it.
pub(crate) struct Link {
    state: Rc<State>,
    task: AbortHandle,
    /// Cloned by each holder for its own use.
    send: SendRequest<Bytes>,
}

struct State {
    /// The server or the connection has ended: nothing more may be sent.
    ended: Cell<bool>,
    /// The server has sent its settings, so it supports HTTP/2.
    greeted: Cell<bool>,
    /// The silence of the connection: restarts with each part of a response.
    silence: Cell<Silence>,
    /// Permits for requests, as many as the server allows at once.
    places: Arc<Semaphore>,
    /// The number of permits, taken ones included.
    allowed: Cell<usize>,
    /// The server's limit of concurrent requests.
    said: Cell<usize>,
    /// Closed once the server has sent its settings, or the connection has ended.
    greeting: Semaphore,
}

/// A user's hold on a connection.
pub(crate) struct HeldConnection {
    pub(crate) link: Rc<Link>,
    send: SendRequest<Bytes>,
    /// The stream of its last response, on a connection of its own. Dropping a stream wakes the connection, and so does
    /// sending. A stream dropped after the next request is sent causes no extra wake-up.
    pub(crate) last: Option<RecvStream>,
    /// Whether other users use the connection, too.
    pub(crate) is_shared: bool,
    /// The server, if it is not the base server.
    pub(crate) other: Option<Box<BaseUrl>>,
    /// When its last response was whole; `None` before its first.
    pub(crate) idle_since: Option<Nanos>,
}

/// A permit for one stream on a connection. The connection stays open while any permit exists.
pub struct StreamSlot {
    _permit: OwnedSemaphorePermit,
    _link: Rc<Link>,
}

/// The flow-control windows for received data, bytes.
pub(crate) struct Windows {
    /// For one response.
    pub(crate) stream: u32,
    /// For all responses on a connection.
    pub(crate) connection: u32,
    /// The memory for small frames of unread responses: streams of events and of messages consist of them.
    pub(crate) tiny_frames: usize,
}

/// Returns the configuration of a worker's connections.
pub(crate) fn builder(limits: &Limits, windows: &Windows) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .data_frame_budget(windows.tiny_frames)
        .initial_max_send_streams(UNSAID);
    builder
}

impl Link {
    /// Starts HTTP/2 on a connection, and a task that serves it.
    pub(crate) async fn begin(
        builder: &Builder,
        connection: Connection,
    ) -> Result<(Rc<Self>, Option<Box<BaseUrl>>), ::h2::Error> {
        let (stream, other) = connection.into_parts();
        let (send, connection) = builder.handshake(stream).await?;
        let state = Rc::new(State {
            ended: Cell::new(false),
            greeted: Cell::new(false),
            silence: Cell::default(),
            // One request may start at once: each server accepts one. The server's first frame sets the limit.
            places: Arc::new(Semaphore::new(1)),
            allowed: Cell::new(1),
            said: Cell::new(1),
            greeting: Semaphore::new(0),
        });
        let task = tokio::task::spawn_local(serve(connection, Rc::clone(&state)));
        let link = Self {
            state,
            task: task.abort_handle(),
            send,
        };
        Ok((Rc::new(link), other))
    }

    /// Returns a hold for the only user of the connection.
    pub(crate) fn held(self: &Rc<Self>, other: Option<Box<BaseUrl>>) -> HeldConnection {
        HeldConnection {
            link: Rc::clone(self),
            send: self.send.clone(),
            last: None,
            is_shared: false,
            other,
            idle_since: None,
        }
    }

    /// Returns a hold for one of several users.
    pub(crate) fn shared(self: &Rc<Self>) -> HeldConnection {
        HeldConnection {
            is_shared: true,
            ..self.held(None)
        }
    }

    /// Returns true if no more requests may be sent on the connection.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.ended.get()
    }

    /// Stops further requests on the connection; those in progress continue.
    pub(crate) fn retire(&self) {
        self.state.ended.set(true);
    }

    /// Returns true if the server has sent its HTTP/2 settings.
    pub(crate) fn is_greeted(&self) -> bool {
        self.state.greeted.get()
    }

    /// Waits for the server's first frame. Returns true if it is of HTTP/2.
    pub(crate) async fn greeting(&self) -> bool {
        let _closed = self.state.greeting.acquire().await;
        self.is_greeted()
    }

    /// Records that a part of a response was received.
    pub(crate) fn hear(&self, at: Nanos) {
        let mut silence = self.state.silence.get();
        silence.hear(at);
        self.state.silence.set(silence);
    }

    /// Returns when a part of any response was last received.
    pub(crate) fn heard(&self) -> Nanos {
        self.state.silence.get().heard()
    }

    /// As [`Silence::miss`].
    pub(crate) fn miss(&self, began: Nanos) -> Nanos {
        let mut silence = self.state.silence.get();
        let since = silence.miss(began);
        self.state.silence.set(silence);
        since
    }

    /// Returns the number of requests that the server allows at once.
    pub(crate) fn allowed(&self) -> usize {
        self.state.said.get()
    }

    /// Returns a permit for one stream, if one is free.
    pub(crate) fn try_place(self: &Rc<Self>) -> Option<StreamSlot> {
        let permit = Arc::clone(&self.state.places).try_acquire_owned().ok()?;
        Some(self.kept_by(permit))
    }

    /// Waits for a stream permit, in order of arrival; `None` if the connection ended.
    pub(crate) async fn place(self: &Rc<Self>) -> Option<StreamSlot> {
        let permit = Arc::clone(&self.state.places).acquire_owned().await.ok()?;
        Some(self.kept_by(permit))
    }

    fn kept_by(self: &Rc<Self>, permit: OwnedSemaphorePermit) -> StreamSlot {
        StreamSlot {
            _permit: permit,
            _link: Rc::clone(self),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HeldConnection {
    /// Returns a sender for one request, to be dropped after use. h2 keeps a request that must wait for its turn in its
    /// sender until the next one is sent. A request cancelled meanwhile would still be sent, never be cancelled, and
    /// hold a stream on the server.
    pub(crate) fn sender(&self) -> SendRequest<Bytes> {
        self.send.clone()
    }

    /// Returns true if nothing more can be sent, because the server closed the connection or it ended.
    pub(crate) async fn is_unusable(&mut self) -> bool {
        if self.link.has_ended() {
            return true;
        }
        poll_fn(|cx| Poll::Ready(matches!(self.send.poll_ready(cx), Poll::Ready(Err(_))))).await
    }
}

/// Serves a connection until it ends: reads and writes, responds to pings, applies settings.
async fn serve(mut connection: ::h2::client::Connection<Stream, Bytes>, state: Rc<State>) {
    let served = poll_fn(|cx| {
        let done = Pin::new(&mut connection).poll(cx);
        state.allow(connection.max_concurrent_send_streams());
        done
    });
    // Each request in progress receives its own error.
    let _ended = served.await;
    state.ended.set(true);
    state.places.close();
    state.greeting.close();
}

impl State {
    /// Applies the number of requests that the server allows at once.
    fn allow(&self, said: usize) {
        if said == UNSAID {
            return;
        }
        if !self.greeted.replace(true) {
            self.greeting.close();
        }
        self.said.set(said);
        let (now, wanted) = (self.allowed.get(), said.min(MAX_AT_ONCE));
        if wanted > now {
            self.places.add_permits(wanted - now);
            self.allowed.set(wanted);
        } else if wanted < now {
            // Permits in use are removed later, when this runs again.
            let given_up = self.places.forget_permits(now - wanted);
            self.allowed.set(now - given_up);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ::h2::server::SendResponse;
    use http::{Request, Response};
    use tokio::net::TcpListener;
    use tokio::task::LocalSet;

    use super::*;
    use crate::connection::Route;
    use crate::exchange::Phases;
    use crate::time::tokios::TokioTime;
    use lab_units::Sources;

    /// Allows one request at once; responds only to requests without a body.
    async fn one_at_once(listener: TcpListener) -> Result<(), ::h2::Error> {
        let (stream, _) = listener.accept().await.unwrap();
        let mut builder = ::h2::server::Builder::new();
        builder.max_concurrent_streams(1);
        let mut connection = builder.handshake::<_, Bytes>(stream).await?;
        let mut waiting: Vec<(RecvStream, SendResponse<Bytes>)> = Vec::new();
        while let Some(request) = connection.accept().await {
            let (request, mut answer) = request?;
            let body = request.into_body();
            match body.is_end_stream() {
                true => drop(answer.send_response(Response::new(()), true)?),
                false => waiting.push((body, answer)),
            }
        }
        Ok(())
    }

    async fn linked() -> Rc<Link> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let route = Route {
            addresses: [listener.local_addr().unwrap()].into(),
            tls: None,
            sources: Sources::default(),
        };
        tokio::task::spawn_local(one_at_once(listener));
        let (time, mut phases) = (TokioTime::start(), Phases::default());
        let connection = Connection::open(&route, None, &time, &mut phases).await;
        let mut builder = Builder::new();
        builder.initial_max_send_streams(UNSAID);
        let begun = Link::begin(&builder, connection.unwrap()).await;
        let (link, _) = begun.unwrap();
        assert!(link.greeting().await);
        link
    }

    #[test]
    fn who_gives_up_before_a_turn_takes_no_place() {
        let tried = async {
            let link = linked().await;
            let post = || Request::post("http://host/").body(()).unwrap();
            let users: Vec<HeldConnection> = (0..3).map(|_| link.shared()).collect();
            // The first takes the only permit while the second waits for it; both are cancelled.
            let first = users[0].sender().send_request(post(), false).unwrap();
            tokio::task::yield_now().await;
            let second = users[1].sender().send_request(post(), false).unwrap();
            drop((first, second));
            let (third, _) = users[2].sender().send_request(post(), true).unwrap();
            third.await.map(|answer| answer.status().as_u16())
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let answered = LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(Duration::from_secs(20), tried).await
        });
        assert_eq!(answered.expect("it is answered").unwrap(), 200);
    }
}
