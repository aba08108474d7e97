//! Removes many records without delaying other writers: in small batches, each queued behind other batches, with pauses
//! while others write.

use std::ops::ControlFlow;

use crate::clock::Clock;
use crate::writer::MOST_PAUSE;
use crate::{Assert, Batch, CommitError, Store, StoreError};

/// The maximum number of records in one batch.
const RECORDS: usize = 100;
/// The bytes after which a batch is full; its last record may be large.
const BYTES: u64 = 256 << 10;
/// A larger value lies in pages of its own, each of which must be read to be freed. They are read here first, so that
/// the writer finds them in memory.
const READ_BEFORE_BYTES: u64 = 8 << 10;

/// The next records to remove: the first key after them, and whether the range ends there.
struct Slice {
    to: Vec<u8>,
    is_last: bool,
}

impl Store {
    /// Removes every record of a partition with `from <= key`, and `key < to` if there is a `to`. Small, low-priority
    /// batches keep the delay of other writers short. Records that others write into the range meanwhile may or may not
    /// be removed. A crash may leave some records.
    ///
    /// It takes long and uses much disk time: call it on a thread of its own.
    ///
    /// # Errors
    /// As [`Store::commit`]; then some records may have been removed.
    ///
    /// # Panics
    /// When called from within an asynchronous task.
    pub fn remove_in_slices(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<(), CommitError> {
        self.remove_while(partition, (from, to), None)
    }

    /// As [`Store::remove_in_slices`], for a whole partition, while an assert holds. Each batch checks it.
    ///
    /// # Errors
    /// As [`Store::commit`]; a conflict means that the assert no longer holds. Some records may have been removed.
    ///
    /// # Panics
    /// When called from within an asynchronous task.
    pub fn remove_in_slices_while(
        &self,
        partition: &str,
        holds: &Assert,
    ) -> Result<(), CommitError> {
        self.remove_while(partition, (b"", None), Some(holds))
    }

    fn remove_while(
        &self,
        partition: &str,
        (from, to): (&[u8], Option<&[u8]>),
        holds: Option<&Assert>,
    ) -> Result<(), CommitError> {
        let _removing = self.removing();
        let clock = Clock::start();
        let (mut from, mut commits) = (from.to_vec(), self.stats().commits);
        while let Some(slice) = self.read(|snapshot| next(snapshot, partition, &from, to))? {
            let mut batch = Batch::new();
            batch.asserts.extend(holds.cloned());
            batch.delete_range(partition, from, slice.to.clone());
            let began = clock.now();
            self.commit_patiently(batch)?;
            if slice.is_last {
                break;
            }
            from = slice.to;
            let before = std::mem::replace(&mut commits, self.stats().commits);
            if commits > before + 1 {
                // Others write, too: pause as long as the batch took.
                let took = clock.now().saturating_sub(began);
                std::thread::park_timeout(took.min(MOST_PAUSE));
            }
        }
        Ok(())
    }
}

fn next(
    snapshot: &dyn crate::Snapshot,
    partition: &str,
    from: &[u8],
    to: Option<&[u8]>,
) -> Result<Option<Slice>, StoreError> {
    let (mut records, mut bytes, mut last) = (0, 0, None);
    let mut is_large = false;
    snapshot.measure(partition, from, to, RECORDS + 1, &mut |key, size| {
        if records == RECORDS || bytes >= BYTES {
            records += 1;
            return ControlFlow::Break(());
        }
        records += 1;
        bytes += size;
        is_large |= size > READ_BEFORE_BYTES;
        last = Some([key, &[0]].concat());
        ControlFlow::Continue(())
    })?;
    let Some(to) = last else {
        return Ok(None);
    };
    if is_large && !snapshot.is_remote() {
        snapshot.browse(partition, from, Some(&to), RECORDS, &mut |_, _| {
            ControlFlow::Continue(())
        })?;
    }
    let is_last = records <= RECORDS && bytes < BYTES;
    Ok(Some(Slice { to, is_last }))
}
