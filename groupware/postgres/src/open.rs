//! Opens a database as a store.

use std::sync::Arc;
use std::time::Duration;

use groupware_store::{Forms, Store, StoreError, StoreOptions};
use tokio::time::{sleep, timeout};

use crate::address::Database;
use crate::beside::Beside;
use crate::clock::Deadline;
use crate::error::{OpenError, Said, late};
use crate::fit::{check_server, check_store};
use crate::group::hash;
use crate::hosts::Hosts;
use crate::link::{Identity, Link, version};
use crate::pool::{Loop, NESTED, Pool};
use crate::session::{Role, Session};
use crate::sql;
use crate::writer::PostgresWriter;

/// Most sessions that read at once, unless said otherwise: the server has 100 in all as it comes.
const READERS: usize = 32;
/// How long the database is waited for, unless said otherwise: whoever finds it away is told so within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Stores on one database that shall have room beside each other, and connections that they leave to others.
const STORES: usize = 3;
const LEFT: usize = 10;
/// Fewest sessions that read, however little room there is.
const FEWEST: usize = 4;
/// Time between two looks whether another server has gone.
const PAUSE: Duration = Duration::from_millis(100);

/// How a database is used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Most sessions that read at once; a reader beyond that waits. One more writes.
    pub readers: usize,
    /// How long the server may stay without an answer: then reads and writes fail, for now.
    pub patience: Duration,
    /// Whether other stores may be open on the same database, in this process or others. Then a third of the
    /// database's connections is the most that this one takes.
    pub is_shared: bool,
    /// The forms of records that whoever opens it reads and writes; any, unless given.
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
    /// Sets the most sessions that read at once.
    #[must_use]
    pub fn readers(mut self, most: usize) -> Self {
        self.readers = most.max(1);
        self
    }

    /// Sets how long the server may stay without an answer.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Lets other stores be open on the same database.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Sets the forms of records that whoever opens it reads and writes.
    #[must_use]
    pub fn forms(mut self, forms: Forms) -> Self {
        self.forms = forms;
        self
    }
}

/// Opens the store in a database, which is made there if there is none. Blocks while it connects.
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
    // On a thread of its own: this one may belong to an event loop.
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

/// Sessions that read, beside one that writes, and others of other stores.
fn share_of(connections: usize) -> usize {
    (connections.saturating_sub(LEFT) / STORES)
        .saturating_sub(1 + NESTED)
        .max(FEWEST)
}

async fn link(
    (database, hosts): (&Database, &Arc<Hosts>),
    as_it_is: bool,
    how: &PostgresOptions,
) -> Result<(Link, Identity, usize), OpenError> {
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
    random.map_err(|error| away(StoreError::Database(Arc::new(Said(error.to_string())))))?;
    let identity = Identity {
        node: i64::from_le_bytes(bytes),
        site: hash(format!("plimsoll store {}", database.schema).as_bytes()).cast_signed(),
        is_alone: !how.is_shared,
        beside: Beside::new(&database.schema, how.forms),
    };
    claim(&session, database, (&identity, !as_it_is), how).await?;
    let link = Link::new(Arc::clone(hosts), identity, how.patience, session);
    Ok((link.await.map_err(away)?, identity, connections))
}

/// Waits until the store can be had, beside whom it may be.
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
    // A server that was killed leaves its lock as soon as the database's server has noticed.
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
