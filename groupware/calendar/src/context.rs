//! What a decision is given besides the request, and what it gives back.

use groupware_ids::Ids;
use groupware_people::Directory;
use groupware_store::{Batch, Snapshot, StoreError};

use crate::{Entry, Event};

/// What a decision reads: one consistent state of the store, the users, the moment, and the
/// identifiers that it may give away.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The local users.
    pub directory: &'a dyn Directory,
    /// Whose calendar the request is about: its owner's name and the partition's.
    pub mailbox: &'a str,
    /// The moment of the request, seconds since 1970.
    pub now: i64,
    /// New identifiers. Deciding again may start from the same.
    pub ids: Ids,
    /// Who is invited to an event for the first time is taken not to hold it, without a look: the batch asserts
    /// that. Whoever has lost the commit decides again without this.
    pub presumes_absent: bool,
}

impl Context<'_> {
    /// Whether a copy of an event comes from the organizer of another one: from the same account, not from one that had
    /// its name before.
    pub(crate) fn is_of_organizer(&self, copy: &Event, event: &Event) -> Result<bool, StoreError> {
        Ok(copy.organizer.user == event.organizer.user && self.has_its_organizer(copy)?)
    }

    /// Whether the account is still there that an event comes from.
    pub(crate) fn has_its_organizer(&self, event: &Event) -> Result<bool, StoreError> {
        let registered = self.directory.registered(&event.organizer.user)?;
        Ok(registered.is_some_and(|since| since <= event.created))
    }
}

/// What is to be committed, and what the owner's calendar then holds.
#[derive(Debug)]
pub struct Decision {
    /// To be committed as a whole.
    pub batch: Batch,
    /// The owner's entry after the commit, if there is one.
    pub entry: Option<Entry>,
}
