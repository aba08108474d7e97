//! Copies all records of one store into another, whatever their engines. It counts them, compares both sides by a hash,
//! and resumes after an interruption.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::{Batch, CommitError, ReadError, Record, Snapshot, Store, StoreError};

/// The partition that marks an unfinished transfer into a store, with its progress. No other partition's name begins
/// so.
const PARTITION: &str = "\u{1}transfer";
const KEY: &[u8] = b"state";
/// The maximum number of records in one batch.
const RECORDS: usize = 1000;
/// The bytes after which a batch is full; its last record may be large.
const BYTES: usize = 4 << 20;

/// The result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transferred {
    /// Records on either side.
    pub records: u64,
    /// Bytes of their partitions, keys, and values.
    pub bytes: u64,
    /// The hash of either side.
    pub hash: [u8; 32],
}

/// The stage of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Copying; the number of records so far in this run.
    Copying(u64),
    /// Reading both sides again; the number of records so far.
    Comparing(u64),
}

/// The reason why a transfer did not finish. Unless the variant says otherwise, a new transfer between the same stores
/// resumes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The source can't be read.
    #[error("the store to copy from can't be read")]
    From(#[source] StoreError),
    /// The target can't be read.
    #[error("the store to copy to can't be read")]
    To(#[source] StoreError),
    /// The target rejected a record.
    #[error("the store to copy to takes no more")]
    Write(#[source] CommitError),
    /// The target already has records of its own. Nothing was changed.
    #[error("the store to copy to is not empty")]
    NotEmpty,
    /// The source is itself an unfinished copy. Nothing was changed.
    #[error("the store to copy from is a copy that isn't finished")]
    HalfFrom,
    /// The copy differs from the original: one of the stores was written to meanwhile. Start again with an empty
    /// target.
    #[error("the copy has {found} records, and the original {wanted}, or some of them differ")]
    Differs {
        /// Records in the copy.
        found: u64,
        /// Records in the original.
        wanted: u64,
    },
    /// The transfer's own record in the copy can't be decoded.
    #[error("the copy's own record can't be read")]
    State(#[source] ReadError),
}

/// Returns true if a transfer into this store is unfinished, so that the store can't be used.
///
/// # Errors
/// When the engine fails.
pub fn is_half_transferred(snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
    Ok(snapshot.get(PARTITION, KEY)?.is_some())
}

/// Copies all records of a store into an empty one, or resumes such a copy. Neither store may be written to meanwhile.
/// Records get new revisions. The final batch of the copy includes `more`.
///
/// # Errors
/// See [`TransferError`].
pub fn transfer(
    from: &Store,
    to: &Store,
    more: Batch,
    tell: &mut dyn FnMut(Stage),
) -> Result<Transferred, TransferError> {
    if from
        .read(is_half_transferred)
        .map_err(TransferError::From)?
    {
        return Err(TransferError::HalfFrom);
    }
    let mut after = begin(to)?;
    let mut copied = 0;
    while let Some(page) = page(from, after.as_ref())? {
        copied += page.count;
        to.commit_blocking(page.batch)
            .map_err(TransferError::Write)?;
        after = Some(page.last);
        tell(Stage::Copying(copied));
    }
    let mut seen = 0;
    let mut progress = |records| {
        seen += records;
        tell(Stage::Comparing(seen));
    };
    let wanted = summed(from, &mut progress).map_err(TransferError::From)?;
    let found = summed(to, &mut progress).map_err(TransferError::To)?;
    if wanted != found {
        return Err(TransferError::Differs {
            found: found.records,
            wanted: wanted.records,
        });
    }
    let mut done = more;
    done.delete(PARTITION, KEY);
    to.commit_blocking(done).map_err(TransferError::Write)?;
    Ok(found)
}

type OwnedKey = (String, Vec<u8>);

/// Returns where the transfer resumes.
fn begin(to: &Store) -> Result<Option<OwnedKey>, TransferError> {
    let (state, is_empty) = to
        .read(|snapshot| {
            let mut is_empty = true;
            snapshot.walk(None, 1, &mut |_, _, _| {
                is_empty = false;
                ControlFlow::Break(())
            })?;
            Ok::<_, StoreError>((snapshot.get(PARTITION, KEY)?, is_empty))
        })
        .map_err(TransferError::To)?;
    match state {
        Some(state) => place(&state).map_err(TransferError::State),
        None if !is_empty => Err(TransferError::NotEmpty),
        None => {
            let mut batch = Batch::new();
            batch.assert_absent(PARTITION, KEY).put(PARTITION, KEY, "");
            to.commit_blocking(batch).map_err(TransferError::Write)?;
            Ok(None)
        }
    }
}

/// Decodes the last copied record's partition, which is length-prefixed, and its key.
fn place(state: &Record) -> Result<Option<OwnedKey>, ReadError> {
    if state.value.is_empty() {
        return Ok(None);
    }
    let wrong = || ReadError::corrupt(KEY, "it names no place");
    let (length, rest) = state.value.split_first_chunk().ok_or_else(wrong)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (partition, key) = rest.split_at_checked(length).ok_or_else(wrong)?;
    let partition = String::from_utf8(partition.to_vec()).map_err(|_| wrong())?;
    Ok(Some((partition, key.to_vec())))
}

fn state((partition, key): &OwnedKey) -> Bytes {
    let length = u16::try_from(partition.len()).unwrap_or(u16::MAX);
    let parts = [&length.to_le_bytes()[..], partition.as_bytes(), key];
    parts.concat().into()
}

struct Page {
    batch: Batch,
    count: u64,
    last: OwnedKey,
}

/// Returns the next records and the last key among them.
fn page(from: &Store, after: Option<&OwnedKey>) -> Result<Option<Page>, TransferError> {
    let (mut batch, mut count, mut bytes, mut last) = (Batch::new(), 0, 0, None);
    let after = after.map(|(partition, key)| (&**partition, &**key));
    let read = from.read(|snapshot| {
        snapshot.walk(after, RECORDS, &mut |partition, key, record| {
            bytes += record.value.len();
            count += 1;
            batch.put(partition, key, record.value);
            last = Some((partition.to_owned(), key.to_vec()));
            match bytes >= BYTES {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    });
    read.map_err(TransferError::From)?;
    Ok(last.map(|last| {
        batch.put(PARTITION, KEY, state(&last));
        Page { batch, count, last }
    }))
}

/// Counts and hashes all records except the transfer's own.
fn summed(store: &Store, tell: &mut dyn FnMut(u64)) -> Result<Transferred, StoreError> {
    let (mut hasher, mut records, mut bytes) = (blake3::Hasher::new(), 0, 0);
    store.read(|snapshot| {
        snapshot.walk(None, usize::MAX, &mut |partition, key, record| {
            if partition == PARTITION {
                return ControlFlow::Continue(());
            }
            for part in [partition.as_bytes(), key, &record.value] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
                bytes += part.len() as u64;
            }
            records += 1;
            if records % RECORDS as u64 == 0 {
                tell(RECORDS as u64);
            }
            ControlFlow::Continue(())
        })
    })?;
    let hash = *hasher.finalize().as_bytes();
    Ok(Transferred {
        records,
        bytes,
        hash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    fn memory() -> Store {
        Store::memory(StoreOptions::default()).unwrap()
    }

    fn filled() -> Store {
        let store = memory();
        for number in 0..2500_u32 {
            let mut batch = Batch::new();
            let partition = format!("p{}", number % 7);
            batch.put(partition, number.to_be_bytes(), vec![7; number as usize]);
            store.commit_blocking(batch).unwrap();
        }
        store
    }

    /// Copies the first records, then stops.
    fn cut_off(from: &Store, to: &Store) {
        let first = page(from, None).unwrap().unwrap();
        assert_eq!(begin(to).unwrap(), None);
        to.commit_blocking(first.batch).unwrap();
    }

    #[test]
    fn all_records_are_there_and_the_same() {
        let (from, to) = (filled(), memory());
        let (mut told, mut more) = (Vec::new(), Batch::new());
        more.put("copy", "is", "one");
        let done = transfer(&from, &to, more, &mut |stage| told.push(stage)).unwrap();
        assert_eq!(done.records, 2500);
        assert_eq!(summed(&to, &mut |_| {}).unwrap().records, 2501);
        let more: Option<Record> = to.read(|it| it.get("copy", b"is")).unwrap_or_default();
        assert_eq!(more.unwrap().value, "one");
        assert!(told.contains(&Stage::Copying(2500)), "{told:?}");
        assert!(!to.read(is_half_transferred).unwrap());
        let again = transfer(&from, &to, Batch::new(), &mut |_| {});
        assert!(matches!(again, Err(TransferError::NotEmpty)), "{again:?}");
    }

    #[test]
    fn what_was_cut_off_goes_on() {
        let (from, to) = (filled(), memory());
        cut_off(&from, &to);
        assert!(to.read(is_half_transferred).unwrap());
        let onward = transfer(&to, &memory(), Batch::new(), &mut |_| {});
        assert!(matches!(onward, Err(TransferError::HalfFrom)), "{onward:?}");
        let mut first = None;
        let done = transfer(&from, &to, Batch::new(), &mut |stage| {
            _ = first.get_or_insert(stage)
        })
        .unwrap();
        assert_eq!(done.records, 2500);
        assert!(matches!(first, Some(Stage::Copying(1..=1000))), "{first:?}");
    }

    #[test]
    fn a_copy_that_is_not_the_same_is_told() {
        let (from, to) = (filled(), memory());
        cut_off(&from, &to);
        let mut batch = Batch::new();
        batch.put("p0", 0_u32.to_be_bytes(), "changed");
        from.commit_blocking(batch).unwrap();
        let differs = transfer(&from, &to, Batch::new(), &mut |_| {});
        assert!(
            matches!(differs, Err(TransferError::Differs { .. })),
            "{differs:?}"
        );
        assert!(to.read(is_half_transferred).unwrap());
    }
}
