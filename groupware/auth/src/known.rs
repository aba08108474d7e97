//! What this server remembers of users and sessions, and how it is kept in step with the store, which other
//! servers may change too.
//!
//! Users are all in memory, and sessions that are in use. Every change is an entry in a log in the store
//! ([`groupware_people::News`]), which this server reads some times a second where there are others. What it
//! remembers is answered with as long as it has seen the log's end a moment ago; when it can't, each request
//! looks at the store, or is refused. Nothing has to be delivered for that: a notice that is lost can't keep a
//! revoked password alive.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_people::{self as people, AccountError, Change, Directory, Missed, News, Position};
use groupware_people::{Account, Users};
use groupware_runtime::clock::Clock;
use groupware_store::{Batch, CommitError, Store, StoreError};

use crate::cache::Cache;

/// How long what is remembered counts after it was known to be right. With the time that a request takes, no
/// password or session outlives its end by five seconds.
const TRUST: Duration = Duration::from_secs(4);
/// After the store could not be read, it isn't asked again for so long: those who wait for it would come to
/// wait one after the other.
const RESPITE: Duration = Duration::from_millis(500);
/// How often a change is decided that others are faster than.
const ROUNDS: u32 = 64;

/// Users, and sessions in use.
#[derive(Debug)]
pub(crate) struct Known {
    store: Store,
    pub(crate) users: Users,
    pub(crate) sessions: Cache,
    /// How far the log was read. Nobody holds it while the store is read.
    seen: Mutex<Position>,
    /// Serializes reads of the log. A caller that had to wait uses the result of the read before it.
    looking: Mutex<()>,
    /// One change at a time.
    changing: tokio::sync::Mutex<()>,
    others: Option<Others>,
}

/// What is kept where other servers may change the same store.
#[derive(Debug)]
struct Others {
    clock: Clock,
    /// When the last look began that saw the log's end, in microseconds of the clock.
    right_at_us: AtomicU64,
    /// When the last look failed, and of what.
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
    /// A change of one user.
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

impl Known {
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

    /// Makes sure that what is remembered counts.
    pub(crate) fn ensure(&self) -> Result<(), StoreError> {
        match &self.others {
            Some(others) if !others.is_right() => self.look(others, Others::is_right),
            _ => Ok(()),
        }
    }

    /// Makes sure that what is remembered counts, and that nobody is refused who has to look again.
    pub(crate) fn ensure_ready(&self) -> Result<(), StoreError> {
        let others = self.others.as_ref();
        match others.and_then(|others| others.recent_failure(others.clock.now())) {
            Some(error) => Err(error),
            None => self.ensure(),
        }
    }

    /// How far the log was read: what whoever looks something up asks before, to look again if need be.
    pub(crate) fn seen(&self) -> Position {
        *self.position()
    }

    /// Looks whether there is news, for whoever did not find what there may be by now; whether there was any since
    /// a moment before. Somebody else may have read it meanwhile.
    pub(crate) fn look_again(&self, since: Position) -> Result<bool, StoreError> {
        let Some(others) = &self.others else {
            return Ok(false);
        };
        self.look(others, |_| false)?;
        Ok(self.seen() != since)
    }

    /// Reads the log to its end, unless somebody else has done what is `enough` meanwhile.
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

    /// A user by name, in whatever case it is written.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<Account>>, StoreError> {
        self.ensure()?;
        let seen = self.seen();
        match self.users.find(name) {
            Some(account) => Ok(Some(account)),
            None if self.look_again(seen)? => Ok(self.users.find(name)),
            None => Ok(None),
        }
    }

    /// Waits for the changes before.
    pub(crate) async fn begin(&self) -> Changing<'_> {
        Changing {
            known: self,
            _turn: self.changing.lock().await,
        }
    }

    /// Stores what is decided, and makes it known.
    pub(crate) async fn change<T, E>(
        &self,
        decide: impl FnMut(&Users) -> Result<Decided<T>, E>,
    ) -> Result<Decided<T>, E>
    where
        E: From<AccountError> + From<CommitError>,
    {
        self.begin().await.change(decide).await
    }

    /// A change was stored with this revision after what was seen `at` that moment. Whoever has read the log
    /// since has made it known, and perhaps what followed.
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

/// The right to change users and sessions, within this server.
pub(crate) struct Changing<'a> {
    known: &'a Known,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Changing<'_> {
    /// Stores what is decided, and makes it known. Where another server was faster, it is decided anew.
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
                // What is in the way may be gone, and who is not there have come, at another server.
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

/// Who is a local user, those included whom other servers have registered just now.
impl Directory for Known {
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
        // Somebody waits for the store as long as the test takes.
        let _turn = auth.known.looking.lock().unwrap();
        assert!(auth.find("ada").unwrap().is_some());
        let found = auth.people().user("ada@localhost").unwrap();
        assert_eq!(found.as_deref(), Some("ada"));
    }

    #[test]
    fn who_could_not_look_a_moment_ago_is_not_ready() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let known = Known::load(store, Users::new("example.org"), Cache::new(1), true).unwrap();
        assert!(known.ensure_ready().is_ok());

        // A moment ago for as long as the test takes: what is remembered counts still, and whoever looks is refused.
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
