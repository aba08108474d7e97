//! What a user has between requests: connections, cookies, messages that are still to be sent.

use std::rc::Rc;

use super::cookie::Jar;
use super::message::Message;
use super::redirect::Hop;
use crate::connection::Connection;
use crate::exchange::RequestId;
use crate::streams::{HeldConnection, Sharing};
use crate::time::Nanos;
use lab_units::BaseUrl;

/// What is kept of a user between requests.
#[derive(Default)]
pub struct HttpSession {
    /// On the heap, so that who has none takes little.
    pub(super) connection: Option<Box<Connection>>,
    /// Or a hold on one that speaks HTTP/2.
    pub(super) two: Option<Box<HeldConnection>>,
    /// Which connections it has in common with others.
    pub(super) shares: Shares,
    pub(super) jar: Jar,
    /// Where a request was redirected to, until it goes there.
    pub(super) hop: Option<Box<(RequestId, Hop)>>,
    /// What a request sent that failed just now, where it may be sent again.
    pub(super) failed: Option<Box<(RequestId, Hop)>>,
}

/// Connections that a session has in common with others.
#[derive(Default)]
pub(super) enum Shares {
    /// None.
    #[default]
    Nothing,
    /// Of those of HTTP/1.1 that users share whatever is free.
    Free,
    /// The one with this place among those of HTTP/2 that users share.
    Dealt(u32),
    /// One of HTTP/2, with the same user's other sessions.
    Own(Rc<Sharing>),
}

impl HttpSession {
    /// Whether requests of other sessions go by streams of the same connection.
    pub(super) fn shares_streams(&self) -> bool {
        matches!(self.shares, Shares::Dealt(_) | Shares::Own(_))
    }

    /// Schedules a challenged message to be sent again, with an answer.
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

    /// Its connection has served a request.
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
