//! What all fronts share: the store, who is who, quotas, turns of long work, memory for answers, the clock, and random
//! bits.

use std::sync::Arc;
use std::time::Duration;

use groupware_auth::{AccountsError, Auth};
use groupware_net::{Gauge, Pool};
use groupware_people as people;
use groupware_runtime::aside::Aside;
use groupware_runtime::clock::{self, Clock};
use groupware_runtime::{Caller, random};
use groupware_store::{Batch, CommitError, Committed, Snapshot, Store, StoreError};

use crate::deliveries::{self, Deliveries};
use crate::quotas::Quotas;

/// Memory for large things that are read to be answered with, and the same of those who are trusted.
const MEMORY_BYTES: [usize; 2] = [64 << 20, 256 << 20];

/// What the service needs to know of a server's configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Users, and how they sign in.
    pub auth: groupware_auth::Settings,
    /// Most bytes that the messages of one mailbox may have.
    pub mail_quota_bytes: Option<u64>,
    /// Most bytes that a user stores: messages, meetings, documents, attachments, and uploads under way.
    pub quota_bytes: u64,
}

impl Default for Settings {
    /// A small server whose administrator nobody is.
    fn default() -> Self {
        Self {
            auth: groupware_auth::Settings::default(),
            mail_quota_bytes: None,
            quota_bytes: 2 << 30,
        }
    }
}

/// What a user takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of messages.
    pub mail_bytes: u64,
    /// Bytes of documents, attachments, and uploads under way.
    pub document_bytes: u64,
}

/// A handle on what all fronts share.
#[derive(Debug, Clone)]
pub struct Service(Arc<Parts>);

/// The parts of a running service, shared by the threads of a server.
#[derive(Debug)]
pub struct Parts {
    store: Store,
    /// Who is who.
    pub auth: Auth,
    pub(crate) quotas: Quotas,
    pub(crate) deliveries: Deliveries,
    /// For large things that are read to be answered with, in KiB.
    memory: Pool,
    aside: Aside,
    /// For what removes or moves very much, a little at a time, and takes long at that.
    clearing: Aside,
    clock: Clock,
}

impl Service {
    /// Reads the accounts of a store; the clock starts now.
    ///
    /// # Errors
    /// When the accounts can't be read.
    pub fn start(store: Store, settings: Settings) -> Result<Self, AccountsError> {
        Ok(Self(Arc::new(Parts {
            auth: Auth::start(&store, &settings.auth)?,
            quotas: Quotas::new(
                store.clone(),
                (settings.quota_bytes, settings.mail_quota_bytes),
            ),
            deliveries: Deliveries::default(),
            memory: Pool::new(MEMORY_BYTES[0] >> 10).with_trusted(MEMORY_BYTES[1] >> 10),
            aside: Aside::default(),
            clearing: Aside::default(),
            clock: Clock::start(),
            store,
        })))
    }

    /// Removes the records of deliveries that were answered: nobody repeats them. Blocks.
    pub fn remove_answered(&self) {
        self.0.deliveries.remove_answered(&self.0.store);
    }

    /// Removes the records of deliveries that were never answered, and are too old to be repeated. Blocks.
    ///
    /// # Errors
    /// The store's.
    pub fn sweep_deliveries(&self) -> Result<(), StoreError> {
        deliveries::sweep(&self.0.store, self.now_s())
    }

    /// The store, to read from.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Most bytes that a user stores: messages, meetings, documents, attachments, and uploads under way.
    pub fn quota_bytes(&self) -> u64 {
        self.0.quotas.bytes()
    }

    /// Most bytes that the messages of one mailbox may have.
    pub fn mail_quota_bytes(&self) -> Option<u64> {
        self.0.quotas.mail_bytes()
    }

    /// Has other quotas hold from now on: for all that a user stores, and for the messages of a mailbox.
    pub fn set_quotas(&self, quota_bytes: u64, mail_quota_bytes: Option<u64>) {
        self.0.quotas.set((quota_bytes, mail_quota_bytes));
    }

    /// Takes so many bytes from what a caller may put where they count in nobody's share of the disk, as
    /// registrations do. It is the same that the caller may put into others' mailboxes.
    ///
    /// # Errors
    /// The time after which there are so many, if there aren't now.
    pub fn put_elsewhere(&self, caller: &Caller, bytes: u64) -> Result<(), Duration> {
        self.0.quotas.put_elsewhere(caller, bytes, self.uptime())
    }

    /// What a user takes, as it is counted.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn usage(&self, mailbox: &str) -> Result<Usage, StoreError> {
        self.0.store.read(|snapshot| {
            Ok(Usage {
                mail_bytes: groupware_mail::stored_bytes(snapshot, mailbox)?,
                document_bytes: groupware_documents::stored_bytes(snapshot, mailbox)?,
            })
        })
    }

    /// The name of the time zone that a user chose.
    ///
    /// # Errors
    /// The store's.
    pub fn zone(&self, mailbox: &str) -> Result<Option<String>, StoreError> {
        self.store()
            .read(|snapshot| people::zone(snapshot, mailbox))
    }

    /// Makes the zone of this name the user's.
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

    /// Commits what a caller changes; on the calling thread, if that serves nobody else.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit(&self, caller: &Caller, batch: Batch) -> Result<Committed, CommitError> {
        match caller.may_block() {
            true => self.0.store.commit_here(batch).await,
            false => self.0.store.commit(batch).await,
        }
    }

    /// Waits until the caller may read so many bytes to make an answer of, and keeps them for it until that
    /// is on its way.
    pub async fn make_room(&self, caller: &Caller, bytes: u64) {
        caller.keep(None);
        let units = usize::try_from(bytes.div_ceil(1 << 10)).unwrap_or(usize::MAX);
        let source = caller.source();
        let taken = self.0.memory.take(&source, units);
        let permit = caller.give_way(taken).await;
        caller.keep(Some(permit));
    }

    /// Does something, and what takes long in the caller's turn, apart from whoever else is served.
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

    /// Removes or moves very much in the caller's turn, apart from whoever else is served, and from what is
    /// worked on for others meanwhile.
    pub(crate) async fn clear<T: Send + 'static>(
        &self,
        caller: &Caller,
        clear: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.0.clearing.work(caller, clear).await
    }

    /// Reads from one snapshot, and what takes long to read in the caller's turn, apart from whoever else is
    /// served.
    ///
    /// # Errors
    /// What `read` returns, or the engine's failure to start the snapshot.
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

    /// Looks into the turns of such work.
    pub fn aside_gauge(&self) -> Gauge {
        self.0.aside.gauge()
    }

    /// Looks into the turns of removing or moving very much.
    pub fn clearing_gauge(&self) -> Gauge {
        self.0.clearing.gauge()
    }

    /// Looks into the memory for what is read to be answered with, in KiB.
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

    /// 128 random bits, to make identifiers from.
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
