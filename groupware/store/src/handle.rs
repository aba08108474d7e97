//! The store's public handle. Reads run on the caller's thread. Writes go through the queue, or run on the caller's
//! thread if the writer is idle and the thread may block.

use std::path::Path;
use std::sync::{Arc, Mutex as BlockingMutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc, oneshot};

use crate::cache::{Cache, Remembered};
use crate::engine::{Engine, Outcome, Writer};
use crate::life::{Condition, Life};
use crate::stats::Counters;
use crate::writer::{self, Job, Removals, WriterSlot};
use crate::{
    Batch, CommitError, Committed, OpenError, Snapshot, StoreError, StoreOptions, StoreStats,
};
use crate::{memory, sqlite};

/// The maximum number of batches that wait for the writer; further callers wait for room.
pub const QUEUE_BATCHES: usize = 4096;
/// The maximum bytes of large batches (64 KiB or more) in progress; further callers wait.
pub const QUEUE_LARGE_BYTES: usize = 256 << 20;
const LARGE_BATCH_BYTES: usize = 64 << 10;
/// The unit in which large batches are counted, so that the count fits a semaphore's permits.
const LARGE_UNIT_BYTES: usize = 1 << 10;

/// A store of records. Clones are handles of the same store, which ends with [`Store::close`] or with its last handle.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    /// Taken when the last handle is dropped, so that the writer sees the end of its queue.
    queue: Option<mpsc::Sender<Job>>,
    writer: OnceLock<JoinHandle<()>>,
    engine: Box<dyn Engine>,
    cache: Option<Arc<Cache>>,
    large: Semaphore,
    place: Arc<Mutex<WriterSlot>>,
    /// Held by the caller that has a low-priority batch in progress.
    patient: BlockingMutex<()>,
    removals: Arc<Removals>,
    counters: Arc<Counters>,
    life: Arc<Life>,
}

impl Store {
    /// Opens the SQLite store in `folder`, which is created if it doesn't exist. Only the user of this process may read
    /// a created folder and the store's files.
    ///
    /// # Errors
    /// When another process holds the folder, when its file isn't a store or is of a later version, or when the disk
    /// fails.
    pub fn open_sqlite(folder: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let (engine, writer) = sqlite::open(folder, &options)?;
        Self::over(engine, writer, &options).map_err(|source| OpenError::Database {
            file: folder.join(sqlite::FILE_NAME),
            source,
        })
    }

    /// Opens a store that lives in memory and ends with its last handle. Its transactions are those of the SQLite
    /// store, but nothing is durable.
    ///
    /// # Errors
    /// When the writer thread can't be started.
    pub fn memory(options: StoreOptions) -> Result<Self, StoreError> {
        let (engine, writer) = memory::open(&options);
        Self::over(engine, writer, &options)
    }

