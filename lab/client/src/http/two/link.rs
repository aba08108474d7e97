//! A connection that speaks HTTP/2: it serves itself, and says who may send on it now.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use ::h2::client::{Builder, SendRequest};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::connection::{Connection, Stream};
use crate::server::Limits;
use crate::time::Nanos;
use crate::url::BaseUrl;

/// What may be on its way to this side, bytes: of one answer, and of all on a connection. As browsers
/// have it (Chromium's), so that a server is measured by its own speed.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
/// What tiny frames of unread answers may take, bytes: streams of events consist of them.
const TINY_FRAMES: usize = 4 << 20;
/// What h2 has for the server's limit before the server says one: no server says this.
const UNSAID: usize = (1 << 30) + 0x5eed;
/// Most requests at once on one connection, whatever more a server allows.
const MAX_AT_ONCE: usize = 1 << 20;

/// An open connection. It ends when nobody holds it any more.
pub(crate) struct Link {
    state: Rc<State>,
    task: AbortHandle,
    /// What each holder copies for its own use.
    send: SendRequest<Bytes>,
}

struct State {
    /// The server, or the connection, has ended: nothing more may be sent.
    ended: Cell<bool>,
    /// The server has said what it allows, so that it speaks HTTP/2.
    greeted: Cell<bool>,
    /// When a part of any answer came.
    heard: Cell<Nanos>,
    /// Places for requests, as many as the server allows at once.
    places: Arc<Semaphore>,
    /// How many there are, taken ones included.
    allowed: Cell<usize>,
    /// What the server said of it.
    said: Cell<usize>,
}

/// A user's hold on a connection.
pub(crate) struct Held {
    pub(super) link: Rc<Link>,
    pub(super) send: SendRequest<Bytes>,
    /// The server, where it is another than the drive's.
    pub(super) other: Option<Box<BaseUrl>>,
    /// When its last answer was whole; `None` before its first.
    pub(crate) idle_since: Option<Nanos>,
}

/// What connections of a worker begin with.
pub(crate) fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .data_frame_budget(TINY_FRAMES)
        .initial_max_send_streams(UNSAID);
    builder
}

impl Link {
    /// Begins HTTP/2 on a connection, and a task that serves it from now on.
    pub(super) async fn begin(
        builder: &Builder,
        connection: Connection,
    ) -> Result<(Rc<Self>, Option<Box<BaseUrl>>), ::h2::Error> {
        let (stream, other) = connection.into_parts();
        let (send, connection) = builder.handshake(stream).await?;
        let state = Rc::new(State {
            ended: Cell::new(false),
            greeted: Cell::new(false),
            heard: Cell::new(0),
            // One may go ahead: each server takes one. How many more, it says in its first frame.
            places: Arc::new(Semaphore::new(1)),
            allowed: Cell::new(1),
            said: Cell::new(1),
        });
        let task = tokio::task::spawn_local(serve(connection, Rc::clone(&state)));
        let link = Self {
            state,
            task: task.abort_handle(),
            send,
        };
        Ok((Rc::new(link), other))
    }

    /// A hold on it, for one user.
    pub(super) fn held(self: &Rc<Self>, other: Option<Box<BaseUrl>>) -> Held {
        Held {
            link: Rc::clone(self),
            send: self.send.clone(),
            other,
            idle_since: None,
        }
    }

    /// Whether no more requests may be sent on it.
    pub(super) fn has_ended(&self) -> bool {
        self.state.ended.get()
    }

    /// No more requests are sent on it; those under way go on.
    pub(super) fn retire(&self) {
        self.state.ended.set(true);
    }

    /// Whether the server has said anything in HTTP/2.
    pub(super) fn is_greeted(&self) -> bool {
        self.state.greeted.get()
    }

    /// A part of an answer came.
    pub(super) fn hear(&self, at: Nanos) {
        self.state.heard.set(at);
    }

    /// When a part of any answer came last.
    pub(super) fn heard(&self) -> Nanos {
        self.state.heard.get()
    }

    /// How many requests the server allows at once.
    pub(super) fn allowed(&self) -> usize {
        self.state.said.get()
    }

    /// A place for one request, if one is free.
    pub(super) fn try_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.state.places).try_acquire_owned().ok()
    }

    /// A place for one request, in the order of those who ask; `None` when the connection ended.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.state.places).acquire_owned().await.ok()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Held {
    /// Whether nothing more can be sent on it, because the server said so or the connection ended.
    pub(super) async fn is_unusable(&mut self) -> bool {
        if self.link.has_ended() {
            return true;
        }
        poll_fn(|cx| Poll::Ready(matches!(self.send.poll_ready(cx), Poll::Ready(Err(_))))).await
    }
}

/// Serves a connection until it ends: reads and writes what it has, answers pings, takes settings.
async fn serve(mut connection: ::h2::client::Connection<Stream, Bytes>, state: Rc<State>) {
    let served = poll_fn(|cx| {
        let done = Pin::new(&mut connection).poll(cx);
        state.allow(connection.max_concurrent_send_streams());
        done
    });
    // Each request under way has its own word of why.
    let _ended = served.await;
    state.ended.set(true);
    state.places.close();
}

impl State {
    /// Takes in how many requests the server allows at once.
    fn allow(&self, said: usize) {
        if said == UNSAID {
            return;
        }
        self.greeted.set(true);
        self.said.set(said);
        let (now, wanted) = (self.allowed.get(), said.min(MAX_AT_ONCE));
        if wanted > now {
            self.places.add_permits(wanted - now);
            self.allowed.set(wanted);
        } else if wanted < now {
            // Those that are taken are given up later, when this is looked at again.
            let given_up = self.places.forget_permits(now - wanted);
            self.allowed.set(now - given_up);
        }
    }
}
