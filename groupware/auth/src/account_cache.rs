//! This server's cache of users and sessions, and its synchronization with the store, which other
//! servers may change too.
//!
//! The cache holds all users, and the sessions in use. Every change is an entry in a log in the
//! store ([`groupware_people::News`]), which a shared server reads several times per second. The
//! cache is valid for a short time after a read up to the log's end; otherwise each request reads
//! the log, or fails. No notification is needed for that, so a lost one can't keep a revoked
//! password alive.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_people::{self as people, AccountError, Change, Directory, Missed, News, Position};
use groupware_people::{Account, Users};
use groupware_runtime::clock::Clock;
use groupware_store::{Batch, CommitError, Store, StoreError};

use crate::cache::Cache;

/// The time for which the cache is valid after it was up to date. Including the time of a request,
/// no password or session outlives its end by five seconds.
const TRUST: Duration = Duration::from_secs(4);
/// The pause after a failed read of the store: without it, waiting requests would each wait in
/// turn.
const RESPITE: Duration = Duration::from_millis(500);
/// The maximum number of conflicts with other servers before a change fails.
const ROUNDS: u32 = 64;

/// Users, and sessions in use.
#[derive(Debug)]
pub(crate) struct AccountCache {
    store: Store,
    pub(crate) users: Users,
    pub(crate) sessions: Cache,
    /// The position up to which the log was read. Not locked during reads of the store.
    seen: Mutex<Position>,
    /// Serializes reads of the log. A caller that had to wait uses the result of the read before it.
    looking: Mutex<()>,
    /// One change at a time.
    changing: tokio::sync::Mutex<()>,
    others: Option<Others>,
}

/// The state for other servers that may change the same store.
#[derive(Debug)]
struct Others {
    clock: Clock,
    /// The start of the last read up to the log's end, in microseconds of the clock.
    right_at_us: AtomicU64,
    /// The time and error of the last read, if it failed.
    failure: Mutex<Option<(Duration, StoreError)>>,
}

/// A change that was decided.
#[derive(Debug)]
pub(crate) struct Decided<T> {
    pub(crate) batch: Batch,
    pub(crate) news: News,
    pub(crate) changes: Vec<Change>,
    pub(crate) outcome: T,
}

impl<T> Decided<T> {
    /// Returns a change of one user.
    pub(crate) fn of_user(batch: Batch, change: Change, outcome: T) -> Self {
        let users = vec![Arc::clone(change.account().name.key())];
        let sessions = Vec::new();
        Self {
            batch,
            news: News { users, sessions },
            changes: vec![change],
            outcome,
        }
    }
}

impl AccountCache {
    /// Loads all users into an empty directory. Other servers may change the store if it `is_shared`.
    pub(crate) fn load(
        store: Store,
        empty: Users,
        sessions: Cache,
        is_shared: bool,
    ) -> Result<Self, AccountError> {
        let clock = Clock::start();
        let (users, seen) = store.read(|snapshot| {
            let users = people::load(snapshot, empty)?;
            Ok::<_, AccountError>((users, Position::last(snapshot)?))
        })?;
        Ok(Self {
            store,
            users,
            sessions,
            seen: Mutex::new(seen),
            looking: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            others: is_shared.then(|| Others {
                clock,
                right_at_us: AtomicU64::new(0),
                failure: Mutex::default(),
            }),
        })
    }

