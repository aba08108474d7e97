//! The state of a user between requests: connections, cookies, messages still to be sent.

use std::rc::Rc;

use super::cookie::Jar;
use super::message::Message;
use super::redirect::Hop;
use super::request::Prepared;
use crate::connection::Connection;
use crate::exchange::RequestId;
use crate::parts::WholeAnswer;
use crate::streams::{HeldConnection, Sharing};
use crate::time::Nanos;
use lab_units::BaseUrl;

/// A request rendered from its parts, with the rules for its response.
pub(super) struct MadeOfParts {
    pub(super) own: Rc<Prepared>,
    pub(super) hop: Box<(RequestId, Hop)>,
}

/// The state of a user between requests.
#[derive(Default)]
pub struct HttpSession {
    /// On the heap, so that a user without a connection takes little memory.
    pub(super) connection: Option<Box<Connection>>,
    /// A hold on an HTTP/2 connection instead.
    pub(super) two: Option<Box<HeldConnection>>,
    /// The connections that the session shares with others.
    pub(super) shares: Shares,
    pub(super) jar: Jar,
    /// The target of a redirect, until the next request is sent there.
    pub(super) hop: Option<Box<(RequestId, Hop)>>,
    /// The message of the request that has just failed, if it may be sent again.
    pub(super) failed: Option<Box<(RequestId, Hop)>>,
    /// The rules for the responses to a program's current request; `None` for those of the workload.
    pub(super) own: Option<Rc<Prepared>>,
    /// The last response, for a program.
    pub(super) answer: Option<Box<WholeAnswer>>,
}

/// Connections that a session shares with others.
#[derive(Default)]
pub(super) enum Shares {
    /// None.
    #[default]
    Nothing,
    /// Any free connection of the shared HTTP/1.1 connections.
    Free,
    /// The shared HTTP/2 connection with this index.
    Dealt(u32),
    /// An HTTP/2 connection that the same user's sessions share.
    Own(Rc<Sharing>),
}

impl HttpSession {
    /// Returns true if other sessions use streams of the same connection.
    pub(super) fn shares_streams(&self) -> bool {
        matches!(self.shares, Shares::Dealt(_) | Shares::Own(_))
    }

    /// Keeps a whole response for the program that made its request.
    pub(super) fn keep_answer(
        &mut self,
        whole: Option<Box<WholeAnswer>>,
        server: &BaseUrl,
        message: &str,
    ) {
        if let Some(mut whole) = whole {
            whole.set_url(server, message);
            whole.is_http2 = self.two.is_some();
            self.answer = Some(whole);
        }
    }

    /// Schedules the message again, with the answer to its challenge.
    pub(super) fn answer_next(
        &mut self,
        request: RequestId,
        (mut message, other, left): (Message, Option<Box<BaseUrl>>, u32),
    ) {
        message.challenges += 1;
        let hop = Hop {
            message,
            other,
            left,
        };
        self.hop = Some(Box::new((request, hop)));
    }

    /// Records that the connection has served a request.
    pub(super) fn used(&mut self, reusable: bool, at: Nanos) {
        if let Some(held) = self.two.as_mut().filter(|held| reusable || held.is_shared) {
            held.idle_since = Some(at);
        } else if self.two.is_some() {
            self.two = None;
        } else if !reusable {
            self.connection = None;
        } else if let Some(connection) = &mut self.connection {
            connection.idle_since = Some(at);
        }
    }
}
