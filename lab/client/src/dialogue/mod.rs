//! Protocols in which a user has one connection and says one thing after the other on it. A
//! [`Dialogue`] knows what is said and when all of the answer is there, and does no I/O; a
//! [`DialogueClient`] makes a [`crate::Client`] of it: connections and TLS, time limits, what is expected
//! and captured, counts.
//!
//! The rules that show in the results:
//!
//! - One connection per user, opened when the user has something to say and kept as long as the server
//!   keeps it and at most [`crate::Limits::keep_alive_idle`] idle; or so many for all users, of a protocol
//!   whose requests go by [`Streams`]. Opening it, with all that the protocol says before the first
//!   request (a greeting, a sign-in, TLS), is part of the request's time, as phases of their own.
//! - One request is one transaction, however many turns it takes: a mail is one.
//! - Nothing is sent twice, but once more in a stream where the server says that it did nothing with it. A
//!   connection that the server closed while it was idle is found out before it is used, as far as that
//!   can be known; one that breaks later is an error.
//! - Classes of errors: no connection, or none that the server signs the user in on, is *connect*; no
//!   whole answer in time is *timeout*; a connection that ends after sending began is *reset*; an answer
//!   that breaks the protocol or a limit, or lacks what is expected or captured, is *check*; an answer
//!   that refuses is *status*. After the first four of these the connection is given up: what is on its
//!   way could be taken for the answer to something else. Only of a protocol that can give up a request
//!   by itself ([`Dialogue::give_up`]) it is kept after a request's own deadline.

mod client;
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

/// A protocol without I/O. One per worker; what varies is in its lines and talks.
pub trait Dialogue: 'static {
    /// What is kept of a connection besides its bytes, such as what was prepared on it.
    type Line: Default + 'static;

    /// An exchange under way: what is to be said, and how far it is. One is used again and again:
    /// whatever begins a talk leaves nothing of the one before.
    type Talk: Default + 'static;

    /// Whether an answer is one or several messages, each with its moment, and whether the server may say some
    /// unasked, between requests: they are kept for the next request then.
    const SAYS_MESSAGES: bool = false;

    /// Begins what is said on a new connection before the first request, by the user's variables.
    ///
    /// # Errors
    /// Variables that can't be said.
    fn open(&self, scope: &mut UserScope, talk: &mut Self::Talk) -> Result<(), Unmade>;

    /// Begins a request: renders all that will be said for it, so that nothing is made while its time
    /// runs.
    ///
    /// # Errors
    /// Variables that can't be said, or a list without entries.
    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut Self::Talk,
    ) -> Result<(), Unmade>;

    /// Goes on with a talk: takes from the front of `heard` what is whole (the rest comes again, with
    /// more behind it), puts what is to be said now into `out.say` and what came of the answer into
    /// `out.body`. It is called when a talk begins, with nothing heard, and whenever something came.
    /// What it takes and what it costs grow with what is new in `heard`, not with what came before.
    ///
    /// # Errors
    /// In words: what came is not of this protocol.
    fn turn(
        &self,
        line: &mut Self::Line,
        talk: &mut Self::Talk,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String>;

    /// How long a request may take, where it says so itself; never longer than any may.
    fn patience(&self, _request: RequestId) -> Option<Duration> {
        None
    }

    /// Gives up a request that has missed its own deadline ([`Dialogue::patience`]), and puts into `say` what tells the
    /// server so. Whether its connection is of use after that: not where a late answer could be taken for the next
    /// one's.
    fn give_up(&self, _line: &mut Self::Line, _say: &mut Vec<u8>) -> bool {
        false
    }

    /// Takes in what a server said between requests, of a protocol in which it may; what it leaves is kept, and
    /// what must be answered at once is put into `say`. False where no request can be said on this connection any
    /// more.
    fn overhear(&self, _line: &mut Self::Line, _heard: &mut &[u8], _say: &mut Vec<u8>) -> bool {
        true
    }

    /// Whether something that a server said unasked is kept for who only listens.
    fn keeps(&self, _line: &Self::Line) -> bool {
        false
    }

    /// Whether what was asked says nothing, and may be heard on a connection on which nothing can be said any more.
    fn only_listens(&self, _talk: &Self::Talk) -> bool {
        false
    }

    /// Bytes as a person reads them, without secrets; for who looks at a few requests. Empty where the protocol
    /// tells by `out.told` what is said.
    fn spell(&self, side: Side, bytes: &[u8]) -> String;

    /// How requests go by streams, of a protocol that has some: then users may share connections.
    fn streams(&self) -> Option<&dyn Streams<Self::Line, Self::Talk>> {
        None
    }
}

/// A protocol each of whose requests has a stream of HTTP/2, so that users may share a connection. A line has
/// what is one user's alone then, such as a stream that goes on with the next request, and nothing is said before
/// the first one.
pub trait Streams<L, K> {
    /// Whether what was asked goes on in a stream that the line has: then it needs no other.
    fn goes_on(&self, line: &L, talk: &K) -> bool;

    /// Begins what was asked, in a stream of its own where it needs one: `place` is kept as long as that is. It may
    /// be begun again after [`StreamEnd::Unsent`] and [`StreamEnd::Unprocessed`].
    ///
    /// # Errors
    /// Why it doesn't begin.
    fn begin(
        &self,
        line: &mut L,
        talk: &mut K,
        place: Option<(SendRequest<Bytes>, StreamSlot)>,
        out: &mut Out,
    ) -> Result<(), StreamEnd>;

    /// Goes on as far as that is possible now, and tells in `out` what came. The task is woken when there is more.
    fn poll(
        &self,
        cx: &mut Context<'_>,
        line: &mut L,
        talk: &mut K,
        out: &mut Out,
    ) -> Poll<Result<Reply, StreamEnd>>;

    /// Gives up what is under way: its server is told that nobody waits for the rest.
    fn give_up(&self, line: &mut L);
}

/// What ends a request in a stream in the place of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// It never went out: the connection takes no more.
    Unsent(String),
    /// The server says that it did nothing with it. What that comes to where it isn't sent again.
    Unprocessed(Reply),
    /// The connection ended.
    Broken(String),
    /// What came is not of this protocol.
    Fault(String),
}

/// What a turn leaves behind.
#[derive(Debug, Default)]
pub struct Out {
    /// To be sent now.
    pub say: Vec<u8>,
    /// The answer as captures and expectations see it.
    pub body: Vec<u8>,
    /// How many messages it has so far, of a protocol whose answers have several; a talk begins at 0.
    pub messages: u32,
    /// Whether somebody looks: then what is said on both sides is told here, as a person reads it, by a protocol
    /// whose bytes can't be read by themselves.
    pub looked_at: bool,
    /// What was said since it was looked at last.
    pub told: Vec<(Side, String)>,
    /// How many bytes of the answer came, of a request in a stream; `None` before its head.
    pub came: Option<u64>,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// The server, after what is to be said.
    Listen,
    /// TLS on this connection, after what is to be said; then another turn, with nothing heard. Only
    /// while a connection is opened.
    Secure,
    /// Nothing more: this is what came of it.
    Done(Reply),
}

/// The end of a talk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The server's code, in a protocol that has some; `expect` judges it.
    pub status: Option<u16>,
    /// Why the server refuses, if it does.
    pub refused: Option<Box<str>>,
    /// Whether the server ends the connection with it.
    pub ends: bool,
    /// Whether something is under way on the connection that later requests are to end, such as a transaction: where
    /// this one fails, they don't come, and the connection ends instead.
    pub open: bool,
}
