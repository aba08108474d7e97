//! Removing many records without holding up those who write meanwhile: some at a time.

use std::ops::ControlFlow;

use crate::{Assert, Batch, CommitError, Store, StoreError};

/// Most records that go at once.
const RECORDS: usize = 100;
/// Bytes after which no more records go at once; the last of them may be a large one.
const BYTES: u64 = 256 << 10;

/// The records that go next: the first that stays, and whether that is where the range ends.
struct Slice {
    to: Vec<u8>,
    is_last: bool,
}

impl Store {
    /// Removes every record of a partition with `from <= key`, and `key < to` if there is a `to`, in
    /// batches that are so small that nobody who writes meanwhile waits for long. What others write
    /// into the range meanwhile may go or stay. A crash may leave some of them.
    ///
    /// # Errors
    /// As [`Store::commit`]; then some may be gone.
    pub async fn remove_in_slices(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<(), CommitError> {
        self.remove_while(partition, (from, to), None).await
    }

    /// The same as long as an assert holds, which each of the batches makes.
    ///
    /// # Errors
    /// As [`Store::commit`], of which a conflict says that it doesn't hold any more; then some may be gone.
    pub async fn remove_in_slices_while(
        &self,
        partition: &str,
        holds: &Assert,
    ) -> Result<(), CommitError> {
        self.remove_while(partition, (b"", None), Some(holds)).await
    }

    async fn remove_while(
        &self,
        partition: &str,
        (from, to): (&[u8], Option<&[u8]>),
        holds: Option<&Assert>,
    ) -> Result<(), CommitError> {
        let mut from = from.to_vec();
        while let Some(slice) = self.read(|snapshot| next(snapshot, partition, &from, to))? {
            let mut batch = Batch::new();
            batch.asserts.extend(holds.cloned());
            batch.delete_range(partition, from, slice.to.clone());
            self.commit(batch).await?;
            if slice.is_last {
                break;
            }
            from = slice.to;
            // Others of this thread have a turn.
            tokio::task::yield_now().await;
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
    snapshot.measure(partition, from, to, RECORDS + 1, &mut |key, size| {
        if records == RECORDS || bytes >= BYTES {
            records += 1;
            return ControlFlow::Break(());
        }
        records += 1;
        bytes += size;
        last = Some([key, &[0]].concat());
        ControlFlow::Continue(())
    })?;
    let taken = last.map(|to| (to, records <= RECORDS && bytes < BYTES));
    Ok(taken.map(|(to, is_last)| Slice { to, is_last }))
}
