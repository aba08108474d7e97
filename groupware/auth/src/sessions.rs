//! The sessions of users, by the hash of the cookie's token: stored, so that they survive a
//! restart, and cached while they are in use.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_people::{Account, HeldSession, News, SecretHash, Session, hash_secret};
use groupware_runtime::random;
use groupware_store::{Batch, CommitError, ReadError, Store, StoreError};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::account_cache::{AccountCache, Changing, Decided};
use crate::accounts::AccountsError;
use crate::begun::Begun;
use crate::cache::Cached;

/// In microseconds.
const SECOND: i64 = 1_000_000;
/// The maximum number of sessions of one user; a further one ends the oldest.
const MOST_OF_USER: usize = 64;
/// The minimum interval between stored uses. With several servers, or after a restart, a session
/// may end this much early.
const NOTED_EVERY_S: i64 = 300;
/// The maximum number of uses that wait to be stored; a later request stores further ones.
const MOST_TO_NOTE: usize = 10_000;
/// The number of uses per batch.
const NOTED_AT_ONCE: usize = 200;
/// The number of sessions per batch of the sweep for expired ones.
const CLEARED_AT_ONCE: usize = 500;

/// The lifetime of sessions.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// Without a request.
    pub idle: Duration,
    /// In total.
    pub total: Duration,
}

impl Lifetime {
    fn is_over(self, session: &Session, now: i64) -> bool {
        let has_passed = |since: i64, most: Duration| {
            let passed = u64::try_from(now.saturating_sub(since)).unwrap_or_default();
            passed >= most.as_secs()
        };
        has_passed(session.used, self.idle) || has_passed(session.started_us / SECOND, self.total)
    }

    fn noted_every(self) -> i64 {
        let idle = i64::try_from(self.idle.as_secs()).unwrap_or(i64::MAX);
        (idle / 8).clamp(1, NOTED_EVERY_S)
    }
}

/// The displayed properties of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// Its id, which grants no access.
    pub id: String,
    /// The time of its start, in seconds since 1970.
    pub started: i64,
    /// The time of its last request, within five minutes.
    pub used: i64,
    /// Whether it is the session of the given token.
    pub is_own: bool,
}

/// The id of a session: the beginning of its token's hash, from which the token can't be derived.
fn id_of(hash: &SecretHash) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A session to end, and the channel for the result.
type Ending = (HeldSession, oneshot::Sender<Result<(), CommitError>>);

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    store: Store,
    known: Arc<AccountCache>,
    lifetime: Lifetime,
    /// Empty if other servers start sessions, too.
    begun: Begun,
    /// Sessions to end, which the next holder of the lock ends in one batch.
    ending: Mutex<Vec<Ending>>,
    /// Uses that wait to be stored.
    to_note: Mutex<Vec<SecretHash>>,
}

impl Sessions {
    pub(crate) fn new(store: Store, known: Arc<AccountCache>, lifetime: Lifetime) -> Self {
        Self {
            store,
            known,
            lifetime,
            begun: Begun::new(MOST_OF_USER),
            ending: Mutex::default(),
            to_note: Mutex::default(),
        }
    }

    /// Starts a session and returns its token, which is stored nowhere. It is valid as long as the
    /// user's stamp is the one at the time of the password check.
    pub(crate) async fn start(
        &self,
        account: &Arc<Account>,
        stamp: u64,
        now_us: i64,
    ) -> Result<String, CommitError> {
        let now = now_us / SECOND;
        let token = random::secret();
        let hash = hash_secret(&token);
        let (user, moment) = (account.name.key(), self.known.sessions.moment());
        let session = Session {
            stamp,
            started_us: now_us,
            used: now,
        };
        let mut batch = Batch::new();
        session.begin(&mut batch, user, &hash);
        self.make_room(account, now, &mut batch).await?;
        match self.store.commit(batch).await {
            Ok(_) => {}
            // A user must be able to sign in to free room. The session ends with this server.
            Err(CommitError::Full) if !self.known.is_shared() => {}
            Err(error) => return Err(error),
        }
        let cached = Cached {
            account: Arc::clone(account),
            session,
            noted: now,
        };
        self.known.sessions.remember(hash, cached, moment);
        Ok(token)
    }

