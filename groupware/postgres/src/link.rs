//! The writer's way to the database: a session of its own, which is made anew when it is lost, and what became
//! of a group whose commit was not answered.

use std::sync::Arc;
use std::time::Duration;

use groupware_store::{Batch, CommitError, Outcome, StoreError};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::beside::Beside;
use crate::clock::Deadline;
use crate::error::{Said, is_away, is_held, is_lock, is_worth_another_try, kind, late, of_write};
use crate::hosts::Hosts;
use crate::session::{Role, Session};
use crate::sql;
use crate::write::{After, Attempt, Statements, attempt};

/// How often a group that was in another's way is tried.
const TRIES: u32 = 5;
/// Time between two looks whether the server is back.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a server that was away when it was last asked is waited for, and left in peace before that: who came
/// while it was found to be away has waited long enough.
const BRIEFLY: Duration = Duration::from_secs(1);
const LEFT_IN_PEACE: Duration = Duration::from_millis(100);

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// A number that no other writer has.
    pub(crate) node: i64,
    /// The lock that stands for the store as a whole.
    pub(crate) site: i64,
    /// Whether no other server may use the store.
    pub(crate) is_alone: bool,
    /// Beside which versions it may be.
    pub(crate) beside: Beside,
}

impl Identity {
    /// Whom the store belongs to as long as this one is there.
    fn owner(&self) -> Option<i64> {
        self.is_alone.then_some(self.node)
    }

    /// Takes part in the use of the store with this session too, unless it is another's by now. As long as any
    /// session does, nobody else can have it to himself.
    pub(crate) async fn share(&self, session: &Session) -> Result<(), StoreError> {
        match self.takes_part(session).await? {
            true => Ok(()),
            false => {
                let words = "another server has taken the database over";
                Err(StoreError::Database(Arc::new(Said(words.to_owned()))))
            }
        }
    }

    /// The same; false if the store is another's.
    async fn takes_part(&self, session: &Session) -> Result<bool, StoreError> {
        let client = &session.client;
        let shared = client.execute(sql::SHARE_SITE, &[&self.site]).await;
        shared.map_err(kind)?;
        self.beside.share(session).await?;
        let owner = client.query_one(sql::OWNER, &[]).await.map_err(kind)?;
        let owner: Option<i64> = owner.get(0);
        Ok(owner == self.owner())
    }

    /// Takes the store for the first time; false if another server has it. Where it `may_change` it, it is of this
    /// version then.
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
            // Somebody has it alone, and may be done with it soon.
            Err(error) if is_held(&error) => return Ok(false),
            shared => shared?,
        };
        if !is_shared || may_change && version(session).await? == sql::SILENT_VERSION {
            // Who waits with a share of it keeps others who wait from having it alone.
            let freed = client.execute(sql::FREE_SHARED_SITE, &[&self.site]).await;
            freed.map_err(kind)?;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Of the store.
pub(crate) async fn version(session: &Session) -> Result<i32, StoreError> {
    let row = session.client.query_one(sql::VERSION, &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(kind)
}

/// A session that may write, and the number of the last group that was stored.
struct Linked {
    session: Session,
    statements: Statements,
    last: i64,
}

pub(crate) struct Link {
    hosts: Arc<Hosts>,
    identity: Identity,
    patience: Duration,
    linked: Option<Linked>,
    /// The server was away when it was last asked: nobody waits for long again, nor at all until then.
    away: Option<Deadline>,
}

impl Link {
    /// A way to the database, which a first session has claimed.
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

    /// Has the session write under this writer's number, once no other session does.
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
            // What was read may not be where it lasts.
            Some(warning) => Err(warning),
            None => Ok(Linked {
                last: row.get(0),
                session,
                statements,
            }),
        }
    }

    /// A new session, as soon as the server gives one.
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

    /// The session that there is, or a new one.
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
        // Others are told themselves what is wrong where it doesn't pass.
        self.is_away(connected.as_ref().is_err_and(StoreError::is_passing));
        connected
    }

    fn is_away(&mut self, is_away: bool) {
        self.away = is_away.then(|| Deadline::after(LEFT_IN_PEACE));
    }

    /// Stores a group: one outcome for each batch, or one error for all. However often it is tried, and whatever there
    /// is to find out then, it takes no longer than the patience, but for what the group's bytes take.
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
                    // Somebody else had what it wanted for too long; other sessions would be told the same.
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

    /// Whether the group of this number was stored, once no session is left that may still be storing it. The
    /// look is a commit itself: what it finds lasts as long as that does.
    async fn was_stored(
        &mut self,
        number: i64,
        cause: StoreError,
        deadline: Deadline,
    ) -> Result<bool, CommitError> {
        // What a large group took is not to be what is missing here.
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
            // Nobody but this writer raises the number: somebody has changed it by hand.
            _ => Err(CommitError::Unknown(cause)),
        }
    }

    /// Leaves the database in order.
    pub(crate) async fn leave(&mut self) {
        if let Some(linked) = self.linked.take() {
            let client = &linked.session.client;
            // Whoever comes later removes it otherwise.
            let _ = timeout(BRIEFLY, client.execute(sql::LEAVE, &[&self.identity.node])).await;
        }
    }
}

/// Of all the time that somebody waits, what is kept for the last of it.
pub(crate) fn brief(patience: Duration) -> Duration {
    BRIEFLY.min(patience / 5)
}

/// Ends a session, and lets the event loop, which runs only while something is waited for, hear of it.
async fn end(linked: Linked) {
    drop(linked);
    yield_now().await;
}

/// A pause before the next try, of another length for everybody.
fn jitter(tries: u32) -> Duration {
    let mut byte = [0];
    // Without randomness, the pause is the same for all.
    let _ = getrandom::fill(&mut byte);
    Duration::from_micros(u64::from(byte[0]) * 40 * u64::from(tries))
}
