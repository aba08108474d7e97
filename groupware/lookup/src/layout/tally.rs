//! The sums of registrations, in all and of each user: changes only add to them, so that they cause
//! no conflicts.

use std::collections::BTreeMap;

use groupware_store::{Batch, Snapshot, counters};

use crate::LookupError;
use crate::registration::Head;

/// The registrations of a user, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) registrations: i64,
    /// The stored bytes of registrations.
    pub(crate) bytes: i64,
}

impl Amount {
    pub(crate) fn add(&mut self, registrations: i64, bytes: i64) {
        self.registrations += registrations;
        self.bytes += bytes;
    }

    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// The sums of a layout, below one key of its partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) partition: &'static str,
    /// The key of the sum over all; the sum of a user has the name appended.
    pub(super) key: &'static [u8],
}

impl Sums {
    pub(super) fn of(
        self,
        snapshot: &dyn Snapshot,
        owner: Option<&str>,
    ) -> Result<Amount, LookupError> {
        let found = snapshot.get(self.partition, &self.key_of(owner))?;
        let mut sums = found.iter().flat_map(|found| counters(&found.value));
        Ok(Amount {
            registrations: sums.next().unwrap_or(0),
            bytes: sums.next().unwrap_or(0),
        })
    }

    fn key_of(self, owner: Option<&str>) -> Vec<u8> {
        [self.key, owner.unwrap_or_default().as_bytes()].concat()
    }
}

/// The differences that a change makes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    all: Amount,
    users: BTreeMap<String, Amount>,
}

impl Tally {
    pub(super) fn comes(&mut self, head: &Head) {
        self.count(head, 1);
    }

    pub(super) fn goes(&mut self, head: &Head) {
        self.count(head, -1);
    }

    fn count(&mut self, head: &Head, by: i64) {
        let bytes = by * i64::from(head.bytes);
        self.all.add(by, bytes);
        // An earlier version recorded no sums of users, and no bytes.
        if let Some(owner) = head.owner.as_ref().filter(|_| head.bytes > 0) {
            self.users.entry(owner.clone()).or_default().add(by, bytes);
        }
    }

    pub(super) fn write(self, sums: Sums, batch: &mut Batch) {
        let users = self.users.iter().map(|(name, more)| (Some(&**name), *more));
        for (owner, more) in std::iter::once((None, self.all)).chain(users) {
            if !more.is_nothing() {
                let by = [more.registrations, more.bytes];
                batch.add(sums.partition, sums.key_of(owner), by);
            }
        }
    }
}