    /// Ends the oldest sessions so that one more fits. The batch may include expired ones.
    async fn make_room(
        &self,
        account: &Account,
        now: i64,
        batch: &mut Batch,
    ) -> Result<(), CommitError> {
        let user = account.name.key();
        let Err(before) = self.begun.begin(user) else {
            return Ok(());
        };
        let mut live = Vec::new();
        for held in self.all_of(user)? {
            match self.is_over(account, &held.session, now) {
                true => held.end(batch),
                false => live.push(held),
            }
        }
        let too_many = (live.len() + 1).saturating_sub(MOST_OF_USER);
        if !self.known.is_shared() {
            self.begun.looked(user, before, live.len() - too_many);
        }
        for oldest in live.into_iter().take(too_many) {
            self.end_held(oldest).await?;
        }
        Ok(())
    }

    /// Returns the account of a valid session.
    pub(crate) fn find(&self, token: &str, now: i64) -> Result<Option<Arc<Account>>, StoreError> {
        self.known.ensure()?;
        let hash = hash_secret(token);
        let found = self.known.sessions.with(&hash, |cached| {
            if self.is_over(&cached.account, &cached.session, now) {
                return None;
            }
            cached.session.used = now;
            let is_to_be_noted = now - cached.noted >= self.lifetime.noted_every();
            if is_to_be_noted {
                cached.noted = now;
            }
            Some((Arc::clone(&cached.account), is_to_be_noted))
        });
        match found {
            Some((account, false)) => Ok(Some(account)),
            Some((account, true)) => {
                self.note(hash);
                Ok(Some(account))
            }
            // A session that was evicted here, or used on another server, may be valid.
            None => self.find_stored(&hash, now),
        }
    }

    fn find_stored(&self, hash: &SecretHash, now: i64) -> Result<Option<Arc<Account>>, StoreError> {
        let moment = self.known.sessions.moment();
        let held = self
            .store
            .read(|snapshot| HeldSession::find(snapshot, hash));
        let Some(held) = held.map_err(unreadable)? else {
            return Ok(None);
        };
        let seen = self.known.seen();
        let Some(mut account) = self.known.find(&held.user)? else {
            return Ok(None);
        };
        // Another server may have changed the user's stamp just now, and then started the session.
        if !account.admits(held.session.stamp) && self.known.look_again(seen)? {
            match self.known.find(&held.user)? {
                Some(again) => account = again,
                None => return Ok(None),
            }
        }
        if self.is_over(&account, &held.session, now) {
            return Ok(None);
        }
        let noted = held.session.used;
        let session = Session {
            used: now,
            ..held.session
        };
        let cached = Cached {
            account: Arc::clone(&account),
            session,
            noted,
        };
        self.known.sessions.remember(*hash, cached, moment);
        Ok(Some(account))
    }

    fn is_over(&self, account: &Account, session: &Session, now: i64) -> bool {
        !account.admits(session.stamp) || self.lifetime.is_over(session, now)
    }

    /// Ends a session; one that doesn't exist is ended already.
    ///
    /// # Errors
    /// Errors of the store: the session may then still be valid.
    pub async fn end(&self, token: &str) -> Result<(), CommitError> {
        let hash = hash_secret(token);
        let held = self
            .store
            .read(|snapshot| HeldSession::find(snapshot, &hash));
        match held.map_err(unreadable)? {
            Some(held) => self.end_held(held).await,
            None => {
                self.known.sessions.forget(&[hash]);
                Ok(())
            }
        }
    }

    /// Adds the session to the queue before waiting for the lock: the next holder ends all queued
    /// sessions.
    async fn end_held(&self, held: HeldSession) -> Result<(), CommitError> {
        loop {
            let (tell, mut told) = oneshot::channel();
            lock(&self.ending).push((held.clone(), tell));
            let changing = self.known.begin().await;
            match told.try_recv() {
                Ok(ended) => return ended,
                Err(TryRecvError::Empty) => return self.end_all_that_wait(&changing).await,
                // The holder of the lock was dropped.
                Err(TryRecvError::Closed) => {}
            }
        }
    }