    /// Builds a store over an engine and starts the writer thread.
    ///
    /// # Errors
    /// When the writer thread can't be started.
    pub fn over(
        engine: impl Engine + 'static,
        writer: impl Writer + 'static,
        options: &StoreOptions,
    ) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE_BATCHES);
        let life = Arc::new(Life::new(options.slow_commit));
        let remembered = options.remembered.filter(|_| engine.is_alone());
        let cache = remembered.map(|it| Arc::new(Cache::new(it.prefix, it.bytes)));
        let removals = Arc::new(Removals::default());
        let place = WriterSlot::new(
            Box::new(writer),
            Arc::clone(&life),
            cache.clone(),
            Arc::clone(&removals),
        );
        let place = Arc::new(Mutex::new(place));
        let counters = Arc::new(Counters::default());
        let inner = Arc::new(Inner {
            queue: Some(queue),
            writer: OnceLock::new(),
            engine: Box::new(engine),
            cache,
            large: Semaphore::new(QUEUE_LARGE_BYTES / LARGE_UNIT_BYTES),
            place: Arc::clone(&place),
            patient: BlockingMutex::default(),
            removals,
            counters: Arc::clone(&counters),
            life,
        });
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer::run(&place, jobs, &counters))
            .map_err(|error| StoreError::Thread(Arc::new(error)))?;
        inner
            .writer
            .set(writer)
            .expect("the writer is set once, here");
        Ok(Self { inner })
    }

    /// Reads within one consistent snapshot, on the calling thread.
    ///
    /// # Errors
    /// What `read` returns, or the engine's failure to start the snapshot.
    pub fn read<T, E: From<StoreError>>(
        &self,
        read: impl FnOnce(&dyn Snapshot) -> Result<T, E>,
    ) -> Result<T, E> {
        read(&*self.inner.engine.snapshot()?)
    }

    /// As [`Store::read`], but records may come from the cache ([`StoreOptions::remember`]). If concurrent writes
    /// change records that were already read, the read is repeated from the beginning, and only the last run counts.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn look<T, E: From<StoreError>>(
        &self,
        read: impl Fn(&dyn Snapshot) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(cache) = &self.inner.cache else {
            return self.read(read);
        };
        let remembered = Remembered::new(cache, &*self.inner.engine);
        let found = read(&remembered);
        remembered.count();
        match remembered.is_torn() {
            true => self.read(read),
            false => found,
        }
    }

    /// Sends a batch to the writer and waits until it is durable. If the caller stops waiting, the batch may still take
    /// effect.
    ///
    /// # Errors
    /// See [`CommitError`]; on every error, the batch has not taken effect in part.
    pub async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let bytes = batch.checked_bytes().ok_or(CommitError::TooLarge)?;
        let _room = self.room(bytes).await?;
        let (job, answer) = job(batch, false);
        self.queue()
            .send(job)
            .await
            .map_err(|_| CommitError::Closed)?;
        answer.await.map_err(|_| CommitError::Closed)?
    }

    /// As [`Store::commit`], for a thread whose other tasks, if any, may wait for the disk. If the writer is idle, this
    /// thread writes in its place, which saves waking two threads.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn commit_here(&self, batch: Batch) -> Result<Committed, CommitError> {
        batch.checked_bytes().ok_or(CommitError::TooLarge)?;
        match self.write(&batch) {
            Some(outcome) => outcome,
            None => self.commit(batch).await,
        }
    }

    /// As [`Store::commit_here`], for a thread that runs no asynchronous tasks. The number of threads that wait here
    /// bounds the large batches.
    ///
    /// # Errors
    /// As [`Store::commit`].
    ///
    /// # Panics
    /// When it has to wait for other writers within an asynchronous task.
    pub fn commit_blocking(&self, batch: Batch) -> Result<Committed, CommitError> {
        batch.checked_bytes().ok_or(CommitError::TooLarge)?;
        if let Some(outcome) = self.write(&batch) {
            return outcome;
        }
        let (job, answer) = job(batch, false);
        self.queue()
            .blocking_send(job)
            .map_err(|_| CommitError::Closed)?;
        answer.blocking_recv().map_err(|_| CommitError::Closed)?
    }

    /// As [`Store::commit_blocking`], for low-priority work. The batch yields to other batches for a bounded time. Only
    /// one such batch is in progress at a time, so other callers wait for at most one.
    ///
    /// # Errors
    /// As [`Store::commit`].
    ///
    /// # Panics
    /// When called from within an asynchronous task.
    pub fn commit_patiently(&self, batch: Batch) -> Result<Committed, CommitError> {
        batch.checked_bytes().ok_or(CommitError::TooLarge)?;
        let patient = &self.inner.patient;
        let _turn = patient.lock().unwrap_or_else(PoisonError::into_inner);
        let (job, answer) = job(batch, true);
        self.queue()
            .blocking_send(job)
            .map_err(|_| CommitError::Closed)?;
        answer.blocking_recv().map_err(|_| CommitError::Closed)?
    }

    /// Begins a large removal: no space is returned to the disk until the returned guard is dropped.
    pub(crate) fn removing(&self) -> Removing<'_> {
        self.inner.removals.begin();
        Removing(self)
    }

    /// Writes the queued batches, then ends the writer. Later commits fail with [`CommitError::Closed`]. Reads work
    /// until the last handle is dropped; only then can another store open the folder.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue().send(Job::Close { done }).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// As [`Store::close`], for a thread that runs no asynchronous tasks.
    ///
    /// # Panics
    /// When called from within an asynchronous task.
    pub fn close_blocking(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue().blocking_send(Job::Close { done }).is_ok() {
            let _ = closed.blocking_recv();
        }
    }

    /// The bytes that records and their index take, free pages included.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn data_bytes(&self) -> Result<u64, StoreError> {
        self.inner.engine.data_bytes()
    }

    /// Returns true if the disk has only the reserve left that is kept for removals, flags, and moves. The store itself
    /// still accepts more; the server refuses new content of users.
    pub fn is_short_of_room(&self) -> bool {
        self.inner.engine.is_short_of_room()
    }

    /// Checks all pages and the index and returns one sentence for each problem. Takes as long as reading everything.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.inner.engine.check()
    }

    /// Returns the writer's counters.
    pub fn stats(&self) -> StoreStats {
        let queue = self.queue();
        let waiting = queue.max_capacity() - queue.capacity();
        let stats = self.inner.counters.read(waiting as u64);
        let looks = self.inner.cache.as_ref().map(|cache| cache.looks());
        let (looks, looks_remembered) = looks.unwrap_or_default();
        StoreStats {
            pending_bytes: self.inner.engine.pending_bytes(),
            looks,
            looks_remembered,
            ..stats
        }
    }

    /// Returns the store's health: whether the writer lives, and whether the disk accepts its writes.
    pub fn condition(&self) -> Condition {
        self.inner.life.condition()
    }

    /// Waits until the writer is dead. The writer dies only by a panic.
    pub async fn died(&self) {
        self.inner.life.died().await;
    }

    /// Logs transactions that take at least this long, from now on.
    pub fn note_slow_commits(&self, slow: Duration) {
        self.inner.life.set_slow(slow);
    }

    /// Commits on this thread if no other batch is written or queued.
    fn write(&self, batch: &Batch) -> Option<Outcome> {
        if self.queue().capacity() < self.queue().max_capacity() {
            return None;
        }
        let mut place = self.inner.place.try_lock().ok()?;
        if !place.can_be_lent() {
            return None;
        }
        let (outcome, wants_tending) = place.commit(batch, &self.inner.counters);
        drop(place);
        if wants_tending {
            // If the queue is full, the writer does the housekeeping after those batches anyway.
            let _ = self.queue().try_send(Job::Tend);
        }
        Some(outcome)
    }

    fn queue(&self) -> &mpsc::Sender<Job> {
        self.inner
            .queue
            .as_ref()
            .expect("the queue is taken only when the last handle is dropped")
    }

    async fn room(&self, bytes: usize) -> Result<Option<SemaphorePermit<'_>>, CommitError> {
        if bytes < LARGE_BATCH_BYTES {
            return Ok(None);
        }
        let permit = self.inner.large.acquire_many(large_units(bytes)).await;
        permit.map(Some).map_err(|_| CommitError::Closed)
    }
}

