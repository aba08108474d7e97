//! Protocols in which a user has one connection and sends one message after the other on it. A [`Dialogue`] knows what
//! to send and when the response is whole, and does no I/O. A [`DialogueClient`] makes a [`crate::Client`] of it:
//! connections and TLS, time limits, expectations, captures, counts.
//!
//! The rules that show in the results:
//!
//! - One connection per user. It opens when the user sends a request and stays open as long as the server keeps it; at
//!   most [`crate::Limits::keep_alive_idle`] idle, unless the client reads between requests. Protocols with [`Streams`] may use a fixed number of connections for
//!   all users. Opening a connection includes all that the protocol sends before the first request (a greeting, a
//!   sign-in, TLS). It is part of the request's time, as phases of their own.
//! - One request is one transaction, whatever its number of turns: a mail is one.
//! - Nothing is sent twice, with one exception: once more in a stream if the server reports that it did not process the
//!   request. The client detects a connection closed while idle before it uses it, as far as possible; that is an error
//!   only where [`Dialogue::reports_end`] says so. A connection that breaks later is an error.
//! - Error classes: no connection, or a failed sign-in, is *connect*; no whole response in time is *timeout*; a
//!   connection that ends after sending began is *reset*; a response that breaks the protocol or a limit, or lacks what
//!   is expected or captured, is *check*; a refusal is *status*. After the first four, the client drops the connection
//!   (after a whole response that lacks something only if [`Reply::open`]): bytes on their way could be taken for a later response. Only a protocol that can cancel a single request
//!   ([`Dialogue::give_up`]) keeps the connection after a request's own deadline.

mod client;
mod converse;
mod idle;
mod judged;
mod session;
mod stream;

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use lab_workload::UserScope;

pub use crate::streams::StreamSlot;
pub use client::DialogueClient;
pub use session::DialogueSession;

use crate::exchange::{RequestId, Unmade};
use crate::tap::Side;

