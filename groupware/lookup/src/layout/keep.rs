//! The interface of all layouts, and the changes that they apply.

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
    /// Stores it, replacing the registration with the same id.
    Put(Box<Registration>),
    /// Stores it with another head of the same version.
    Renew(Id, Head),
    /// Removes it.
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

/// Called with each candidate of a query.
pub(crate) type Visit<'a> = dyn FnMut(Registration) -> ControlFlow<()> + 'a;

/// The interface of a layout. It ignores leases, except that it sweeps long expired registrations.
pub(crate) trait Keep {
    /// Returns the sums of this user or of all, including expired registrations that were not swept.
    fn held(&self, snapshot: &dyn Snapshot, owner: Option<&str>) -> Result<Amount, LookupError>;

    /// Returns the head of a registration.
    fn head(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Head>, LookupError>;

    /// Returns the approximate size of a registration if that is known without reading all of it; else 0.
    fn size(&self, _: &dyn Snapshot, _: Id) -> Result<u64, LookupError> {
        Ok(0)
    }

    /// Returns the registration.
    fn get(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Registration>, LookupError>;

    /// Returns the registration with an equal record.
    fn same(
        &self,
        snapshot: &dyn Snapshot,
        fingerprint: [u8; 16],
    ) -> Result<Option<(Id, Head)>, LookupError>;

    /// Visits at least all registrations that match the query, each once.
    fn candidates(
        &self,
        snapshot: &dyn Snapshot,
        query: &LookupQuery,
        visit: &mut Visit<'_>,
    ) -> Result<(), LookupError>;

    /// Returns the batch of changes of different registrations, based on the state that was read.
    fn change(&self, snapshot: &dyn Snapshot, changes: &[Change]) -> Result<Batch, LookupError>;

    /// Returns a batch that clears some of the expired data, after which there may be more; `None`
    /// if there is nothing to do.
    fn sweep(&self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError>;
}

/// The remaining scan budget of a query.
pub(super) struct Budget {
    visits: usize,
    bytes: usize,
}

impl Budget {
    /// Returns the query's limit of visits, and the bytes that correspond to it.
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
