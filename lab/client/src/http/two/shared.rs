//! Connections that all users of a worker share. It knows nothing of requests.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Mutex;

use super::link::Link;
use crate::time::Nanos;

/// A worker's shared connections. Users are dealt to them in turn, and stay.
pub(crate) struct Sharing {
    slots: Box<[Mutex<Slot>]>,
    next: Cell<usize>,
}

/// A place for a connection: held by who opens it, while others wait.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) link: Option<Rc<Link>>,
    /// When the last attempt to open one failed, and why: who waited for it meanwhile fails, too.
    pub(super) failed: Option<(Nanos, Rc<str>)>,
}

impl Sharing {
    /// Places for so many connections.
    pub(crate) fn new(connections: u32) -> Self {
        Self {
            slots: (0..connections.max(1)).map(|_| Mutex::default()).collect(),
            next: Cell::new(0),
        }
    }

    /// The place of the next user.
    pub(crate) fn deal(&self) -> usize {
        let place = self.next.get();
        self.next.set((place + 1) % self.slots.len());
        place
    }

    /// The slot of a place that was dealt.
    pub(super) fn slot(&self, place: usize) -> &Mutex<Slot> {
        &self.slots[place % self.slots.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_dealt_in_turn() {
        let sharing = Sharing::new(3);
        let dealt: Vec<usize> = (0..7).map(|_| sharing.deal()).collect();
        assert_eq!(dealt, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(Sharing::new(0).deal(), 0);
    }
}
