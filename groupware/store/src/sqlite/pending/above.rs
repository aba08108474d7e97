//! The changes of the memtables above the tree, in order, as seen by a reader at one group.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use super::table::{Change, GroupNumber};
use super::tables::Tables;

/// Changes that are taken from the memtables at once.
const AT_ONCE: usize = 64;

/// A record with its partition and key.
#[derive(Debug)]
pub(in crate::sqlite) struct Changed {
    pub(in crate::sqlite) partition: Arc<str>,
    pub(in crate::sqlite) key: Box<[u8]>,
    pub(in crate::sqlite) change: Change,
}

impl Changed {
    pub(in crate::sqlite) fn place(&self) -> (&str, &[u8]) {
        (&self.partition, &self.key)
    }
}

/// The changes from a position on.
pub(in crate::sqlite) struct Above<'a> {
    tables: &'a Tables,
    at: GroupNumber,
    /// The partitions that follow, the next one last.
    partitions: Vec<Arc<str>>,
    /// The start of the range in the last of these.
    from: Bound<Vec<u8>>,
    to: Option<&'a [u8]>,
    ready: VecDeque<Changed>,
}

impl<'a> Above<'a> {
    /// The changes in a range of one partition.
    pub(in crate::sqlite) fn range(
        tables: &'a Tables,
        at: GroupNumber,
        (partition, from, to): (&str, &[u8], Option<&'a [u8]>),
    ) -> Self {
        Self {
            tables,
            at,
            partitions: vec![partition.into()],
            from: Bound::Included(from.to_vec()),
            to,
            ready: VecDeque::new(),
        }
    }

    /// The changes in all partitions, after a position.
    pub(in crate::sqlite) fn all(
        tables: &'a Tables,
        at: GroupNumber,
        after: Option<(&str, &[u8])>,
    ) -> Self {
        let mut partitions = tables.partitions();
        partitions.retain(|it| after.is_none_or(|(partition, _)| **it >= *partition));
        partitions.reverse();
        let from = match (after, partitions.last()) {
            (Some((partition, key)), Some(first)) if **first == *partition => {
                Bound::Excluded(key.to_vec())
            }
            _ => Bound::Unbounded,
        };
        Self {
            tables,
            at,
            partitions,
            from,
            to: None,
            ready: VecDeque::new(),
        }
    }

    pub(in crate::sqlite) fn peek(&mut self) -> Option<&Changed> {
        while self.ready.is_empty() && !self.partitions.is_empty() {
            self.fill();
        }
        self.ready.front()
    }

    pub(in crate::sqlite) fn next(&mut self) -> Option<Changed> {
        self.peek()?;
        self.ready.pop_front()
    }

    fn fill(&mut self) {
        let Some(partition) = self.partitions.last() else {
            return;
        };
        let from = self.from.as_ref().map(Vec::as_slice);
        let range = (&**partition, from, self.to);
        let (found, next) = self.tables.range(range, self.at, AT_ONCE);
        let partition = Arc::clone(partition);
        self.ready
            .extend(found.into_iter().map(|(key, change)| Changed {
                partition: Arc::clone(&partition),
                key,
                change,
            }));
        match next {
            Some(next) => self.from = Bound::Excluded(next.into()),
            None => {
                self.partitions.pop();
                self.from = Bound::Unbounded;
            }
        }
    }
}
