//! What every layout does, and what it is told to change.

use std::ops::ControlFlow;

use groupware_store::{Batch, Snapshot};

use super::Amount;
use crate::limits::{VISIT_BYTES, VISITS};
use crate::query::LookupQuery;
use crate::registration::{Head, Registration};
use crate::{Id, LookupError};

/// A change of one registration.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Keeps it, in the place of what has its name now.
    Put(Box<Registration>),
    /// Keeps it with another head of the same version.
    Renew(Id, Head),
    /// Forgets it.
    Remove(Id),
}

impl Change {
    pub(crate) fn id(&self) -> Id {
        match self {
            Self::Put(registration) => registration.id,
            Self::Renew(id, _) | Self::Remove(id) => *id,
        }
    }
}

/// Called with each registration that a query may be about.
pub(crate) type Visit<'a> = dyn FnMut(Registration) -> ControlFlow<()> + 'a;

/// What a layout does. Leases are not its concern, except that it sweeps away what has ended long
/// ago.
pub(crate) trait Keep {
    /// How much there is, of this user or in all, ended registrations that were not swept away included.
    fn held(&self, snapshot: &dyn Snapshot, owner: Option<&str>) -> Result<Amount, LookupError>;

    /// What is known of a registration besides its content.
    fn head(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Head>, LookupError>;

    /// About how many bytes a registration has, where that is told by less than all of it; else 0.
    fn size(&self, _: &dyn Snapshot, _: Id) -> Result<u64, LookupError> {
        Ok(0)
    }

    /// The registration.
    fn get(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Registration>, LookupError>;

    /// The registration whose record is the same.
    fn same(
        &self,
        snapshot: &dyn Snapshot,
        fingerprint: [u8; 16],
    ) -> Result<Option<(Id, Head)>, LookupError>;

    /// Visits at least all registrations that the query matches, each once.
    fn candidates(
        &self,
        snapshot: &dyn Snapshot,
        query: &LookupQuery,
        visit: &mut Visit<'_>,
    ) -> Result<(), LookupError>;

    /// What makes the changes, each of another registration, on the state that was read.
    fn change(&self, snapshot: &dyn Snapshot, changes: &[Change]) -> Result<Batch, LookupError>;

    /// What to commit to clear away a little of what has ended, and whether there may be more;
    /// `None` if there is nothing to do.
    fn sweep(&self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError>;
}

/// What a query may still look at.
pub(super) struct Budget {
    visits: usize,
    bytes: usize,
}

impl Budget {
    /// What the query says, and so many bytes as go with it.
    pub(super) fn of(query: &LookupQuery) -> Self {
        Self {
            visits: query.visits,
            bytes: query.visits.saturating_mul(VISIT_BYTES / VISITS),
        }
    }

    pub(super) fn spend(&mut self, visits: usize, bytes: usize) -> Result<(), LookupError> {
        let left = self
            .visits
            .checked_sub(visits)
            .zip(self.bytes.checked_sub(bytes));
        let (visits, bytes) = left.ok_or_else(LookupError::too_wide)?;
        (self.visits, self.bytes) = (visits, bytes);
        Ok(())
    }
}
