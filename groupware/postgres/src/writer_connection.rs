//! The writer's connection: a session of its own, which is reopened when lost, and the recovery of
//! a group whose commit got no response.

use std::sync::Arc;
use std::time::Duration;

use groupware_store::{Batch, CommitError, Outcome, StoreError};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::clock::Deadline;
use crate::error::{
    MessageError, is_away, is_held, is_lock, is_worth_another_try, kind, late, of_write,
};
use crate::format_locks::FormatLocks;
use crate::hosts::Hosts;
use crate::session::{Role, Session};
use crate::sql;
use crate::write::{After, Attempt, Statements, attempt};

/// The maximum number of tries of a group that conflicts with other transactions.
const TRIES: u32 = 5;
/// The time between two connection attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum wait for a server that was down at the last attempt, and the pause before it:
/// writers queued during that attempt have waited long enough.
const BRIEFLY: Duration = Duration::from_secs(1);
const LEFT_IN_PEACE: Duration = Duration::from_millis(100);

/// The identity of a writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// A number unique to this writer.
    pub(crate) node: i64,
    /// The lock of the whole store.
    pub(crate) site: i64,
    /// Whether the writer excludes all other servers.
    pub(crate) is_alone: bool,
    /// The versions that may run concurrently.
    pub(crate) beside: FormatLocks,
}

impl Identity {
    /// The owner of the store while this writer is connected.
    fn owner(&self) -> Option<i64> {
        self.is_alone.then_some(self.node)
    }

    /// Joins the use of the store with this session, too, unless another server has taken it over.
    /// While any session does, no other server can own the store exclusively.
    pub(crate) async fn share(&self, session: &Session) -> Result<(), StoreError> {
        match self.takes_part(session).await? {
            true => Ok(()),
            false => {
                let words = "another server has taken the database over";
                Err(StoreError::Database(Arc::new(MessageError(
                    words.to_owned(),
                ))))
            }
        }
    }

    /// The same; false if another server owns the store.
    async fn takes_part(&self, session: &Session) -> Result<bool, StoreError> {
        let client = &session.client;
        let shared = client.execute(sql::SHARE_SITE, &[&self.site]).await;
        shared.map_err(kind)?;
        self.beside.share(session).await?;
        let owner = client.query_one(sql::OWNER, &[]).await.map_err(kind)?;
        let owner: Option<i64> = owner.get(0);
        Ok(owner == self.owner())
    }