    /// Whether other servers may change the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.others.is_some()
    }

    /// Ensures that the cache is valid.
    pub(crate) fn ensure(&self) -> Result<(), StoreError> {
        match &self.others {
            Some(others) if !others.is_right() => self.look(others, Others::is_right),
            _ => Ok(()),
        }
    }

    /// Ensures that the cache is valid, and that the log can be read again.
    pub(crate) fn ensure_ready(&self) -> Result<(), StoreError> {
        let others = self.others.as_ref();
        match others.and_then(|others| others.recent_failure(others.clock.now())) {
            Some(error) => Err(error),
            None => self.ensure(),
        }
    }

    /// The position up to which the log was read: taken before a lookup, for [`Self::look_again`].
    pub(crate) fn seen(&self) -> Position {
        *self.position()
    }

    /// Reads the log after a lookup that found nothing. Returns true if there are changes since an
    /// earlier position, even if a concurrent caller read them.
    pub(crate) fn look_again(&self, since: Position) -> Result<bool, StoreError> {
        let Some(others) = &self.others else {
            return Ok(false);
        };
        self.look(others, |_| false)?;
        Ok(self.seen() != since)
    }

    /// Reads the log to its end, unless a concurrent read was `enough`.
    fn look(&self, others: &Others, enough: impl Fn(&Others) -> bool) -> Result<(), StoreError> {
        let _turn = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if enough(others) {
            return Ok(());
        }
        let began = others.clock.now();
        if let Some(error) = others.recent_failure(began) {
            return Err(error);
        }
        let caught_up = self.catch_up().map_err(StoreError::from);
        others.note(began, caught_up.clone());
        caught_up
    }

    fn catch_up(&self) -> Result<(), AccountError> {
        // A round is repeated only if a change of this server was published meanwhile.
        loop {
            let at = self.seen();
            let missed = self.store.read(|snapshot| Missed::since(snapshot, at))?;
            let mut seen = self.position();
            if *seen != at {
                continue;
            }
            let Some(mut missed) = missed else {
                return Ok(());
            };
            *seen = missed.position;
            let ended = missed.sessions.take();
            missed.publish(&self.users);
            match ended {
                Some(ended) => self.sessions.forget(&ended),
                None => self.sessions.forget_all(),
            }
            return Ok(());
        }
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a user by name, case-insensitively.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<Account>>, StoreError> {
        self.ensure()?;
        let seen = self.seen();
        match self.users.find(name) {
            Some(account) => Ok(Some(account)),
            None if self.look_again(seen)? => Ok(self.users.find(name)),
            None => Ok(None),
        }
    }

    /// Waits for the changes before it.
    pub(crate) async fn begin(&self) -> Changing<'_> {
        Changing {
            known: self,
            _turn: self.changing.lock().await,
        }
    }

    /// Commits a decision, and updates the cache.
    pub(crate) async fn change<T, E>(
        &self,
        decide: impl FnMut(&Users) -> Result<Decided<T>, E>,
    ) -> Result<Decided<T>, E>
    where
        E: From<AccountError> + From<CommitError>,
    {
        self.begin().await.change(decide).await
    }

    /// Updates the cache after a commit with this revision at the log position `at`. If the log was
    /// read since, the cache has this change and perhaps later ones.
    fn publish<T>(&self, at: Position, revision: u64, decided: &Decided<T>) {
        let mut seen = self.position();
        if *seen != at {
            return;
        }
        *seen = at.next(revision);
        people::publish(&self.users, &decided.changes);
        let is_kept = |key: &Arc<str>| {
            let mut changes = decided.changes.iter();
            changes.any(|change| change.account().name.key() == key)
        };
        for gone in decided.news.users.iter().filter(|key| !is_kept(key)) {
            self.users.remove(gone);
        }
        self.sessions.forget(&decided.news.sessions);
    }
}

