//! What a reader sees: one state of the store, whatever is written meanwhile.

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

/// Is shown keys and values, one by one.
pub type Show<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Is shown partitions, keys, and records, one by one.
pub type Walk<'a> = &'a mut dyn FnMut(&str, &[u8], Record) -> ControlFlow<()>;

/// What is about to be read, as a reader tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Soon {
    /// Single records: partition and key.
    pub keys: Vec<(Arc<str>, Vec<u8>)>,
    /// Ranges of few records: partition, first key, and first key after.
    pub ranges: Vec<(Arc<str>, Vec<u8>, Vec<u8>)>,
}

impl Soon {
    /// This record.
    pub fn key(&mut self, partition: impl Into<Arc<str>>, key: impl Into<Vec<u8>>) -> &mut Self {
        self.keys.push((partition.into(), key.into()));
        self
    }

    /// These records, which whoever scans exactly this range then sees.
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
    /// Whether each look is a question to another machine, so that it pays to tell beforehand what is
    /// about to be read ([`Snapshot::prefetch`]).
    fn is_far(&self) -> bool {
        false
    }

    /// Fetches at once what is about to be read record by record. Changes nothing but the time that it
    /// takes: without it, and where it costs nothing to look, each record is read when it is asked for. Of a range
    /// with more than a few records, nothing may be kept.
    ///
    /// # Errors
    /// When the engine fails.
    fn prefetch(&self, _soon: &Soon) -> Result<(), StoreError> {
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

    /// Visits all records after a place, or from the first on, in the order of partitions and keys, until
    /// `limit` of them were visited or `visit` breaks off.
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

    /// Visits the records with `from <= key`, and `key < to` if there is a `to`, in key order,
    /// until `limit` of them were visited or `visit` breaks off.
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

    /// As [`Snapshot::scan`], but values are shown where they lie, without their revisions: for
    /// whoever reads many of them once.
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

    /// As [`Snapshot::scan`], but only keys and the lengths of values are told: large values aren't
    /// read.
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