/// A protocol without I/O. One per worker; the mutable state is in its lines and talks.
pub trait Dialogue: 'static {
    /// The state of a connection besides its bytes, such as prepared statements.
    type Line: Default + 'static;

    /// The state of an exchange: what to send, and the progress. Exchanges reuse it: starting an exchange clears the
    /// state of the previous one.
    type ExchangeState: Default + 'static;

    /// Whether a response has one or several messages, each with its arrival time, and whether the server may send
    /// unrequested messages between requests. The client keeps those for the next request.
    const SAYS_MESSAGES: bool = false;

    /// Whether the client reads between requests, and keeps unrequested bytes for the next request. Otherwise they end
    /// the use of the connection.
    const READS_BETWEEN: bool = Self::SAYS_MESSAGES;

    /// The transport of its connections.
    fn transport(&self) -> Transport {
        Transport::Tcp
    }

    /// Prepares what is sent on a new connection before the first request, from the user's variables.
    ///
    /// # Errors
    /// Variables that can't be sent.
    fn open(&self, scope: &mut UserScope, talk: &mut Self::ExchangeState) -> Result<(), Unmade>;

    /// Starts a request: renders all that will be sent for it, so that no rendering is part of its time.
    ///
    /// # Errors
    /// Variables that can't be sent, or a list without entries.
    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut Self::ExchangeState,
    ) -> Result<(), Unmade>;

    /// Continues an exchange. It consumes whole messages from the front of `heard` (the rest is passed again, with more
    /// bytes behind it). It puts bytes to send now into `out.say` and the response into `out.body`. It is called when
    /// an exchange starts, with no input, and whenever bytes arrive. Its cost grows with the new bytes in `heard`, not
    /// with earlier ones.
    ///
    /// # Errors
    /// A message, if the received bytes are not of this protocol.
    fn turn(
        &self,
        line: &mut Self::Line,
        talk: &mut Self::ExchangeState,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String>;

    /// Returns the request's own time limit, if it has one; never above the general limit.
    fn patience(&self, _request: RequestId) -> Option<Duration> {
        None
    }

    /// Returns the time without further bytes that ends the response, if that is its end. The client then calls
    /// [`Dialogue::ended`].
    fn quiet_after(&self, _talk: &Self::ExchangeState) -> Option<Duration> {
        None
    }

    /// Returns the reply if the response is whole at this end, which its bytes don't show.
    fn ended(&self, _talk: &mut Self::ExchangeState, _out: &mut Out, _end: End) -> Option<Reply> {
        None
    }

    /// Cancels a request that has missed its own deadline ([`Dialogue::patience`]), and puts the notification for the
    /// server into `say`. Returns true if the connection is still usable: it is not where a late response could be
    /// taken for the next one.
    fn give_up(&self, _line: &mut Self::Line, _say: &mut Vec<u8>) -> bool {
        false
    }

    /// Consumes what a server sent between requests, in protocols that allow it. Bytes left over are kept; a required
    /// immediate reply is put into `say`.
    ///
    /// # Errors
    /// Why the connection can't take another request.
    fn overhear(
        &self,
        _line: &mut Self::Line,
        _heard: &mut &[u8],
        _say: &mut Vec<u8>,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Returns what keeps an idle connection alive, and the longest time without it; `None` if nothing is needed.
    fn keep_alive(&self, _line: &Self::Line) -> Option<(Duration, &'static [u8])> {
        None
    }

    /// Returns true if the end of a connection between requests fails the next request, because it may have caused or
    /// lost what shows in the results. Otherwise the next request opens another connection.
    fn reports_end(&self) -> bool {
        false
    }

    /// Returns true if an unrequested message is kept for a request that only receives.
    fn keeps(&self, _line: &Self::Line) -> bool {
        false
    }

    /// Returns true if the request sends nothing, so that it can run on a connection that takes no more writes.
    fn only_listens(&self, _talk: &Self::ExchangeState) -> bool {
        false
    }

    /// Returns bytes as readable text, without secrets, for the tap. Empty if the protocol reports its messages in
    /// `out.told`.
    fn spell(&self, side: Side, bytes: &[u8]) -> String;

    /// Returns how requests use streams, if the protocol has streams: users may then share connections.
    fn streams(&self) -> Option<&dyn Streams<Self::Line, Self::ExchangeState>> {
        None
    }
}

/// A protocol in which each request has an HTTP/2 stream, so that users may share a connection. A line then holds the
/// state of one user, such as a stream that continues with the next request. Nothing is sent before the first request.
pub trait Streams<L, K> {
    /// Returns true if the request continues in the line's open stream: then it needs no other.
    fn goes_on(&self, line: &L, talk: &K) -> bool;

    /// Starts the request, in a stream of its own if it needs one: `place` is kept as long as the stream. It may be
    /// started again after [`StreamEnd::Unsent`] and [`StreamEnd::Unprocessed`].
    ///
    /// # Errors
    /// Why the request can't start.
    fn begin(
        &self,
        line: &mut L,
        talk: &mut K,
        place: Option<(SendRequest<Bytes>, StreamSlot)>,
        out: &mut Out,
    ) -> Result<(), StreamEnd>;

    /// Continues as far as possible now, and puts the received parts into `out`. Wakes the task when there is more.
    fn poll(
        &self,
        cx: &mut Context<'_>,
        line: &mut L,
        talk: &mut K,
        out: &mut Out,
    ) -> Poll<Result<Reply, StreamEnd>>;

    /// Cancels the request in progress, and notifies the server.
    fn give_up(&self, line: &mut L);
}

/// The end of a request in a stream without a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The request was not sent: the connection takes no more.
    Unsent(String),
    /// The server reports that it did not process the request. Holds the outcome if it isn't sent again.
    Unprocessed(Reply),
    /// The connection ended.
    Broken(String),
    /// The received bytes are not of this protocol.
    Fault(String),
}

/// The transport of a protocol's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A stream of bytes, with TLS if the server's address says so.
    Tcp,
    /// Datagrams from a socket of each user's own. Each turn reads one; a dialogue consumes all of it.
    Udp,
}

/// An end of a response that its bytes don't show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The server has closed the connection.
    Connection,
    /// Nothing has arrived for [`Dialogue::quiet_after`].
    Silence,
}

/// The output of a turn.
#[derive(Debug, Default)]
pub struct Out {
    /// Bytes to send now.
    pub say: Vec<u8>,
    /// The response as captures and expectations see it.
    pub body: Vec<u8>,
    /// The number of messages so far, in protocols with several per response; 0 when an exchange starts.
    pub messages: u32,
    /// Whether there is a tap. If so, a protocol whose bytes are not readable by themselves puts the messages of both
    /// sides into `told`, as readable text.
    pub looked_at: bool,
    /// Messages since the last report to the tap.
    pub told: Vec<(Side, String)>,
    /// The number of response bytes received by a request in a stream; `None` before its head.
    pub came: Option<u64>,
}

/// The next step of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Read from the server, after sending `say`.
    Listen,
    /// Start TLS on this connection, after sending `say`; then another turn, without input. Only while a connection is
    /// being opened.
    Secure,
    /// The exchange has ended with this reply.
    Done(Reply),
}

/// The end of an exchange.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The server's status code, in protocols that have one; `expect` checks it.
    pub status: Option<u16>,
    /// Why the server refuses, if it does.
    pub refused: Option<Box<str>>,
    /// Whether the server closes the connection with it.
    pub ends: bool,
    /// Whether the connection is closed if the response lacks what is expected or captured: it has a state that later
    /// requests end, such as a transaction, or bytes that a later request would take for its response.
    pub open: bool,
}