    async fn end_all_that_wait(&self, changing: &Changing<'_>) -> Result<(), CommitError> {
        let all = std::mem::take(&mut *lock(&self.ending));
        let ended = changing.change(|_| {
            let mut batch = Batch::new();
            all.iter().for_each(|(held, _)| held.end(&mut batch));
            Ok::<_, AccountsError>(Decided {
                batch,
                news: News {
                    users: Vec::new(),
                    sessions: all.iter().map(|(held, _)| held.hash).collect(),
                },
                changes: Vec::new(),
                outcome: (),
            })
        });
        let ended = ended.await.map(drop).map_err(AccountsError::into_commit);
        for (_, tell) in all {
            // The caller may have been dropped.
            let _ = tell.send(ended.clone());
        }
        ended
    }

    /// Returns a user's sessions, oldest first; `own` is the token of the current one.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn of(
        &self,
        account: &Account,
        own: Option<&str>,
        now: i64,
    ) -> Result<Vec<SessionLine>, StoreError> {
        let own = own.map(hash_secret);
        let live = self.live(account, now)?.into_iter();
        Ok(live
            .map(|held| SessionLine {
                id: id_of(&held.hash),
                started: held.session.started_us / SECOND,
                used: held.session.used,
                is_own: own == Some(held.hash),
            })
            .collect())
    }

    /// Returns a user's valid sessions, with their last use as far as this server knows.
    fn live(&self, account: &Account, now: i64) -> Result<Vec<HeldSession>, StoreError> {
        let mut all = self.all_of(account.name.key())?;
        for held in &mut all {
            let used = self
                .known
                .sessions
                .with(&held.hash, |cached| Some(cached.session.used));
            held.session.used = held.session.used.max(used.unwrap_or_default());
        }
        all.retain(|held| !self.is_over(account, &held.session, now));
        Ok(all)
    }

    fn all_of(&self, user: &str) -> Result<Vec<HeldSession>, StoreError> {
        let all = self
            .store
            .read(|snapshot| HeldSession::all_of(snapshot, user));
        all.map_err(unreadable)
    }

    /// Ends a user's session with this id; returns whether it existed.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn end_one(&self, account: &Account, id: &str) -> Result<bool, CommitError> {
        let mut all = self.all_of(account.name.key())?.into_iter();
        match all.find(|held| id_of(&held.hash) == id) {
            Some(held) => self.end_held(held).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// The number of sessions cached here, including those not yet known to have ended.
    pub fn count(&self) -> usize {
        self.known.sessions.count()
    }

    fn note(&self, hash: SecretHash) {
        let mut to_note = lock(&self.to_note);
        if to_note.len() < MOST_TO_NOTE {
            to_note.push(hash);
        }
    }

    /// Stores the queued uses of sessions. Blocks.
    ///
    /// # Errors
    /// Errors of the store; those uses are stored with later ones.
    pub fn store_uses(&self, now: i64) -> Result<(), CommitError> {
        let used = std::mem::take(&mut *lock(&self.to_note));
        for some in used.chunks(NOTED_AT_ONCE) {
            if self.store_some_uses(some, now)? {
                continue;
            }
            for one in some {
                // It was ended meanwhile, or another server has stored a use.
                let _is_stored = self.store_some_uses(std::slice::from_ref(one), now)?;
            }
        }
        Ok(())
    }

    /// Returns false if a session was changed meanwhile.
    fn store_some_uses(&self, used: &[SecretHash], now: i64) -> Result<bool, CommitError> {
        let batch = self.store.read(|snapshot| {
            let mut batch = Batch::new();
            for hash in used {
                let held = HeldSession::find(snapshot, hash)?;
                if let Some(held) = held.filter(|held| held.session.used < now) {
                    let used = Session {
                        used: now,
                        ..held.session
                    };
                    held.replace(&mut batch, &used);
                }
            }
            Ok(batch)
        });
        let batch = batch.map_err(unreadable)?;
        if batch.is_empty() {
            return Ok(true);
        }
        match self.store.commit_blocking(batch) {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes expired sessions. Blocks.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn clear(&self, now: i64) -> Result<(), CommitError> {
        let mut last = None;
        loop {
            let some = self
                .store
                .read(|snapshot| HeldSession::some(snapshot, last.as_ref(), CLEARED_AT_ONCE));
            let some = some.map_err(unreadable)?;
            let mut batch = Batch::new();
            for held in &some {
                let account = self.known.find(&held.user)?;
                let is_live = account.is_some_and(|it| !self.is_over(&it, &held.session, now));
                if !is_live {
                    held.end(&mut batch);
                }
            }
            if !batch.is_empty() {
                self.store.commit_blocking(batch)?;
            }
            let is_end = some.len() < CLEARED_AT_ONCE;
            last = some.into_iter().next_back();
            if is_end {
                return Ok(());
            }
        }
    }
}

fn unreadable(error: ReadError) -> StoreError {
    match error {
        ReadError::Store(error) => error,
        error @ ReadError::Corrupt { .. } => StoreError::Database(Arc::new(error)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use groupware_people::UserName;
    use groupware_store::StoreOptions;

    use super::*;
    use crate::auth::{Auth, Settings};

    const HOUR: i64 = 3600;

    fn auth(store: &Store) -> Auth {
        let settings = Settings {
            session_lifetime: Lifetime {
                idle: Duration::from_secs(3600),
                total: Duration::from_secs(3 * 3600),
            },
            ..Settings::default()
        };
        Auth::start(store, &settings).unwrap()
    }

    fn store() -> Store {
        Store::memory(StoreOptions::default()).unwrap()
    }

    async fn register(auth: &Auth, user: &str) -> Arc<Account> {
        let name = UserName::parse(user).unwrap();
        let added = auth.accounts.add(name, "hash".to_owned(), false, 0);
        added.await.unwrap()
    }

    async fn start(auth: &Auth, account: &Arc<Account>, now: i64) -> String {
        let stamp = account.credentials().stamp;
        let now_us = now * SECOND;
        auth.sessions.start(account, stamp, now_us).await.unwrap()
    }

    fn is_there(auth: &Auth, token: &str, now: i64) -> bool {
        auth.sessions.find(token, now).unwrap().is_some()
    }

    #[tokio::test]
    async fn a_session_lasts_while_it_is_used() {
        let auth = auth(&store());
        let ada = register(&auth, "ada").await;
        let token = start(&auth, &ada, 0).await;
        for at in [HOUR / 2, HOUR, HOUR * 3 / 2] {
            assert!(is_there(&auth, &token, at));
        }
        assert!(!is_there(&auth, "", HOUR));
        assert!(!is_there(&auth, &token, HOUR * 5 / 2));
        assert_eq!(auth.sessions.count(), 0);
    }

    #[tokio::test]
    async fn a_session_does_not_last_for_ever() {
        let auth = auth(&store());
        let ada = register(&auth, "ada").await;
        let token = start(&auth, &ada, 0).await;
        for half_hours in 1..6 {
            assert!(is_there(&auth, &token, HOUR / 2 * half_hours));
        }
        assert!(!is_there(&auth, &token, HOUR * 3));
    }

    /// Without a write for each request.
    #[tokio::test]
    async fn what_was_used_lately_is_in_use_after_a_restart() {
        let store = store();
        let before = auth(&store);
        let ada = register(&before, "ada").await;
        let token = start(&before, &ada, 0).await;
        let written = store.stats().commits;
        for second in 1..HOUR / 2 {
            assert!(is_there(&before, &token, second));
        }
        // On a thread that may block on the store, as jobs do.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                before.sessions.store_uses(HOUR / 2).unwrap();
                before.sessions.store_uses(HOUR / 2).unwrap();
            });
        });
        assert_eq!(store.stats().commits, written + 1);
        let after = auth(&store);
        assert!(is_there(&after, &token, HOUR * 4 / 3));
        let never = auth(&store);
        assert!(!is_there(&never, &token, HOUR * 2));
    }

    #[tokio::test]
    async fn a_request_reads_nothing_for_its_session() {
        let store = store();
        let auth = auth(&store);
        let ada = register(&auth, "ada").await;
        let token = start(&auth, &ada, 0).await;
        // The store is not read, so its content doesn't matter.
        let mut batch = Batch::new();
        batch.delete_partition("$sessions");
        store.commit(batch).await.unwrap();
        assert!(is_there(&auth, &token, 1));
        auth.sessions.end(&token).await.unwrap();
        assert!(!is_there(&auth, &token, 1));
    }

    #[tokio::test]
    async fn users_see_and_end_sessions_one_by_one() {
        let auth = auth(&store());
        let (ada, eve) = (register(&auth, "ada").await, register(&auth, "eve").await);
        let sessions = &auth.sessions;
        let one = start(&auth, &ada, 0).await;
        let two = start(&auth, &ada, HOUR / 2).await;
        let other = start(&auth, &eve, HOUR / 2).await;
        let lines = sessions.of(&ada, Some(&two), HOUR * 3 / 4).unwrap();
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.started, line.used, line.is_own))
            .collect();
        assert_eq!(told, [(0, 0, false), (HOUR / 2, HOUR / 2, true)]);
        let is_eves = sessions.end_one(&eve, &lines[0].id).await.unwrap();
        assert!(!is_eves, "it is another user's");
        assert!(sessions.end_one(&ada, &lines[0].id).await.unwrap());
        assert!(!sessions.end_one(&ada, &lines[0].id).await.unwrap());
        assert!(!is_there(&auth, &one, HOUR / 2));
        let three = start(&auth, &ada, HOUR / 2).await;
        let ends = crate::Ends::AllBut(&two);
        auth.accounts.end_sessions("ada", ends).await.unwrap();
        assert!(!is_there(&auth, &three, HOUR / 2));
        assert!(is_there(&auth, &two, HOUR / 2) && is_there(&auth, &other, HOUR / 2));
        assert_eq!(sessions.of(&ada, None, HOUR).unwrap().len(), 1);
        assert!(sessions.of(&ada, None, HOUR * 9).unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_oldest_session_of_a_user_makes_room() {
        let auth = auth(&store());
        let ada = register(&auth, "ada").await;
        let mut tokens = Vec::new();
        for now in 0..=MOST_OF_USER as i64 {
            tokens.push(start(&auth, &ada, now).await);
        }
        let now = HOUR / 2;
        assert!(!is_there(&auth, &tokens[0], now));
        assert!(tokens[1..].iter().all(|token| is_there(&auth, token, now)));
    }

    #[tokio::test]
    async fn all_who_end_sessions_at_once_are_told() {
        let auth = Arc::new(auth(&store()));
        let ada = register(&auth, "ada").await;
        let mut ends = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let token = start(&auth, &ada, 0).await;
            let auth = Arc::clone(&auth);
            ends.spawn(async move {
                auth.sessions.end(&token).await.unwrap();
                assert!(!is_there(&auth, &token, 1));
            });
        }
        while let Some(ended) = ends.join_next().await {
            ended.unwrap();
        }
        assert!(auth.sessions.of(&ada, None, 1).unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_over_is_cleared_away() {
        let store = store();
        let auth = auth(&store);
        let (ada, eve) = (register(&auth, "ada").await, register(&auth, "eve").await);
        for _ in 0..3 {
            start(&auth, &ada, 0).await;
            start(&auth, &eve, 0).await;
        }
        let token = start(&auth, &ada, HOUR).await;
        auth.accounts
            .end_sessions("eve", crate::Ends::All)
            .await
            .unwrap();
        // It may block on the writer, which asynchronous tasks must not.
        let cleared = std::thread::scope(|scope| {
            let clearing = scope.spawn(|| auth.sessions.clear(HOUR));
            clearing.join().unwrap()
        });
        cleared.unwrap();
        let left = store
            .read(|snapshot| HeldSession::some(snapshot, None, 100))
            .unwrap();
        assert_eq!(left.len(), 1);
        assert!(is_there(&auth, &token, HOUR));
    }

    /// A user must be able to sign in to free room.
    #[tokio::test]
    async fn a_full_store_keeps_nobody_out() {
        let store = Store::memory(StoreOptions::default().quota_bytes(600)).unwrap();
        let auth = auth(&store);
        let ada = register(&auth, "ada").await;
        let mut batch = Batch::new();
        batch.put("ada", "m/x", vec![0; 700]);
        let full = store.commit(batch).await.unwrap_err();
        assert!(matches!(full, CommitError::Full), "{full}");
        for _ in 0..20 {
            let token = start(&auth, &ada, 0).await;
            assert!(is_there(&auth, &token, 1));
            auth.sessions.end(&token).await.ok();
        }
    }
}
