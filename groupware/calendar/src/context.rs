//! Input of a decision besides the request, and its result.

use groupware_ids::Ids;
use groupware_people::Directory;
use groupware_store::{Batch, Snapshot, StoreError};

use crate::{Entry, Event};

/// The input of a decision: one consistent state of the store, the users, the current time, and new identifiers.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The local users.
    pub directory: &'a dyn Directory,
    /// The calendar's account: the owner's name and the name of the partition.
    pub mailbox: &'a str,
    /// The time of the request, in seconds since 1970.
    pub now: i64,
    /// New identifiers. A repeated decision may use the same ones.
    pub ids: Ids,
    /// True if newly invited users are presumed not to hold the event, without a read: the batch asserts that. After a
    /// conflict, the caller decides again without this.
    pub presumes_absent: bool,
}

impl Context<'_> {
    /// Returns true if a copy comes from the organizer of another event: from the same account, and not from an earlier
    /// account of the same name.
    pub(crate) fn is_of_organizer(&self, copy: &Event, event: &Event) -> Result<bool, StoreError> {
        Ok(copy.organizer.user == event.organizer.user && self.has_its_organizer(copy)?)
    }

    /// Returns true if the event's account of origin still exists.
    pub(crate) fn has_its_organizer(&self, event: &Event) -> Result<bool, StoreError> {
        let registered = self.directory.registered(&event.organizer.user)?;
        Ok(registered.is_some_and(|since| since <= event.created))
    }
}

/// The batch to commit, and the resulting entry.
#[derive(Debug)]
pub struct Decision {
    /// The batch to commit, as a whole.
    pub batch: Batch,
    /// The owner's entry after the commit, if there is one.
    pub entry: Option<Entry>,
}
