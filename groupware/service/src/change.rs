//! From a decision to a durable change: read a snapshot, decide, commit; repeat on a conflict.

use std::future::ready;
use std::sync::Arc;

use groupware_runtime::Caller;
use groupware_store::{Batch, CommitError, Snapshot, StoreError};

use crate::record_mutex::{RecordGuard, RecordMutex};
use crate::service::Service;

/// The maximum number of rounds before a change fails. A round with a conflict waits for the mutex
/// of the conflicting record, so this many conflicts need many records that others change at the
/// same time.
const ROUNDS: u32 = 16;
/// A batch of at least this size needs the mutex of its first record: a batch can be a thousand
/// times as large as its request, and only one should wait for the store.
const LARGE_BYTES: usize = 256 << 10;

/// The reason why a change failed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError<E> {
    /// The decision rejected it.
    #[error("{0}")]
    Decided(E),
    /// Others kept changing the same records.
    #[error("others kept changing the same records")]
    Contended,
    /// The store rejected it.
    #[error("the store did not take it")]
    Commit(#[source] CommitError),
}

/// Decides on a fresh snapshot and commits; repeats on a conflict.
///
/// After a conflict, the change waits for the mutex of the conflicting record; if the mutex of any
/// of its records is taken, it waits for that first. So two hundred replies to one meeting are two
/// hundred sequential commits, rather than two hundred concurrent ones of which one succeeds. No
/// change waits for a mutex with a batch in memory.
///
/// # Errors
/// Errors of the decision; [`ChangeError::Contended`] after 16 rounds with a conflict (`ROUNDS`); errors of the store.
pub async fn change<T, E: From<StoreError>>(
    service: &Service,
    caller: &Caller,
    decide: impl Fn(&dyn Snapshot) -> Result<(Batch, T), E>,
) -> Result<T, ChangeError<E>> {
    let decide = || ready(service.store().look(&decide));
    commit(service, caller, decide).await
}

/// The same for decisions that take long: they run in the background pool.
///
/// # Errors
/// As [`change`].
pub async fn change_aside<T, E>(
    service: &Service,
    caller: &Caller,
    decide: impl Fn(&dyn Snapshot) -> Result<(Batch, T), E> + Send + Sync + 'static,
) -> Result<T, ChangeError<E>>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let decide = Arc::new(decide);
    let decide = || {
        let decide = Arc::clone(&decide);
        service.read(caller, true, move |snapshot| decide(snapshot))
    };
    commit(service, caller, decide).await
}

async fn commit<T, E, D>(
    service: &Service,
    caller: &Caller,
    decide: impl Fn() -> D,
) -> Result<T, ChangeError<E>>
where
    D: Future<Output = Result<(Batch, T), E>>,
{
    let mut going: Option<RecordGuard> = None;
    for _ in 0..ROUNDS {
        let (batch, outcome) = decide().await.map_err(ChangeError::Decided)?;
        if batch.is_empty() {
            return Ok(outcome);
        }
        let lanes = RecordMutex::of_all(&batch);
        if going.is_none() {
            let first = lanes.first().filter(|_| batch.bytes() >= LARGE_BYTES);
            going = first.and_then(|lane| lane.try_enter());
        }
        let busy = lanes.iter().find(|lane| lane.is_taken());
        if let (None, Some(lane)) = (&going, busy) {
            drop((batch, outcome));
            going = Some(lane.enter().await);
            continue;
        }
        match service.commit(caller, batch).await {
            Ok(_) => return Ok(outcome),
            Err(CommitError::Conflict { index }) => {
                let Some(lane) = lanes.get(index) else {
                    continue;
                };
                drop(outcome);
                if !going.as_ref().is_some_and(|going| going.is(*lane)) {
                    // Release one mutex before waiting for another.
                    drop(going.take());
                    going = Some(lane.enter().await);
                }
            }
            Err(error) => return Err(ChangeError::Commit(error)),
        }
    }
    Err(ChangeError::Contended)
}

