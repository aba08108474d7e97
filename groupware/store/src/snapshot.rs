//! What a reader sees: one state of the store, whatever is written meanwhile.

use std::ops::ControlFlow;

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

/// One consistent state of all records.
pub trait Snapshot {
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
