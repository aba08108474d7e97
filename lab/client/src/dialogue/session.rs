//! The state of a user between requests, the state of a request, and its end.

use std::io;

use super::{Dialogue, Out, Reply};
use crate::connection::Connection;
use crate::exchange::{ErrorClass, RequestId};
use crate::silence::Silence;
use crate::streams::HeldConnection;
use crate::time::Timer;
use crate::tls;

/// What is kept of a user between requests.
pub struct DialogueSession<D: Dialogue> {
    pub(super) link: Option<OpenedConnection<D::Line>>,
    /// Set if the user shares connections, or sends several requests at the same time.
    pub(super) seat: Option<Box<UserSlot<D>>>,
}

/// The place of a user of this protocol.
pub(super) type UserSlot<D> =
    SharedSlot<<D as Dialogue>::Line, MadeRequest<<D as Dialogue>::ExchangeState>>;

/// A request that was made and not sent yet.
pub(super) struct MadeRequest<K> {
    pub(super) request: RequestId,
    pub(super) desk: ExchangeBuffers<K>,
}

impl<D: Dialogue> DialogueSession<D> {
    /// The place of the shared connection that it uses.
    pub(super) fn place(&self) -> Option<u32> {
        self.seat.as_ref()?.place
    }
}

/// A connection that the protocol has opened.
pub(super) struct OpenedConnection<L> {
    pub(super) connection: Connection,
    pub(super) line: L,
    /// Bytes received after the last response.
    pub(super) rest: Vec<u8>,
    /// Bytes to send first, before any request.
    pub(super) owed: Vec<u8>,
    pub(super) silence: Silence,
    /// Why nothing more can be sent, if so; bytes already received can still be read.
    pub(super) ended: Option<String>,
    /// Fires when [`Dialogue::keep_alive`] requires bytes.
    pub(super) pulse: Option<Box<dyn Timer>>,
}

impl<L: Default> OpenedConnection<L> {
    /// Returns a connection on which nothing was sent yet.
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            line: L::default(),
            rest: Vec::new(),
            owed: Vec::new(),
            silence: Silence::default(),
            ended: None,
            pulse: None,
        }
    }
}

/// The buffers of an exchange; exchanges reuse them one after the other.
#[derive(Default)]
pub(super) struct ExchangeBuffers<K> {
    pub(super) talk: K,
    pub(super) opening: K,
    pub(super) out: Out,
}

/// A user's place among shared connections, or a place beside the user's own connection.
pub(super) struct SharedSlot<L, M> {
    /// The index of the user's shared connection.
    pub(super) place: Option<u32>,
    /// The hold on the shared connection, once the user has used it.
    pub(super) held: Option<HeldConnection>,
    /// The protocol's state of the user.
    pub(super) line: L,
    /// A request that was made, and that the next exchange sends.
    pub(super) made: Option<Box<M>>,
}

impl<L: Default, M> SharedSlot<L, M> {
    /// Returns a place on the shared connection with this index, or beside the user's own connection.
    pub(super) fn at(place: Option<u32>) -> Box<Self> {
        Box::new(Self {
            place,
            held: None,
            line: L::default(),
            made: None,
        })
    }
}

/// Why an exchange ended without its response.
pub(super) enum Stopped {
    Late,
    Broken(io::Error),
    Fault(String),
}

/// How a part of an exchange ended.
pub(super) enum Ended {
    Done(Reply),
    /// TLS is due.
    Secure,
}

/// Returns the error class and the message for a stopped exchange.
pub(super) fn failed(stopped: &Stopped) -> (ErrorClass, String) {
    match stopped {
        Stopped::Late => (ErrorClass::Timeout, "no whole answer in time".to_owned()),
        Stopped::Broken(error) => {
            let error = tls::in_words(error);
            let text = format!("the connection ended before the answer was whole: {error}");
            (ErrorClass::Reset, text)
        }
        Stopped::Fault(what) => (ErrorClass::Check, what.clone()),
    }
}
