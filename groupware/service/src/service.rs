//! The state shared by all fronts: the store, users, quotas, background work, memory for responses,
//! the clock, and random bits.

use std::sync::Arc;
use std::time::Duration;

use groupware_auth::{AccountsError, Auth};
use groupware_net::{FairSemaphore, Gauge};
use groupware_people as people;
use groupware_runtime::blocking::BlockingPool;
use groupware_runtime::clock::{self, Clock};
use groupware_runtime::{Caller, random};
use groupware_store::{Batch, CommitError, Committed, Snapshot, Store, StoreError};

use crate::deliveries::{self, Deliveries};
use crate::quotas::Quotas;

/// The memory for large values that are read for responses, and the same for trusted clients.
const MEMORY_BYTES: [usize; 2] = [64 << 20, 256 << 20];

/// The settings of the service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The settings of users and authentication.
    pub auth: groupware_auth::Settings,
    /// The maximum bytes of the messages of one account.
    pub mail_quota_bytes: Option<u64>,
    /// The maximum bytes that a user stores: messages, meetings, documents, attachments, and pending uploads.
    pub quota_bytes: u64,
}

impl Default for Settings {
    /// A small server without an administrator.
    fn default() -> Self {
        Self {
            auth: groupware_auth::Settings::default(),
            mail_quota_bytes: None,
            quota_bytes: 2 << 30,
        }
    }
}

/// The usage of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of messages.
    pub mail_bytes: u64,
    /// Bytes of documents, attachments, and pending uploads.
    pub document_bytes: u64,
}

/// A handle on the state shared by all fronts.
#[derive(Debug, Clone)]
pub struct Service(Arc<Parts>);

/// The parts of a running service, shared by the threads of a server.
#[derive(Debug)]
pub struct Parts {
    store: Store,
    /// The users and their authentication.
    pub auth: Auth,
    pub(crate) quotas: Quotas,
    pub(crate) deliveries: Deliveries,
    /// The memory for large values that are read for responses, in KiB.
    memory: FairSemaphore,
    aside: BlockingPool,
    /// The pool for removing or moving very much in small batches, which takes long.
    clearing: BlockingPool,
    clock: Clock,
}

impl Service {
    /// Loads the accounts of a store, and starts the clock.
    ///
    /// # Errors
    /// If the accounts can't be read.
    pub fn start(store: Store, settings: Settings) -> Result<Self, AccountsError> {
        Ok(Self(Arc::new(Parts {
            auth: Auth::start(&store, &settings.auth)?,
            quotas: Quotas::new(
                store.clone(),
                (settings.quota_bytes, settings.mail_quota_bytes),
            ),
            deliveries: Deliveries::default(),
            memory: FairSemaphore::new(MEMORY_BYTES[0] >> 10).with_trusted(MEMORY_BYTES[1] >> 10),
            aside: BlockingPool::default(),
            clearing: BlockingPool::default(),
            clock: Clock::start(),
            store,
        })))
    }

    /// Removes the records of completed deliveries, which have no retries. Blocks.
    pub fn remove_answered(&self) {
        self.0.deliveries.remove_answered(&self.0.store);
    }