/// Decides and commits at low priority, and repeats on a conflict: for jobs.
///
/// # Errors
/// See [`ChangeError`].
pub(crate) fn patiently<T, E: From<StoreError>>(
    service: &Service,
    decide: impl Fn(&dyn Snapshot) -> Result<(Batch, T), E>,
) -> Result<T, ChangeError<E>> {
    const ROUNDS: u32 = 1_000;
    for _ in 0..ROUNDS {
        let decided = service.store().read(&decide);
        let (batch, outcome) = decided.map_err(ChangeError::Decided)?;
        if batch.is_empty() {
            return Ok(outcome);
        }
        match service.store().commit_patiently(batch) {
            Ok(_) => return Ok(outcome),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(ChangeError::Commit(error)),
        }
    }
    Err(ChangeError::Contended)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use bytes::Bytes;
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use crate::service::Settings;

    /// Values in memory, and their maximum so far.
    struct Live {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    /// The store's queue holds two batches of this size; a third waits.
    const HUGE_BYTES: usize = 100 << 20;
    /// Never read, so that it takes no memory.
    static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; HUGE_BYTES]);

    /// The value of a batch.
    struct Value(&'static Live, usize);

    impl Live {
        const fn new() -> Self {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            Self { now, most }
        }
    }

    impl Value {
        fn bytes(live: &'static Live, bytes: usize) -> Bytes {
            let now = live.now.fetch_add(1, Relaxed) + 1;
            live.most.fetch_max(now, Relaxed);
            Bytes::from_owner(Self(live, bytes))
        }
    }

    impl AsRef<[u8]> for Value {
        fn as_ref(&self) -> &[u8] {
            &ZEROS[..self.1]
        }
    }

    impl Drop for Value {
        fn drop(&mut self) {
            self.0.now.fetch_sub(1, Relaxed);
        }
    }

    fn state() -> Service {
        let store = Store::memory(StoreOptions::default()).unwrap();
        Service::start(store, Settings::default()).unwrap()
    }

    /// Rewrites a record with a value of this many bytes.
    async fn rewrite(state: &Service, key: &str, live: &'static Live, bytes: usize) {
        let caller = Caller::internal();
        let changed = change(state, &caller, |snapshot| {
            let found = snapshot.get("p", key.as_bytes())?;
            let mut batch = Batch::new();
            match found {
                Some(found) => batch.assert_revision("p", key, found.revision),
                None => batch.assert_absent("p", key),
            };
            batch.put("p", key, Value::bytes(live, bytes));
            Ok::<_, StoreError>((batch, ()))
        });
        changed.await.unwrap();
    }

    #[tokio::test]
    async fn who_waits_for_a_lane_has_no_batch_in_hand() {
        static LIVE: Live = Live::new();
        let state = state();
        let mut batch = Batch::new();
        batch.assert_absent("p", "lane");
        let taken = RecordMutex::of_all(&batch)[0].enter().await;
        let mut waiting = std::pin::pin!(rewrite(&state, "lane", &LIVE, 10));
        tokio::select! {
            biased;
            () = waiting.as_mut() => panic!("the lane is taken"),
            () = std::future::ready(()) => {}
        }
        assert_eq!((LIVE.now.load(Relaxed), LIVE.most.load(Relaxed)), (0, 1));
        drop(taken);
        waiting.await;
    }

    #[tokio::test]
    async fn large_batches_of_one_record_are_made_one_after_the_other() {
        static LIVE: Live = Live::new();
        let state = state();
        let mut changes = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let state = state.clone();
            changes.spawn(async move { rewrite(&state, "large", &LIVE, HUGE_BYTES).await });
        }
        while let Some(done) = changes.join_next().await {
            done.unwrap();
        }
        // One in the store's queue, one that finds the mutex taken, one that is stored.
        let most = LIVE.most.load(Relaxed);
        assert!(most <= 3, "{most}");
    }
}
