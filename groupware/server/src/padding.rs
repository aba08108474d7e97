//! Filler that makes a mailbox as large as a study wants it.

use std::sync::Arc;

use groupware_store::{Batch, CommitError, Store, StoreError};

/// Keys of filler begin with this; those of the domain crates never do.
const PREFIX: &[u8] = b"pad/";
/// The first key after all filler: `0` follows `/`.
const AFTER: &[u8] = b"pad0";
/// Beyond every key: those of the domain crates begin with ASCII.
const END: &[u8] = &[0xFF];

const RECORD_BYTES: usize = 64 << 10;
const BATCH_BYTES: u64 = 4 << 20;
/// Most filler of one mailbox.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// Has the batch delete what a mailbox holds besides filler.
pub(crate) fn delete_all_but(batch: &mut Batch, mailbox: &Arc<str>) {
    batch
        .delete_range(Arc::clone(mailbox), "", PREFIX)
        .delete_range(Arc::clone(mailbox), AFTER, END);
}

/// Writes what a mailbox has less than `bytes` of filler. The content doesn't compress, so that a
/// file system that compresses has the same work with it as with mail.
pub(crate) async fn fill(store: &Store, mailbox: &Arc<str>, bytes: u64) -> Result<(), CommitError> {
    let mut written = present(store, mailbox, bytes)?;
    let mut noise = blake3::Hasher::new()
        .update(mailbox.as_bytes())
        .finalize_xof();
    noise.set_position(written);
    while written < bytes {
        let mut batch = Batch::new();
        let end = bytes.min(written + BATCH_BYTES);
        while written < end {
            let rest = usize::try_from(end - written).unwrap_or(RECORD_BYTES);
            let mut value = vec![0; rest.min(RECORD_BYTES)];
            noise.fill(&mut value);
            let key = key(written);
            written += value.len() as u64;
            batch.put(Arc::clone(mailbox), key, value);
        }
        store.commit(batch).await?;
    }
    Ok(())
}

/// How much of the filler is there. It is written in order and in whole batches: if a batch's
/// first record is there, all before it are, and those with it.
fn present(store: &Store, mailbox: &str, bytes: u64) -> Result<u64, StoreError> {
    if bytes == 0 {
        return Ok(0);
    }
    store.read(|snapshot| {
        let has = |batch: u64| {
            Ok::<_, StoreError>(snapshot.get(mailbox, &key(batch * BATCH_BYTES))?.is_some())
        };
        let (mut there, mut missing) = (0, bytes.div_ceil(BATCH_BYTES));
        // New mailboxes and full ones, which most are, take one look or two.
        if !has(0)? {
            return Ok(0);
        }
        if has(missing - 1)? {
            return Ok(bytes);
        }
        while missing - there > 1 {
            let middle = there.midpoint(missing);
            match has(middle)? {
                true => there = middle,
                false => missing = middle,
            }
        }
        Ok((missing * BATCH_BYTES).min(bytes))
    })
}

fn key(at: u64) -> Vec<u8> {
    [PREFIX, &at.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use groupware_store::StoreOptions;

    use super::*;

    #[test]
    fn filler_has_the_size_and_outlives_a_reset() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let mailbox: Arc<str> = "ada".into();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let size = BATCH_BYTES + RECORD_BYTES as u64 + 7;
        runtime.block_on(async {
            fill(&store, &mailbox, size).await.unwrap();
            let mut batch = Batch::new();
            for key in ["a", "c/1", "pad", "pad0", "z"] {
                batch.put("ada", key, "");
            }
            store.commit(batch).await.unwrap();
            let mut reset = Batch::new();
            delete_all_but(&mut reset, &mailbox);
            store.commit(reset).await.unwrap();
        });
        let (mut bytes, mut others) = (0, 0);
        let scan = store.read(|snapshot| {
            snapshot.scan("ada", b"", None, usize::MAX, &mut |key, record| {
                bytes += record.value.len() as u64;
                others += usize::from(!key.starts_with(PREFIX));
                ControlFlow::Continue(())
            })
        });
        scan.map_err(|error: StoreError| error).unwrap();
        assert_eq!((bytes, others), (size, 0));
    }

    #[test]
    fn filler_is_made_up_where_it_is_short() {
        let mailbox: Arc<str> = "ada".into();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let records = |store: &Store| {
            let mut records = Vec::new();
            let scan = store.read(|snapshot| {
                snapshot.scan("ada", b"", None, usize::MAX, &mut |key, record| {
                    records.push((key.to_vec(), record));
                    ControlFlow::Continue(())
                })
            });
            scan.map_err(|error: StoreError| error).unwrap();
            records
        };
        let size = 4 * BATCH_BYTES + 7;
        let whole = Store::memory(StoreOptions::default()).unwrap();
        runtime.block_on(fill(&whole, &mailbox, size)).unwrap();
        let whole = records(&whole);
        for batches in 0..=5 {
            let store = Store::memory(StoreOptions::default()).unwrap();
            let part = size.min(batches * BATCH_BYTES);
            runtime.block_on(fill(&store, &mailbox, part)).unwrap();
            let before = records(&store);
            runtime.block_on(fill(&store, &mailbox, size)).unwrap();
            let after = records(&store);
            assert_eq!(after[..before.len()], before, "what is there stays");
            let content = |records: &[(Vec<u8>, groupware_store::Record)]| -> Vec<_> {
                let pairs = records.iter();
                pairs
                    .map(|(key, record)| (key.clone(), record.value.clone()))
                    .collect()
            };
            assert!(content(&after) == content(&whole), "{batches}");
        }
    }
}
