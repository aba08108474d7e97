//! Filler that makes a mailbox as large as a study wants it.

use std::sync::Arc;

use groupware_store::{Batch, CommitError, Store};

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

/// Writes `bytes` of filler into a mailbox. The content doesn't compress, so that a file system
/// that compresses has the same work with it as with mail.
pub(crate) async fn fill(store: &Store, mailbox: &Arc<str>, bytes: u64) -> Result<(), CommitError> {
    let mut noise = blake3::Hasher::new()
        .update(mailbox.as_bytes())
        .finalize_xof();
    let mut written = 0;
    while written < bytes {
        let mut batch = Batch::new();
        let end = bytes.min(written + BATCH_BYTES);
        while written < end {
            let rest = usize::try_from(end - written).unwrap_or(RECORD_BYTES);
            let mut value = vec![0; rest.min(RECORD_BYTES)];
            noise.fill(&mut value);
            let key = [PREFIX, &written.to_be_bytes()].concat();
            written += value.len() as u64;
            batch.put(Arc::clone(mailbox), key, value);
        }
        store.commit(batch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use groupware_store::{StoreError, StoreOptions};

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
}
