//! Removing many records without holding up those who write meanwhile: some at a time, each time behind
//! whatever others bring, and with a pause while they do.

use std::ops::ControlFlow;

use crate::clock::Clock;
use crate::writer::MOST_PAUSE;
use crate::{Assert, Batch, CommitError, Store, StoreError};

/// Most records that go at once.
const RECORDS: usize = 100;
/// Bytes after which no more records go at once; the last of them may be a large one.
const BYTES: u64 = 256 << 10;
/// A value of more bytes lies in pages of its own, each of which must be read to be freed: they are read
/// here first, so that the writer finds them in memory.
const READ_BEFORE_BYTES: u64 = 8 << 10;

/// The records that go next: the first that stays, and whether that is where the range ends.
struct Slice {
    to: Vec<u8>,
    is_last: bool,
}

impl Store {
    /// Removes every record of a partition with `from <= key`, and `key < to` if there is a `to`, in
    /// batches that are so small, and so patient, that nobody who writes meanwhile waits for long. What
    /// others write into the range meanwhile may go or stay. A crash may leave some of them.
    ///
    /// It takes long, and the disk's time: it is for a thread of its own.
    ///
    /// # Errors
    /// As [`Store::commit`]; then some may be gone.
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

    /// The same for all of a partition as long as an assert holds, which each of the batches makes.
    ///
    /// # Errors
    /// As [`Store::commit`], of which a conflict says that it doesn't hold any more; then some may be gone.
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
                // Others write, too: they have the disk to themselves for as long as they had to share it.
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
    if is_large && !snapshot.is_far() {
        snapshot.browse(partition, from, Some(&to), RECORDS, &mut |_, _| {
            ControlFlow::Continue(())
        })?;
    }
    let is_last = records <= RECORDS && bytes < BYTES;
    Ok(Some(Slice { to, is_last }))
}