/// The lock for changes of users and sessions within this server.
pub(crate) struct Changing<'a> {
    known: &'a AccountCache,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Changing<'_> {
    /// Commits a decision, and updates the cache. After a conflict with another server, it decides again.
    pub(crate) async fn change<T, E>(
        &self,
        mut decide: impl FnMut(&Users) -> Result<Decided<T>, E>,
    ) -> Result<Decided<T>, E>
    where
        E: From<AccountError> + From<CommitError>,
    {
        let known = self.known;
        for _ in 0..ROUNDS {
            let at = known.seen();
            let mut decided = match decide(&known.users) {
                Ok(decided) => decided,
                // Another server may have removed the obstacle, or added the missing user.
                Err(error) => match known.look_again(at).map_err(AccountError::from)? {
                    true => continue,
                    false => return Err(error),
                },
            };
            if decided.batch.is_empty() {
                return Ok(decided);
            }
            let mut batch = std::mem::take(&mut decided.batch);
            at.append(&mut batch, &decided.news);
            match known.store.commit(batch).await {
                Ok(committed) => {
                    known.publish(at, committed.revision, &decided);
                    return Ok(decided);
                }
                Err(CommitError::Conflict { .. }) => known.catch_up()?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(CommitError::Conflict { index: 0 }.into())
    }
}

impl Others {
    fn is_right(&self) -> bool {
        let right_at = Duration::from_micros(self.right_at_us.load(Relaxed));
        self.clock.now().saturating_sub(right_at) < TRUST
    }

    fn recent_failure(&self, now: Duration) -> Option<StoreError> {
        let failure = self.failure();
        let recent = failure.as_ref().filter(|(at, _)| now < *at + RESPITE);
        recent.map(|(_, error)| error.clone())
    }

    fn note(&self, began: Duration, caught_up: Result<(), StoreError>) {
        let failure = caught_up.err().map(|error| (self.clock.now(), error));
        if failure.is_none() {
            let began = u64::try_from(began.as_micros()).unwrap_or_default();
            self.right_at_us.store(began, Relaxed);
        }
        *self.failure() = failure;
    }

    fn failure(&self) -> MutexGuard<'_, Option<(Duration, StoreError)>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The local users, including those that other servers have registered just now.
impl Directory for AccountCache {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        let seen = self.seen();
        let known = self.users.user(address)?;
        let may_be_new = known.is_none() && self.users.local_name(address).is_some();
        match may_be_new && self.look_again(seen)? {
            true => self.users.user(address),
            false => Ok(known),
        }
    }

    fn registered(&self, user: &str) -> Result<Option<i64>, StoreError> {
        let seen = self.seen();
        match self.users.registered(user)? {
            None if self.look_again(seen)? => self.users.registered(user),
            known => Ok(known),
        }
    }

    fn email(&self, user: &str) -> String {
        self.users.email(user)
    }

    fn domain(&self) -> &str {
        Directory::domain(&self.users)
    }
}

#[cfg(test)]
mod tests {
    use groupware_people::{NewUser, UserName};
    use groupware_store::StoreOptions;

    use super::*;
    use crate::auth::{Auth, Settings};

    #[tokio::test]
    async fn nobody_waits_for_a_look_who_needs_none() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let settings = Settings {
            is_shared: true,
            ..Settings::default()
        };
        let auth = Auth::start(&store, &settings).unwrap();
        let ada = NewUser {
            name: UserName::parse("ada").unwrap(),
            app_password: None,
            pad_bytes: 0,
        };
        auth.accounts.register(vec![ada], 0).await.unwrap();
        // A read of the store that blocks as long as the test runs.
        let _turn = auth.known.looking.lock().unwrap();
        assert!(auth.find("ada").unwrap().is_some());
        let found = auth.people().user("ada@localhost").unwrap();
        assert_eq!(found.as_deref(), Some("ada"));
    }

    #[test]
    fn who_could_not_look_a_moment_ago_is_not_ready() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let known =
            AccountCache::load(store, Users::new("example.org"), Cache::new(1), true).unwrap();
        assert!(known.ensure_ready().is_ok());

        // A recent failure for as long as the test runs: the cache stays valid, and reads of the log fail.
        let others = known.others.as_ref().unwrap();
        others.right_at_us.store(u64::MAX, Relaxed);
        let later = others.clock.now() + Duration::from_secs(3600);
        let away = StoreError::Away(Arc::new(std::io::Error::other("away")));
        *others.failure() = Some((later, away));
        assert!(known.ensure().is_ok());
        assert!(known.look_again(known.seen()).is_err());
        assert!(known.ensure_ready().is_err());

        *others.failure() = None;
        assert!(known.ensure_ready().is_ok());
    }
}
