//! The current memtables, and how readers get them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::table::{Change, GroupNumber, Keyed, Memtable};

/// The last group in a snapshot of the tree.
pub(in crate::sqlite) const LAST_GROUP: &str = "SELECT max(number) FROM pending";

/// A partition, the first key or the key before it, and the first key after the range.
type Range<'a> = (&'a str, Bound<&'a [u8]>, Option<&'a [u8]>);

/// The memtables at one moment.
#[derive(Debug, Clone, Default)]
pub(in crate::sqlite) struct Tables {
    /// The number of replacements so far.
    pub(super) epoch: u64,
    pub(super) active: Arc<Memtable>,
    /// The full memtable, until it is in the tree.
    pub(super) full: Option<Arc<Memtable>>,
}

impl Tables {
    /// The change of a record that a reader at this group sees.
    pub(in crate::sqlite) fn get(
        &self,
        partition: &str,
        key: &[u8],
        at: GroupNumber,
    ) -> Option<Change> {
        let active = self.active.get(partition, key, at);
        active.or_else(|| self.full.as_ref()?.get(partition, key, at))
    }

    /// The first changes of a range in key order, and the key after which the next ones follow.
    pub(super) fn range(
        &self,
        (partition, from, to): Range<'_>,
        at: GroupNumber,
        most: usize,
    ) -> (Vec<Keyed>, Option<Box<[u8]>>) {
        let (active, is_more) = self.active.range((partition, from, to), at, most);
        let Some(full) = &self.full else {
            let next = active.last().filter(|_| is_more);
            let next = next.map(|(key, _)| key.clone());
            return (active, next);
        };
        let (below, is_more_below) = full.range((partition, from, to), at, most);
        let ends = [(&active, is_more), (&below, is_more_below)];
        let ends = ends.iter().filter(|(_, is_more)| *is_more);
        let next = ends.filter_map(|(found, _)| found.last()).map(|it| &it.0);
        let next = next.min().cloned();
        let mut merged: BTreeMap<Box<[u8]>, Change> = below.into_iter().collect();
        merged.extend(active);
        if let Some(next) = &next {
            merged.retain(|key, _| key <= next);
        }
        (merged.into_iter().collect(), next)
    }

    pub(super) fn partitions(&self) -> Vec<Arc<str>> {
        let mut all = self.active.partitions();
        if let Some(full) = &self.full {
            all.extend(full.partitions());
            all.sort_unstable();
            all.dedup();
        }
        all
    }

    pub(in crate::sqlite) fn bytes(&self) -> usize {
        self.active.bytes() + self.full.as_ref().map_or(0, |full| full.bytes())
    }

    pub(super) fn are_empty(&self) -> bool {
        self.active.is_empty() && self.full.as_ref().is_none_or(|full| full.is_empty())
    }
}

/// The current memtables, shared with readers.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Shared {
    tables: RwLock<Tables>,
    epoch: AtomicU64,
}

impl Shared {
    /// The current memtables.
    pub(in crate::sqlite) fn tables(&self) -> Tables {
        let tables = self.tables.read();
        tables.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if these memtables are still current.
    pub(in crate::sqlite) fn are(&self, tables: &Tables) -> bool {
        self.epoch.load(Ordering::SeqCst) == tables.epoch
    }

    pub(super) fn exchange(&self, tables: Tables) {
        let mut shared = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        self.epoch.store(tables.epoch, Ordering::SeqCst);
        *shared = tables;
    }
}
