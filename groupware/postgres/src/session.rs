//! One connection to the server, configured for durable commits.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

use crate::error::{MessageError, kind, late, of_hosts};
use crate::hosts::Hosts;
use crate::sql;
use crate::tls::Tls;

/// The time after which the server ends an idle writing transaction: a lost or stalled lock holder
/// must not block others for longer.
const IDLE_WRITER: Duration = Duration::from_secs(10);
/// The same for a reading transaction, which blocks none, but keeps deleted rows alive.
const IDLE_READER: Duration = Duration::from_secs(3600);

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// A connection that is driven by the event loop that opened it.
///
/// It ends when this value is dropped, even with a pending response: the server then rolls back.
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
    /// Connects to the host that accepts writes. The current event loop drives the connection from
    /// then on.
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
            // The server gives up before the client does, with time left to store the group.
            (patience * 3 / 5).as_millis(),
            idle.as_millis(),
            // A stronger setting, such as remote_apply, stays.
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

    /// Takes the server's warnings since the last call, as an error.
    pub(crate) fn warned(&self) -> Option<StoreError> {
        let words = self.warnings.lock().take()?;
        Some(StoreError::Away(Arc::new(MessageError(words))))
    }
}

/// The server's warnings. A warning arrives before the response to its statement.
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
