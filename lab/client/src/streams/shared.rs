//! Connections that all users of a worker share. It knows nothing of their content.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use tokio::sync::Mutex;

use super::link::{HeldConnection, Link};
use crate::exchange::ErrorClass;
use crate::time::{Nanos, Time, within};

/// A worker's shared connections. Users are assigned to them in turn, and stay.
pub(crate) struct Sharing {
    slots: Box<[Mutex<Slot>]>,
    next: Cell<usize>,
}

/// A slot for a connection. The opening user holds it while others wait.
#[derive(Default)]
struct Slot {
    link: Option<Rc<Link>>,
    /// The server has chosen HTTP/1.1: each request needs a connection of its own.
    is_single: bool,
    /// When and why the last attempt to open one failed: users that waited meanwhile fail, too.
    failed: Option<(Nanos, Rc<str>)>,
}

/// A hold on a shared connection, or why there is none; `None` if the server has chosen HTTP/1.1, so that each session
/// needs a connection of its own.
pub(crate) type Joined = Result<Option<HeldConnection>, (ErrorClass, String)>;

impl Sharing {
    /// Returns slots for this number of connections.
    pub(crate) fn new(connections: u32) -> Self {
        Self {
            slots: (0..connections.max(1)).map(|_| Mutex::default()).collect(),
            next: Cell::new(0),
        }
    }

    /// Returns a slot for one user's connection, with the connection if it is open.
    pub(crate) fn own(link: Option<Rc<Link>>) -> Self {
        let slot = Slot {
            link,
            ..Slot::default()
        };
        Self {
            slots: Box::new([Mutex::new(slot)]),
            next: Cell::new(0),
        }
    }

    /// Returns the slot of the next user.
    pub(crate) fn deal(&self) -> u32 {
        let place = self.next.get();
        self.next.set((place + 1) % self.slots.len());
        place as u32
    }

    /// Joins the connection of an assigned slot, by the deadline. If it is not open, one user opens it. The result
    /// includes the time that this user waited. `open` returns `None` if the server chose HTTP/1.1.
    pub(crate) async fn join<T: Time>(
        &self,
        place: u32,
        (time, deadline): (&T, &T::Timer),
        open: impl Future<Output = Result<Option<Rc<Link>>, String>>,
    ) -> (Option<Nanos>, Joined) {
        let slot = &self.slots[place as usize % self.slots.len()];
        let asked = time.now();
        let (blocked, mut slot) = match slot.try_lock() {
            Ok(slot) => (None, slot),
            Err(_) => {
                let locked = within(deadline, slot.lock()).await;
                let blocked = Some(time.now().saturating_sub(asked));
                let Some(slot) = locked else {
                    let late = "the shared connection was not open in time".to_owned();
                    return (blocked, Err((ErrorClass::Timeout, late)));
                };
                (blocked, slot)
            }
        };
        if let Some((at, why)) = &slot.failed
            && *at >= asked
        {
            return (blocked, Err((ErrorClass::Connect, why.to_string())));
        }
        if slot.is_single {
            return (blocked, Ok(None));
        }
        if let Some(link) = &slot.link {
            let mut held = link.shared();
            if !held.is_unusable().await {
                return (blocked, Ok(Some(held)));
            }
            slot.link = None;
        }
        let opened = match open.await {
            Ok(Some(link)) => Ok(Some(slot.link.insert(link).shared())),
            Ok(None) => {
                slot.is_single = true;
                Ok(None)
            }
            Err(why) => {
                slot.failed = Some((time.now(), why.as_str().into()));
                Err((ErrorClass::Connect, why))
            }
        };
        (blocked, opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_dealt_in_turn() {
        let sharing = Sharing::new(3);
        let dealt: Vec<u32> = (0..7).map(|_| sharing.deal()).collect();
        assert_eq!(dealt, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(Sharing::new(0).deal(), 0);
    }
}
