//! Protocols in which a user has one connection and says one thing after the other on it. A
//! [`Dialogue`] knows what is said and when all of the answer is there, and does no I/O; a
//! [`DialogueClient`] makes a [`crate::Client`] of it: connections and TLS, time limits, what is expected
//! and captured, counts.
//!
//! The rules that show in the results:
//!
//! - One connection per user, opened when the user has something to say and kept as long as the server
//!   keeps it and at most [`crate::Limits::keep_alive_idle`] idle. Opening it, with all that the protocol
//!   says before the first request (a greeting, a sign-in, TLS), is part of the request's time, as phases
//!   of their own.
//! - One request is one transaction, however many turns it takes: a mail is one.
//! - Nothing is sent twice. A connection that the server closed while it was idle is found out before it
//!   is used, as far as that can be known; one that breaks later is an error.
//! - Classes of errors: no connection, or none that the server signs the user in on, is *connect*; no
//!   whole answer in time is *timeout*; a connection that ends after sending began is *reset*; an answer
//!   that breaks the protocol or a limit, or lacks what is expected or captured, is *check*; an answer
//!   that refuses is *status*. After the first four of these the connection is given up: what is on its
//!   way could be taken for the answer to something else.

mod client;

use std::time::Duration;

use lab_workload::UserScope;

pub use client::{DialogueClient, DialogueSession};

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

    /// Takes in what a server said between requests, of a protocol in which it may; what it leaves is kept. False
    /// where no request can be said on this connection any more.
    fn overhear(&self, _line: &mut Self::Line, _heard: &mut &[u8]) -> bool {
        true
    }

    /// Bytes as a person reads them, without secrets; for who looks at a few requests. Empty where the protocol
    /// tells by `out.told` what is said.
    fn spell(&self, side: Side, bytes: &[u8]) -> String;
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
}