fn job(batch: Batch, is_patient: bool) -> (Job, oneshot::Receiver<Outcome>) {
    let (reply, answer) = oneshot::channel();
    let job = Job::Commit {
        batch,
        reply,
        is_patient,
    };
    (job, answer)
}

fn large_units(bytes: usize) -> u32 {
    u32::try_from(bytes / LARGE_UNIT_BYTES).expect("a batch is bounded by MAX_BATCH_BYTES")
}

/// The guard of a large removal.
pub(crate) struct Removing<'a>(&'a Store);

impl Drop for Removing<'_> {
    fn drop(&mut self) {
        self.0.inner.removals.end();
        // The writer checks for space to return; if the queue is full, it does so anyway.
        let _ = self.0.queue().try_send(Job::Tend);
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("engine", &self.inner.engine.name())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A panic of the writer was reported when it occurred.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use plimsoll_tests::wait_until;

    use super::*;
    use crate::Op;

    /// An engine that panics on the first write.
    struct Panics;

    impl Writer for Panics {
        fn commit(&mut self, _: &[&Batch], _: &mut Vec<Outcome>) {
            panic!("a test asks for it");
        }
    }

    /// The calls that an engine received.
    #[derive(Default)]
    struct Calls {
        /// The first keys of batches, by group.
        groups: BlockingMutex<Vec<Vec<String>>>,
        idle: AtomicUsize,
    }

    /// An engine that records its calls and ends each commit on a signal, or when the sender is dropped.
    struct Notes(Arc<Calls>, Receiver<()>);

    impl Writer for Notes {
        fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
            let key = |batch: &&Batch| match &batch.ops[0] {
                Op::Put { key, .. } => String::from_utf8_lossy(key).into_owned(),
                op => panic!("{op:?}"),
            };
            let mut keys: Vec<_> = group.iter().map(key).collect();
            keys.sort();
            self.0.groups.lock().unwrap().push(keys);
            let _ = self.1.recv();
            outcomes.extend(group.iter().map(|_| Ok(Committed { revision: 1 })));
        }

        fn wants_idle_work(&self) -> bool {
            !self.0.groups.lock().unwrap().is_empty() && self.0.idle.load(Relaxed) == 0
        }

        fn work_idly(&mut self) {
            self.0.idle.fetch_add(1, Relaxed);
        }
    }

    fn noting() -> (Store, Arc<Calls>, SyncSender<()>) {
        let options = StoreOptions::default();
        let (engine, _) = memory::open(&options);
        let (go_on, waits) = sync_channel(1);
        let noted = Arc::new(Calls::default());
        let writer = Notes(Arc::clone(&noted), waits);
        (Store::over(engine, writer, &options).unwrap(), noted, go_on)
    }

    fn put(key: &str) -> Batch {
        let mut batch = Batch::new();
        batch.put("p", key, "v");
        batch
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_patient_batch_lets_others_go_first_and_alone() {
        let (store, noted, go_on) = noting();
        let wait = |waiting: u64| {
            wait_until(LIMIT, "batches wait", || {
                store.stats().waiting == waiting && !noted.groups.lock().unwrap().is_empty()
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // On the writer's thread, so that the other batches wait in the queue.
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                let first = store.commit(put("first"));
                runtime.unwrap().block_on(first).unwrap();
            });
            wait(0);
            scope.spawn(|| store.commit_patiently(put("patient")).unwrap());
            wait(1);
            scope.spawn(|| store.commit_blocking(put("a")).unwrap());
            scope.spawn(|| store.commit_blocking(put("b")).unwrap());
            wait(3);
            drop(go_on);
        });
        let groups = noted.groups.lock().unwrap().clone();
        assert_eq!(groups, [vec!["first"], vec!["a", "b"], vec!["patient"]]);
    }

    #[test]
    fn room_is_given_back_after_a_removal_not_between() {
        let (store, noted, go_on) = noting();
        drop(go_on);
        let removing = (store.removing(), store.removing());
        for number in 0..20 {
            store.commit_blocking(put("lent")).unwrap();
            store.commit_patiently(put(&number.to_string())).unwrap();
        }
        drop(removing.0);
        store.commit_patiently(put("more")).unwrap();
        assert_eq!(noted.idle.load(Relaxed), 0);
        drop(removing.1);
        wait_until(LIMIT, "room is given back", || {
            noted.idle.load(Relaxed) == 1
        });
    }

    fn doomed() -> Store {
        let options = StoreOptions::default();
        let (engine, _) = memory::open(&options);
        Store::over(engine, Panics, &options).unwrap()
    }

    fn batch() -> Batch {
        let mut batch = Batch::new();
        batch.put("p", "k", "v");
        batch
    }

    #[tokio::test]
    async fn whoever_watches_learns_of_the_writers_death() {
        let store = doomed();
        assert!(!store.condition().is_dead);
        let outcome = store.commit(batch()).await;
        assert!(matches!(outcome, Err(CommitError::Closed)), "{outcome:?}");
        store.died().await;
        assert!(store.condition().is_dead);
        // Every kind of caller gets an error instead of waiting forever.
        assert!(matches!(
            store.commit(batch()).await,
            Err(CommitError::Closed)
        ));
        let here = store.commit_here(batch()).await;
        assert!(matches!(here, Err(CommitError::Closed)));
        store.close().await;
    }

    #[tokio::test]
    async fn who_panics_in_the_writers_place_ends_it_too() {
        let store = doomed();
        let panicking = store.clone();
        let panicked = tokio::spawn(async move { panicking.commit_here(batch()).await });
        assert!(panicked.await.unwrap_err().is_panic());
        store.died().await;
        assert!(matches!(
            store.commit(batch()).await,
            Err(CommitError::Closed)
        ));
    }

    #[tokio::test]
    async fn a_closed_store_is_not_dead() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        store.commit(batch()).await.unwrap();
        store.close().await;
        assert!(matches!(
            store.commit(batch()).await,
            Err(CommitError::Closed)
        ));
        let condition = store.condition();
        let idle = Condition {
            is_dead: false,
            refusal: None,
            busy_for: None,
        };
        assert_eq!(condition, idle);
    }

    #[tokio::test]
    async fn a_disk_that_refuses_is_noted_until_it_takes_writes_again() {
        let store = Store::memory(StoreOptions::default().quota_bytes(1000)).unwrap();
        let put = |key: &str, bytes: usize| {
            let mut batch = Batch::new();
            batch.put("p", key, vec![0; bytes]);
            batch
        };
        assert!(store.commit(put("large", 2000)).await.is_err());
        assert!(store.condition().refusal.is_some());
        store.commit(put("small", 10)).await.unwrap();
        assert_eq!(store.condition().refusal, None);
        assert_eq!(store.stats().group_times.iter().sum::<u64>(), 2);
    }
}
