//! A reader's view: one state of the store, whatever is written meanwhile.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::StoreError;

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The content.
    pub value: Bytes,
    /// The revision that wrote it, for [`Batch::assert_revision`](crate::Batch::assert_revision).
    pub revision: u64,
}

/// A callback that receives keys and values, one by one.
pub type Show<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A callback that receives partitions, keys, and records, one by one.
pub type Walk<'a> = &'a mut dyn FnMut(&str, &[u8], Record) -> ControlFlow<()>;

/// A prefetch set: the records that a reader is about to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefetchSet {
    /// Single records: partition and key.
    pub keys: Vec<(Arc<str>, Vec<u8>)>,
    /// Ranges of few records: partition, first key, and first key after.
    pub ranges: Vec<(Arc<str>, Vec<u8>, Vec<u8>)>,
}

impl PrefetchSet {
    /// Adds this record.
    pub fn key(&mut self, partition: impl Into<Arc<str>>, key: impl Into<Vec<u8>>) -> &mut Self {
        self.keys.push((partition.into(), key.into()));
        self
    }

    /// Adds these records, for a later scan of exactly this range.
    pub fn range(
        &mut self,
        partition: impl Into<Arc<str>>,
        from: impl Into<Vec<u8>>,
        to: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.ranges.push((partition.into(), from.into(), to.into()));
        self
    }
}

/// One consistent state of all records.
pub trait Snapshot {
    /// Returns true if each read is a request to another machine, so that prefetching pays ([`Snapshot::prefetch`]).
    fn is_remote(&self) -> bool {
        false
    }

    /// Fetches a prefetch set at once. This changes only the time that reads take: without it, and where reads are
    /// cheap, each record is read on demand. A range with more than a few records may not be kept.
    ///
    /// # Errors
    /// When the engine fails.
    fn prefetch(&self, _soon: &PrefetchSet) -> Result<(), StoreError> {
        Ok(())
    }

    /// The records of several keys, in the order of the keys.
    ///
    /// # Errors
    /// When the engine fails.
    fn get_many(&self, keys: &[(&str, &[u8])]) -> Result<Vec<Option<Record>>, StoreError> {
        let one = |(partition, key): &(&str, &[u8])| self.get(partition, key);
        keys.iter().map(one).collect()
    }

    /// Visits all records after a place, or from the first on, in the order of partitions and keys, until `limit`
    /// records were visited or `visit` breaks.
    ///
    /// # Errors
    /// When the engine fails.
    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError>;

    /// The record of a key.
    ///
    /// # Errors
    /// When the engine fails.
    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError>;

    /// Visits the records with `from <= key`, and `key < to` if there is a `to`, in key order, until `limit` records
    /// were visited or `visit` breaks.
    ///
    /// # Errors
    /// When the engine fails.
    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// As [`Snapshot::scan`], but passes values in place, without copies and revisions: for callers that read many of
    /// them once.
    ///
    /// # Errors
    /// When the engine fails.
    fn browse(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        show: Show<'_>,
    ) -> Result<(), StoreError> {
        self.scan(partition, from, to, limit, &mut |key, record| {
            show(key, &record.value)
        })
    }

    /// As [`Snapshot::scan`], but passes only keys and the lengths of values: large values aren't read.
    ///
    /// # Errors
    /// When the engine fails.
    fn measure(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        tell: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.browse(partition, from, to, limit, &mut |key, value| {
            tell(key, value.len() as u64)
        })
    }
}
