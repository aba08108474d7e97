//! The space that bodies under way reserve of an owner's share of the disk, until they are
//! attachments or dropped. Reservations are in memory only: they end with their bodies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reserved bytes, by owner; owners without any have no entry.
#[derive(Debug, Clone, Default)]
pub struct Reservations(Arc<Mutex<HashMap<Arc<str>, u64>>>);

/// Reserved bytes of one body; dropping it releases them.
#[derive(Debug)]
pub(crate) struct Share {
    of: Reservations,
    owner: Arc<str>,
    bytes: u64,
}

impl Reservations {
    /// Returns an empty reservation for this owner.
    pub(crate) fn share(&self, owner: &Arc<str>) -> Share {
        Share {
            of: self.clone(),
            owner: Arc::clone(owner),
            bytes: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Reserves more bytes, if the owner's reservations stay within this room.
    pub(crate) fn grow(&mut self, bytes: u64, room: u64) -> bool {
        let mut owners = self.of.lock();
        let held = owners.get(&self.owner).copied().unwrap_or_default();
        let after = held.saturating_add(bytes);
        if after > room {
            return false;
        }
        if bytes > 0 {
            owners.insert(Arc::clone(&self.owner), after);
            self.bytes += bytes;
        }
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut owners = self.of.lock();
        if let Some(held) = owners.get_mut(&self.owner) {
            *held = held.saturating_sub(self.bytes);
            if *held == 0 {
                owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_at_once_share_the_room() {
        let set_aside = Reservations::default();
        let (ada, bob) = (Arc::from("ada"), Arc::from("bob"));
        let take = |owner, bytes| {
            let mut share = set_aside.share(owner);
            share.grow(bytes, 100).then_some(share)
        };
        let first = take(&ada, 60);
        assert!(first.is_some() && take(&ada, 60).is_none());
        assert!(take(&bob, 60).is_some() && take(&ada, 40).is_some());
        drop(first);
        assert!(take(&ada, 100).is_some());
        assert!(set_aside.lock().is_empty());
    }
}
