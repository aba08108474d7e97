//! Chooses the connections for parallel requests of one user. It sends nothing.

use std::rc::Rc;

use super::client::HttpClient;
use super::session::{HttpSession, Shares};
use crate::streams::Sharing;
use crate::time::Time;
use lab_units::{Offer, Version};

impl<T: Time> HttpClient<T> {
    /// Returns the connections that a parallel session shares with others. If the server chooses the version, one
    /// session opens a connection and the others wait for the choice.
    pub(super) fn shares_of(&self, session: &mut HttpSession) -> Shares {
        match &session.shares {
            Shares::Free => Shares::Free,
            Shares::Dealt(place) => Shares::Dealt(*place),
            Shares::Own(own) => Shares::Own(Rc::clone(own)),
            Shares::Nothing if self.carries_many(session) != Some(false) => self.share_own(session),
            Shares::Nothing => Shares::Nothing,
        }
    }

    /// Returns whether a connection of the session carries many requests; `None` if the server has yet to choose.
    pub(super) fn carries_many(&self, session: &HttpSession) -> Option<bool> {
        match self.offer {
            Offer::One => return Some(false),
            Offer::Two => return Some(true),
            Offer::Auto if !self.base.secure => return Some(false),
            Offer::Auto => {}
        }
        let two = session.two.as_ref();
        if two.is_some_and(|held| held.other.is_none() && !held.link.has_ended()) {
            return Some(true);
        }
        let one = session.connection.as_ref();
        if one.is_some_and(|connection| connection.other.is_none()) {
            return Some(false);
        }
        self.chosen.get().map(|version| version == Version::Two)
    }

    /// Shares the user's own connection, which uses or will use HTTP/2, between several sessions.
    fn share_own(&self, session: &mut HttpSession) -> Shares {
        let own = session.two.as_mut().filter(|held| held.other.is_none());
        let sharing = Rc::new(Sharing::own(own.map(|held| {
            held.is_shared = true;
            Rc::clone(&held.link)
        })));
        session.shares = Shares::Own(Rc::clone(&sharing));
        Shares::Own(sharing)
    }
}