    /// Removes the records of uncompleted deliveries that are too old for a retry. Blocks.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn sweep_deliveries(&self) -> Result<(), StoreError> {
        deliveries::sweep(&self.0.store, self.now_s())
    }

    /// The store, for reads.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The maximum bytes that a user stores: messages, meetings, documents, attachments, and pending uploads.
    pub fn quota_bytes(&self) -> u64 {
        self.0.quotas.bytes()
    }

    /// The maximum bytes of the messages of one account.
    pub fn mail_quota_bytes(&self) -> Option<u64> {
        self.0.quotas.mail_bytes()
    }

    /// Replaces the quotas: for everything that a user stores, and for the messages of an account.
    pub fn set_quotas(&self, quota_bytes: u64, mail_quota_bytes: Option<u64>) {
        self.0.quotas.set((quota_bytes, mail_quota_bytes));
    }

    /// Takes bytes from the caller's allowance for writes to no user's quota, such as
    /// registrations. Writes to others' accounts use the same allowance.
    ///
    /// # Errors
    /// The time until the allowance is refilled, if it is too small.
    pub fn put_elsewhere(&self, caller: &Caller, bytes: u64) -> Result<(), Duration> {
        self.0.quotas.put_elsewhere(caller, bytes, self.uptime())
    }

    /// Returns the usage of a user by the counters.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn usage(&self, mailbox: &str) -> Result<Usage, StoreError> {
        self.0.store.read(|snapshot| {
            Ok(Usage {
                mail_bytes: groupware_mail::stored_bytes(snapshot, mailbox)?,
                document_bytes: groupware_documents::stored_bytes(snapshot, mailbox)?,
            })
        })
    }

    /// Returns the name of the user's time zone.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn zone(&self, mailbox: &str) -> Result<Option<String>, StoreError> {
        self.store()
            .read(|snapshot| people::zone(snapshot, mailbox))
    }

    /// Sets the user's time zone.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn choose_zone(
        &self,
        caller: &Caller,
        (mailbox, name): (&str, &str),
    ) -> Result<(), CommitError> {
        let batch = people::choose_zone(mailbox, name);
        self.commit(caller, batch).await.map(drop)
    }

    /// Whether other servers may change the same store.
    pub fn is_shared(&self) -> bool {
        self.0.auth.is_shared()
    }

    /// Commits a caller's batch; on the calling thread if that serves no other connection.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit(&self, caller: &Caller, batch: Batch) -> Result<Committed, CommitError> {
        match caller.may_block() {
            true => self.0.store.commit_here(batch).await,
            false => self.0.store.commit(batch).await,
        }
    }

    /// Waits for memory for a response of this size, and holds it until the response is sent.
    pub async fn make_room(&self, caller: &Caller, bytes: u64) {
        caller.keep(None);
        let units = usize::try_from(bytes.div_ceil(1 << 10)).unwrap_or(usize::MAX);
        let source = caller.source();
        let taken = self.0.memory.take(&source, units);
        let permit = caller.yield_until(taken).await;
        caller.keep(Some(permit));
    }

    /// Runs a function; if it is long, in the background pool under the caller's fair share.
    pub async fn work<T: Send + 'static>(
        &self,
        caller: &Caller,
        is_long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match is_long {
            true => self.0.aside.work(caller, work).await,
            false => work(),
        }
    }

    /// Runs a large removal or move under the caller's fair share, in a pool of its own, separate
    /// from other background work.
    pub(crate) async fn clear<T: Send + 'static>(
        &self,
        caller: &Caller,
        clear: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.0.clearing.work(caller, clear).await
    }

    /// Reads from one snapshot; if it is long, in the background pool under the caller's fair
    /// share.
    ///
    /// # Errors
    /// Errors of `read`, or the engine's failure to start the snapshot.
    pub async fn read<T, E>(
        &self,
        caller: &Caller,
        is_long: bool,
        read: impl FnOnce(&dyn Snapshot) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let store = self.0.store.clone();
        self.work(caller, is_long, move || store.read(read)).await
    }

    /// Returns the gauge of the background pool.
    pub fn aside_gauge(&self) -> Gauge {
        self.0.aside.gauge()
    }

    /// Returns the gauge of the pool for large removals and moves.
    pub fn clearing_gauge(&self) -> Gauge {
        self.0.clearing.gauge()
    }

    /// Returns the gauge of the memory for responses, in KiB.
    pub fn memory_gauge(&self) -> Gauge {
        self.0.memory.gauge()
    }

    /// Seconds since 1970.
    pub fn now_s(&self) -> i64 {
        clock::unix_seconds()
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        clock::unix_micros()
    }

    /// The time since the service started.
    pub fn uptime(&self) -> Duration {
        self.0.clock.now()
    }

    /// 128 random bits for identifiers.
    pub fn random_bits(&self) -> u128 {
        random::bits()
    }
}

impl std::ops::Deref for Service {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl AsRef<Service> for Service {
    fn as_ref(&self) -> &Service {
        self
    }
}
