//! One connection to the server, set up so that what it says can be relied on.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

use crate::error::{Said, kind, late, of_hosts};
use crate::hosts::Hosts;
use crate::sql;
use crate::tls::Tls;

/// How long a transaction that writes may stand still before the server ends it: whoever holds locks and is
/// gone, or sleeps, keeps nobody waiting for longer.
const IDLE_WRITER: Duration = Duration::from_secs(10);
/// The same of one that reads, which holds up nobody, but keeps what was deleted since.
const IDLE_READER: Duration = Duration::from_secs(3600);

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// A connection that is being driven by the event loop that it was made on.
///
/// It ends with this value, whatever it still waits for: then the server undoes what was not committed.
pub(crate) struct Session {
    pub(crate) client: Client,
    warnings: Warnings,
    driver: AbortHandle,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Connects to the host that takes writes, and has the event loop that this runs on drive the connection from then
    /// on.
    pub(crate) async fn open(
        hosts: &Hosts,
        role: Role,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let (tls, limit) = (hosts.tls()?, hosts.limit(patience));
        let mut failures = Vec::new();
        for turn in hosts.turns() {
            let opened = async {
                let session = Self::connect(turn.config(), tls.clone()).await?;
                session.set_up(&hosts.schema, role, patience).await?;
                Ok(session)
            };
            match timeout(limit, opened).await.unwrap_or_else(|_| Err(late())) {
                Ok(session) => {
                    turn.found();
                    return Ok(session);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(of_hosts(failures))
    }

    async fn set_up(&self, schema: &str, role: Role, patience: Duration) -> Result<(), StoreError> {
        let idle = match role {
            Role::Writer => IDLE_WRITER,
            Role::Reader => IDLE_READER,
        };
        let set = format!(
            "{} SET search_path = \"{}\"; SET lock_timeout = {}; \
             SET idle_in_transaction_session_timeout = {}; {}",
            sql::TUNE,
            schema,
            // So that the server says no before it is given up, and there is time left to store what was waited for.
            (patience * 3 / 5).as_millis(),
            idle.as_millis(),
            // What is stronger, such as remote_apply, stays.
            "SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') <> 'remote_apply'",
        );
        self.client.batch_execute(&set).await.map_err(kind)
    }

    async fn connect(config: &Config, tls: Option<Tls>) -> Result<Self, StoreError> {
        let warnings = Warnings::default();
        let Some(tls) = tls else {
            let (client, connection) = config.connect(NoTls).await.map_err(kind)?;
            let driver = tokio::spawn(drive(connection, warnings.clone())).abort_handle();
            return Ok(Self {
                client,
                warnings,
                driver,
            });
        };
        let (client, connection) = config.connect(tls).await.map_err(kind)?;
        let driver = tokio::spawn(drive(connection, warnings.clone())).abort_handle();
        Ok(Self {
            client,
            warnings,
            driver,
        })
    }

    /// What the server has warned of since this was last asked for, as an error.
    pub(crate) fn warned(&self) -> Option<StoreError> {
        let words = self.warnings.lock().take()?;
        Some(StoreError::Away(Arc::new(Said(words))))
    }
}

/// What the server has warned of. It comes before the answer to the statement that it is about.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Option<String>>>);

impl Warnings {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn drive<T>(mut connection: Connection<Socket, T>, warnings: Warnings)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            *warnings.lock() = Some(notice.message().to_owned());
        }
    }
}
