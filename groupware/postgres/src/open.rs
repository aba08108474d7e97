//! Opens a database as a store.

use std::sync::Arc;
use std::time::Duration;

use groupware_store::{Forms, Store, StoreError, StoreOptions};
use tokio::time::{sleep, timeout};

use crate::address::Database;
use crate::clock::Deadline;
use crate::error::{MessageError, OpenError, late};
use crate::fit::{check_server, check_store};
use crate::format_locks::FormatLocks;
use crate::group::hash;
use crate::hosts::Hosts;
use crate::pool::{Loop, NESTED, Pool};
use crate::session::{Role, Session};
use crate::sql;
use crate::writer::PostgresWriter;
use crate::writer_connection::{Identity, WriterConnection, version};

/// The default for the maximum number of reading sessions: the server allows 100 in all by default.
const READERS: usize = 32;
/// The default for the maximum wait: callers get an error for an unavailable database within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of stores that must fit on one database, and the connections reserved for other clients.
const STORES: usize = 3;
const LEFT: usize = 10;
/// The minimum number of reading sessions.
const FEWEST: usize = 4;
/// The time between two attempts to claim the store.
const PAUSE: Duration = Duration::from_millis(100);

/// The settings for using a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The maximum number of concurrent reading sessions; further readers wait. There is one more session for writes.
    pub readers: usize,
    /// The maximum wait for a response: after it, reads and writes fail temporarily.
    pub patience: Duration,
    /// Whether other stores may be open on the same database, in this process or others. This store
    /// then takes at most a third of the database's connections.
    pub is_shared: bool,
    /// The record formats that the server reads and writes; any by default.
    pub forms: Forms,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            readers: READERS,
            patience: PATIENCE,
            is_shared: false,
            forms: Forms::ANY,
        }
    }
}

impl PostgresOptions {
    /// Sets the maximum number of concurrent reading sessions.
    #[must_use]
    pub fn readers(mut self, most: usize) -> Self {
        self.readers = most.max(1);
        self
    }

    /// Sets the maximum wait for a response.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Allows other stores on the same database.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Sets the record formats that the server reads and writes.
    #[must_use]
    pub fn forms(mut self, forms: Forms) -> Self {
        self.forms = forms;
        self
    }
}

/// Opens the store in a database, and creates it if it is missing. Blocks while it connects.
///
/// # Errors
/// See [`OpenError`].
pub fn open(
    database: &Database,
    options: &StoreOptions,
    how: &PostgresOptions,
) -> Result<Store, OpenError> {
    let at = || database.to_string();
    let away = |source| OpenError::Away { at: at(), source };
    let io = |error| away(StoreError::Thread(Arc::new(error)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io)?;
    let hosts = Arc::new(Hosts::of(database));
    // On a separate thread: this one may run an event loop.
    let (runtime, opened) = std::thread::scope(|scope| {
        let (hosts, options, how) = (&hosts, &options, &how);
        let opening = scope.spawn(move || {
            let opened = runtime.block_on(link((database, hosts), options.as_it_is, how));
            (runtime, opened)
        });
        opening.join().expect("opening a database does not panic")
    });
    let (link, identity, connections) = opened?;
    let readers = match how.is_shared {
        true => how.readers.min(share_of(connections)),
        false => how.readers,
    };
    let writer = PostgresWriter::new(runtime, link);
    let event_loop = Loop::start().map_err(io)?;
    let pool = Pool::new((hosts, identity), (readers, how.patience), event_loop);
    Store::over(pool, writer, options).map_err(away)
}

/// Returns the number of reading sessions, besides the writing one and those of other stores.
fn share_of(connections: usize) -> usize {
    (connections.saturating_sub(LEFT) / STORES)
        .saturating_sub(1 + NESTED)
        .max(FEWEST)
}

async fn link(
    (database, hosts): (&Database, &Arc<Hosts>),
    as_it_is: bool,
    how: &PostgresOptions,
) -> Result<(WriterConnection, Identity, usize), OpenError> {
    let away = |source| OpenError::Away {
        at: database.to_string(),
        source,
    };
    let session = timeout(
        how.patience,
        Session::open(hosts, Role::Writer, how.patience),
    )
    .await;
    let session = session.unwrap_or_else(|_| Err(late())).map_err(away)?;
    let connections = check_server(&session, database).await?;
    check_store(&session, database, as_it_is).await?;
    let mut bytes = [0; 8];
    let random = getrandom::fill(&mut bytes);
    random.map_err(|error| {
        away(StoreError::Database(Arc::new(MessageError(
            error.to_string(),
        ))))
    })?;
    let identity = Identity {
        node: i64::from_le_bytes(bytes),
        site: hash(format!("plimsoll store {}", database.schema).as_bytes()).cast_signed(),
        is_alone: !how.is_shared,
        beside: FormatLocks::new(&database.schema, how.forms),
    };
    claim(&session, database, (&identity, !as_it_is), how).await?;
    let link = WriterConnection::new(Arc::clone(hosts), identity, how.patience, session);
    Ok((link.await.map_err(away)?, identity, connections))
}

/// Waits until the store can be claimed beside the servers that use it.
async fn claim(
    session: &Session,
    database: &Database,
    (identity, may_change): (&Identity, bool),
    how: &PostgresOptions,
) -> Result<(), OpenError> {
    let at = || database.to_string();
    let away = |source| OpenError::Away { at: at(), source };
    let beside = &identity.beside;
    let deadline = Deadline::after(how.patience);
    beside.read_by(session, database).await?;
    // The lock of a killed server is released as soon as the database's server notices.
    while !identity.claim(session, may_change).await.map_err(away)? {
        if deadline.is_over() {
            let is_old = version(session).await.map_err(away)? == sql::SILENT_VERSION;
            return Err(match is_old && how.is_shared {
                true => OpenError::InUseByOlder { at: at() },
                false => OpenError::InUse { at: at() },
            });
        }
        sleep(PAUSE).await;
    }
    while !beside.raise(session).await.map_err(away)? {
        if deadline.is_over() {
            return Err(OpenError::InUseByOlder { at: at() });
        }
        sleep(PAUSE).await;
    }
    beside.read_by(session, database).await
}