    /// Claims the store for the first time; false if another server has it. With `may_change`, it
    /// is upgraded to this version.
    pub(crate) async fn claim(
        &self,
        session: &Session,
        may_change: bool,
    ) -> Result<bool, StoreError> {
        let client = &session.client;
        let tried = client.query_one(sql::TRY_SITE, &[&self.site]).await;
        if tried.map_err(kind)?.get(0) {
            client
                .execute(sql::OWN, &[&self.owner()])
                .await
                .map_err(kind)?;
            if may_change {
                let upgraded = client.execute(sql::UPGRADE, &[&sql::SCHEMA_VERSION]).await;
                upgraded.map_err(kind)?;
            }
            client
                .execute(sql::SHARE_SITE, &[&self.site])
                .await
                .map_err(kind)?;
            client
                .execute(sql::FREE_SITE, &[&self.site])
                .await
                .map_err(kind)?;
            return Ok(true);
        }
        if self.is_alone {
            return Ok(false);
        }
        let is_shared = match self.takes_part(session).await {
            // Another server owns it exclusively, and may be about to finish.
            Err(error) if is_held(&error) => return Ok(false),
            shared => shared?,
        };
        if !is_shared || may_change && version(session).await? == sql::SILENT_VERSION {
            // A waiting server with a share would keep other waiting servers from exclusive use.
            let freed = client.execute(sql::FREE_SHARED_SITE, &[&self.site]).await;
            freed.map_err(kind)?;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Returns the version of the store.
pub(crate) async fn version(session: &Session) -> Result<i32, StoreError> {
    let row = session.client.query_one(sql::VERSION, &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(kind)
}

/// A session that may write, and the number of the last stored group.
struct Linked {
    session: Session,
    statements: Statements,
    last: i64,
}

pub(crate) struct WriterConnection {
    hosts: Arc<Hosts>,
    identity: Identity,
    patience: Duration,
    linked: Option<Linked>,
    /// Set if the server was down at the last attempt: until then no attempt is made, and the next one is short.
    away: Option<Deadline>,
}

impl WriterConnection {
    /// Creates the link on a first session that has claimed the store.
    pub(crate) async fn new(
        hosts: Arc<Hosts>,
        identity: Identity,
        patience: Duration,
        first: Session,
    ) -> Result<Self, StoreError> {
        let mut link = Self {
            hosts,
            identity,
            patience,
            linked: None,
            away: None,
        };
        let forgotten = first.client.execute(sql::FORGET, &[]).await;
        forgotten.map_err(kind)?;
        link.linked = Some(link.enrol(first).await?);
        Ok(link)
    }

    /// Registers the session under this writer's number, once no other session uses it.
    async fn enrol(&self, session: Session) -> Result<Linked, StoreError> {
        let (client, node) = (&session.client, self.identity.node);
        client
            .execute(sql::LOCK_NODE, &[&node])
            .await
            .map_err(kind)?;
        self.identity.share(&session).await?;
        let statements = Statements::prepare(client).await.map_err(kind)?;
        session.warned();
        let row = client.query_one(sql::ENROL, &[&node]).await.map_err(kind)?;
        match session.warned() {
            // The row that was read may not be durable.
            Some(warning) => Err(warning),
            None => Ok(Linked {
                last: row.get(0),
                session,
                statements,
            }),
        }
    }

    /// Opens a new session as soon as the server accepts one.
    async fn connect(&self, deadline: Deadline) -> Result<Linked, StoreError> {
        loop {
            let left = deadline.left().max(PAUSE);
            let opened = async {
                let session = Session::open(&self.hosts, Role::Writer, self.patience).await?;
                self.enrol(session).await
            };
            match timeout(left, opened).await.unwrap_or_else(|_| Err(late())) {
                Err(error) if error.is_passing() && !deadline.is_over() => sleep(PAUSE).await,
                done => return done,
            }
        }
    }

    /// Returns the current session, or opens a new one.
    async fn linked(&mut self, deadline: Deadline) -> Result<Linked, StoreError> {
        if let Some(linked) = self.linked.take()
            && !linked.session.client.is_closed()
        {
            return Ok(linked);
        }
        let deadline = match self.away {
            Some(peace) if !peace.is_over() => return Err(late()),
            Some(_) => deadline.or_after(brief(self.patience)),
            None => deadline,
        };
        let connected = self.connect(deadline).await;
        // A permanent error is reported to each caller separately.
        self.is_away(connected.as_ref().is_err_and(StoreError::is_passing));
        connected
    }

    fn is_away(&mut self, is_away: bool) {
        self.away = is_away.then(|| Deadline::after(LEFT_IN_PEACE));
    }

    /// Stores a group: one outcome for each batch, or one error for all. All tries and recoveries
    /// together take at most the maximum wait, plus the time for the group's bytes.
    pub(crate) async fn commit(&mut self, group: &[&Batch]) -> Result<Vec<Outcome>, CommitError> {
        let whole = Deadline::after(self.patience);
        let deadline = Deadline::after(self.patience.saturating_sub(brief(self.patience)));
        let mut tries = 1;
        loop {
            let mut linked = self.linked(deadline).await?;
            let number = linked.last + 1;
            let node = self.identity.node;
            let Linked {
                session,
                statements,
                ..
            } = &linked;
            let limits = (deadline, brief(self.patience));
            match attempt(session, statements, group, (node, number), limits).await {
                Attempt::Nothing(outcomes) => {
                    self.linked = Some(linked);
                    return Ok(outcomes);
                }
                Attempt::Stored(outcomes) => {
                    linked.last = number;
                    self.linked = Some(linked);
                    return Ok(outcomes);
                }
                Attempt::Refused(error, after) => {
                    // A lock was held for too long; another session would fail the same way.
                    let is_of_use = is_lock(&error) || !is_away(&error);
                    self.linked = Some(linked).filter(|_| is_of_use && after == After::Free);
                    if tries == TRIES || deadline.is_over() || !is_worth_another_try(&error) {
                        return Err(of_write(error));
                    }
                }
                Attempt::NoTime(after) => {
                    self.linked = Some(linked).filter(|_| after == After::Free);
                    return Err(late().into());
                }
                Attempt::Late => {
                    self.is_away(true);
                    end(linked).await;
                    return Err(late().into());
                }
                Attempt::InDoubt(outcomes, cause) => {
                    end(linked).await;
                    if self.was_stored(number, cause.clone(), whole).await? {
                        return Ok(outcomes);
                    }
                    if deadline.is_over() {
                        return Err(cause.into());
                    }
                }
            }
            sleep(jitter(tries)).await;
            tries += 1;
        }
    }

    /// Returns whether the group of this number was stored, once no session is left that may still
    /// store it. The check is a commit itself: its result is as durable as that.
    async fn was_stored(
        &mut self,
        number: i64,
        cause: StoreError,
        deadline: Deadline,
    ) -> Result<bool, CommitError> {
        // A large group may have used up the time: keep a minimum for the check.
        let least = Deadline::after(brief(self.patience));
        let linked = self
            .connect(deadline.or_later(least))
            .await
            .map_err(|error| {
                self.is_away(true);
                let error = groupware_text::chain(&error);
                tracing::error!(
                    cause = groupware_text::chain(&cause),
                    error,
                    "it isn't known whether a commit was stored"
                );
                CommitError::Unknown(cause.clone())
            })?;
        let last = linked.last;
        self.linked = Some(linked);
        match last {
            last if last == number => Ok(true),
            last if last == number - 1 => Ok(false),
            // Only this writer increments the number: it was changed by hand.
            _ => Err(CommitError::Unknown(cause)),
        }
    }

    /// Removes this writer's row.
    pub(crate) async fn leave(&mut self) {
        if let Some(linked) = self.linked.take() {
            let client = &linked.session.client;
            // Otherwise a later server removes it.
            let _ = timeout(BRIEFLY, client.execute(sql::LEAVE, &[&self.identity.node])).await;
        }
    }
}

/// The part of a maximum wait that is reserved for its last step.
pub(crate) fn brief(patience: Duration) -> Duration {
    BRIEFLY.min(patience / 5)
}

/// Ends a session, and runs the event loop once to process that, since it runs only during waits.
async fn end(linked: Linked) {
    drop(linked);
    yield_now().await;
}

/// Returns the random pause before the next try.
fn jitter(tries: u32) -> Duration {
    let mut byte = [0];
    // Without randomness, all writers pause equally.
    let _ = getrandom::fill(&mut byte);
    Duration::from_micros(u64::from(byte[0]) * 40 * u64::from(tries))
}
