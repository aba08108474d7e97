//! The accounts in the store, and the only place that changes them.

use std::sync::Arc;

use groupware_mail::remove_shared;
use groupware_people::{
    self as people, Account, Change, HeldSession, NewUser, News, Registered, Session,
};
use groupware_people::{SecretHash, UserName, Users, hash_secret};
use groupware_runtime::random;
use groupware_store::{Assert, Batch, CommitError, ReadError, Snapshot, Store, StoreError};
use tokio::sync::Mutex;

use crate::account_cache::{AccountCache, Decided};
use crate::emptying::{Emptying, NotEmptied};

/// The number of users whose data one batch removes when all data is reset.
const RESET_AT_ONCE: usize = 1000;

/// The reason why accounts could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// The decision rejected the change.
    #[error(transparent)]
    Decided(#[from] people::AccountError),
    /// The shared bodies of an account can't be read.
    #[error("the mailbox can't be read: {0}")]
    Mailbox(String),
    /// The data of a removed user of the same name is still being removed.
    #[error("the data of the user who had the name {0} is being removed")]
    Leaving(Arc<str>),
    /// The store rejected the change.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl AccountsError {
    /// Converts to the store's error, where only sessions were changed.
    pub(crate) fn into_commit(self) -> CommitError {
        match self {
            Self::Commit(error) => error,
            Self::Decided(error) => CommitError::Store(error.into()),
            error => CommitError::Store(StoreError::Database(Arc::new(error))),
        }
    }
}

/// The sessions of a user that end with a change.
#[derive(Debug, Clone, Copy)]
pub enum Ends<'a> {
    /// All of them.
    All,
    /// All but the session of this token.
    AllBut(&'a str),
}

impl<'a> Ends<'a> {
    /// All but the session of this token, if there is one.
    pub fn but(token: Option<&'a str>) -> Self {
        token.map_or(Self::All, Self::AllBut)
    }

    fn kept(self) -> Option<SecretHash> {
        match self {
            Self::All => None,
            Self::AllBut(token) => Some(hash_secret(token)),
        }
    }
}

/// Keeps store and directory consistent. Changes wait for each other; lookups wait for nothing.
#[derive(Debug)]
pub struct Accounts {
    store: Store,
    known: Arc<AccountCache>,
    max_users: usize,
    /// Serializes the removal of users' data.
    departing: Mutex<()>,
}

impl Accounts {
    /// Creates the accounts over an account cache, with at most `max_users`.
    pub(crate) fn new(store: Store, known: Arc<AccountCache>, max_users: usize) -> Self {
        Self {
            store,
            known,
            max_users,
            departing: Mutex::default(),
        }
    }

    /// Registers users in one batch by the decision of [`people::register`]. The caller writes the filler.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn register(
        &self,
        users: Vec<NewUser>,
        now: i64,
    ) -> Result<Vec<Registered>, AccountsError> {
        let keys: Vec<_> = users
            .iter()
            .map(|user| Arc::clone(user.name.key()))
            .collect();
        let registered = self.make(&keys, |directory| {
            let decided =
                people::register(directory, users.clone(), self.max_users, now, random::bytes)?;
            let (batch, changes) = decided;
            let key = |change: &Change| Arc::clone(change.account().name.key());
            Ok::<_, AccountsError>(Decided {
                batch,
                news: News {
                    users: changes.iter().map(key).collect(),
                    sessions: Vec::new(),
                },
                changes,
                outcome: (),
            })
        });
        let changes = registered.await?.changes.into_iter();
        Ok(changes.map(Change::into_registered).collect())
    }

    /// Sets the hash of a user's password, and ends the user's sessions; registers an unknown user
    /// with this much filler. The caller writes the filler.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn set_password(
        &self,
        name: UserName,
        hash: String,
        pad_bytes: u64,
        now: i64,
    ) -> Result<Registered, AccountsError> {
        let change = self.make_one(name.key(), |users| {
            let (to, at) = ((hash.clone(), pad_bytes), (now, new_stamp()));
            people::set_password(users, name.clone(), to, self.max_users, at)
        });
        Ok(change.await?.into_registered())
    }

    /// Registers a user with the hash of a password, and optionally the right to manage users.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn add(
        &self,
        name: UserName,
        hash: String,
        admin: bool,
        now: i64,
    ) -> Result<Arc<Account>, AccountsError> {
        let change = self.make_one(name.key(), |users| {
            let (with, at) = ((hash.clone(), admin), (now, new_stamp()));
            people::add(users, name.clone(), with, self.max_users, at)
        });
        Ok(Arc::clone(change.await?.account()))
    }

    /// Sets the hash of an existing user's password, and ends sessions.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn change_password(
        &self,
        name: &str,
        hash: String,
        ends: Ends<'_>,
    ) -> Result<Arc<Account>, AccountsError> {
        self.end(name, ends, |users, stamp| {
            people::change_password(users, name, hash.clone(), stamp)
        })
        .await
    }

    /// Ends sessions of a user.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn end_sessions(&self, name: &str, ends: Ends<'_>) -> Result<(), AccountsError> {
        let ended = self.end(name, ends, |users, stamp| {
            people::end_sessions(users, name, stamp)
        });
        ended.await.map(drop)
    }

    /// Creates an application password; returns its id and text.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn add_app_password(
        &self,
        name: &str,
        label: &str,
        now: i64,
    ) -> Result<(String, String), AccountsError> {
        let decided = self.known.change(|users| {
            let bits = random::bytes();
            let (batch, change, made) = people::add_app_password(users, (name, label), now, &bits)?;
            Ok::<_, AccountsError>(Decided::of_user(batch, change, made))
        });
        Ok(decided.await?.outcome)
    }

    /// Removes an application password, and ends sessions.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn remove_app_password(
        &self,
        name: &str,
        id: &str,
        ends: Ends<'_>,
    ) -> Result<Arc<Account>, AccountsError> {
        self.end(name, ends, |users, stamp| {
            people::remove_app_password(users, name, id, stamp)
        })
        .await
    }

    /// Disables a user, which ends all sessions, or enables the user again.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn set_disabled(
        &self,
        name: &str,
        disabled: bool,
    ) -> Result<Arc<Account>, AccountsError> {
        self.end(name, Ends::All, |users, stamp| {
            people::set_disabled(users, name, disabled, stamp)
        })
        .await
    }

    /// Grants or revokes the right to manage users.
    ///
    /// # Errors
    /// Errors of the decision and of the store.
    pub async fn set_admin(&self, name: &str, admin: bool) -> Result<Arc<Account>, AccountsError> {
        let change = self.decide(|users| people::set_admin(users, name, admin));
        Ok(Arc::clone(change.await?.account()))
    }

    /// Decides about one account and commits, without concurrent changes of accounts.
    async fn decide(
        &self,
        decide: impl Fn(&Users) -> Result<(Batch, Change), people::AccountError>,
    ) -> Result<Change, AccountsError> {
        let decided = self.known.change(|users| {
            let (batch, change) = decide(users)?;
            Ok::<_, AccountsError>(Decided::of_user(batch, change, ()))
        });
        only(decided.await?)
    }

    /// The same where the user may be new.
    async fn make_one(
        &self,
        key: &Arc<str>,
        decide: impl Fn(&Users) -> Result<(Batch, Change), people::AccountError>,
    ) -> Result<Change, AccountsError> {
        let made = self.make(std::slice::from_ref(key), |users| {
            let (batch, change) = decide(users)?;
            Ok(Decided::of_user(batch, change, ()))
        });
        only(made.await?)
    }

    /// Decides about users of whom some may be new, once no data of earlier users with their names
    /// is left. Another server may remove one at any time.
    async fn make(
        &self,
        keys: &[Arc<str>],
        decide: impl Fn(&Users) -> Result<Decided<()>, AccountsError>,
    ) -> Result<Decided<()>, AccountsError> {
        const ROUNDS: u32 = 16;
        let mut rounds = 0;
        loop {
            for key in keys {
                self.finish_departure(key).await?;
            }
            let mut is_first = true;
            let made = self.known.change(|users| {
                if !std::mem::take(&mut is_first) {
                    self.refuse_leaving(keys)?;
                }
                decide(users)
            });
            rounds += 1;
            match made.await {
                Err(AccountsError::Leaving(_)) if rounds < ROUNDS => {}
                made => return made,
            }
        }
    }

    fn refuse_leaving(&self, keys: &[Arc<str>]) -> Result<(), AccountsError> {
        self.store.read(|snapshot| {
            for key in keys {
                if people::departure(snapshot, key)?.is_some() {
                    return Err(AccountsError::Leaving(Arc::clone(key)));
                }
            }
            Ok(())
        })
    }

    /// The same with a new stamp for the user's sessions, except for one that is kept.
    async fn end(
        &self,
        name: &str,
        ends: Ends<'_>,
        decide: impl Fn(&Users, u64) -> Result<(Batch, Change), people::AccountError>,
    ) -> Result<Arc<Account>, AccountsError> {
        let kept = ends.kept();
        let change = self.decide(|users| {
            let stamp = new_stamp();
            let (mut batch, change) = decide(users, stamp)?;
            if let Some(hash) = &kept {
                let keep = |snapshot: &dyn Snapshot| keep(snapshot, (users, name), hash);
                if let Some(held) = self.store.read(keep)? {
                    let session = Session {
                        stamp,
                        ..held.session
                    };
                    held.replace(&mut batch, &session);
                }
            }
            Ok((batch, change))
        });
        Ok(Arc::clone(change.await?.account()))
    }

    /// Removes a user, and then all the user's data in small batches: no concurrent writer waits
    /// for long.
    ///
    /// # Errors
    /// If there is no such user; errors of the store.
    pub async fn delete(&self, name: &str) -> Result<Arc<Account>, AccountsError> {
        let account = self.dismiss(name).await?;
        self.finish_departure(account.name.key()).await?;
        Ok(account)
    }

    /// Removes a user whose data is removed next.
    async fn dismiss(&self, name: &str) -> Result<Arc<Account>, AccountsError> {
        let dismissed = self.known.change(|users| {
            let account = known(users, name)?;
            let mut batch = people::delete(&account);
            let key = account.name.key();
            let sessions = self
                .store
                .read(|snapshot| HeldSession::all_of(snapshot, key));
            for held in sessions.map_err(unreadable)? {
                held.end(&mut batch);
            }
            Ok::<_, AccountsError>(Decided {
                batch,
                news: News {
                    users: vec![Arc::clone(key)],
                    sessions: Vec::new(),
                },
                changes: Vec::new(),
                outcome: account,
            })
        });
        Ok(dismissed.await?.outcome)
    }

    /// Completes removals of users that a stop of the server interrupted.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn finish_departures(&self) -> Result<(), AccountsError> {
        for key in self.store.read(people::leaving)? {
            self.finish_departure(&key).await?;
        }
        Ok(())
    }

    /// Removes the data of a removed user, if there is any.
    async fn finish_departure(&self, key: &str) -> Result<(), AccountsError> {
        let departure = || self.store.read(|snapshot| people::departure(snapshot, key));
        if departure()?.is_none() {
            return Ok(());
        }
        let _departing = self.departing.lock().await;
        // Another task may have finished this, and a new user may have the name since.
        let Some(departure) = departure()? else {
            return Ok(());
        };
        match self.remove_data(key, &departure).await {
            // Another server finished this at the same time.
            Err(AccountsError::Commit(CommitError::Conflict { .. })) => Ok(()),
            done => done,
        }
    }

    async fn remove_data(&self, key: &str, departure: &Assert) -> Result<(), AccountsError> {
        let emptying = Emptying {
            store: self.store.clone(),
            mailbox: key.into(),
            departure: Some(departure.clone()),
        };
        emptying.done().await?;
        self.store.commit(people::left(key, departure)).await?;
        Ok(())
    }

    /// Removes a user's data, except filler.
    ///
    /// # Errors
    /// If there is no such user; errors of the store.
    pub async fn reset(&self, name: &str) -> Result<(), AccountsError> {
        let account = self.known.find(name)?;
        let account = account.ok_or_else(|| people::AccountError::Unknown(name.into()))?;
        let emptying = Emptying {
            store: self.store.clone(),
            mailbox: Arc::clone(account.name.key()),
            departure: None,
        };
        Ok(emptying.done().await?)
    }

    /// Removes every user's data, except filler and concurrent deliveries. Returns the number of users.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn reset_all(&self) -> Result<usize, AccountsError> {
        // List the shared bodies first: every account that holds one is then among the users read below.
        let shared = self.store.read(remove_shared)?;
        self.known.look_again(self.known.seen())?;
        let keys = self.known.users.keys();
        self.clear(&keys).await?;
        // Bodies of concurrently delivered messages stay: some of their copies may exist. The next
        // reset removes bodies without a copy.
        for batch in shared {
            self.store.commit(batch).await?;
        }
        Ok(keys.len())
    }

    /// Removes the data of users, except filler.
    async fn clear(&self, keys: &[Arc<str>]) -> Result<(), AccountsError> {
        for keys in keys.chunks(RESET_AT_ONCE) {
            let mut batch = Batch::new();
            for key in keys {
                people::clear(&mut batch, key);
            }
            self.store.commit(batch).await?;
        }
        Ok(())
    }
}

fn known(users: &Users, name: &str) -> Result<Arc<Account>, people::AccountError> {
    let account = users.find(name);
    account.ok_or_else(|| people::AccountError::Unknown(name.into()))
}

fn only(decided: Decided<()>) -> Result<Change, AccountsError> {
    let change = decided.changes.into_iter().next();
    Ok(change.expect("the change of one user was decided"))
}

fn new_stamp() -> u64 {
    people::stamp(random::bytes())
}

/// Returns the session of this token, if it belongs to the user.
fn keep(
    snapshot: &dyn Snapshot,
    (users, name): (&Users, &str),
    hash: &SecretHash,
) -> Result<Option<HeldSession>, people::AccountError> {
    let account = known(users, name)?;
    let held = HeldSession::find(snapshot, hash).map_err(unreadable)?;
    let is_own =
        |held: &HeldSession| held.user == *account.name.key() && account.admits(held.session.stamp);
    Ok(held.filter(is_own))
}

fn unreadable(error: ReadError) -> people::AccountError {
    match error {
        ReadError::Store(error) => error.into(),
        ReadError::Corrupt { key, .. } => people::AccountError::Damaged(key),
    }
}

impl From<NotEmptied> for AccountsError {
    fn from(error: NotEmptied) -> Self {
        match error {
            NotEmptied::Unreadable(why) => Self::Mailbox(why),
            NotEmptied::Commit(error) => Self::Commit(error),
        }
    }
}

impl From<StoreError> for AccountsError {
    fn from(error: StoreError) -> Self {
        Self::Decided(error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use groupware_mail::{Context, Found, Ids, MailError};
    use groupware_store::StoreOptions;

    use super::*;
    use crate::auth::{Auth, Settings};

    fn new_user() -> Vec<NewUser> {
        vec![NewUser {
            name: UserName::parse("ada").unwrap(),
            app_password: None,
            pad_bytes: 0,
        }]
    }

    fn start(store: &Store) -> Auth {
        Auth::start(store, &Settings::default()).unwrap()
    }

    fn has_data(store: &Store) -> bool {
        let found = store.read(|snapshot| snapshot.get("ada", b"m/x"));
        found.map_err(|error: StoreError| error).unwrap().is_some()
    }

    /// Delivers a message to ada and ben with a shared body.
    async fn deliver(store: &Store, auth: &Auth, seed: u128) {
        let to = ["ada", "ben"].map(str::to_owned).into();
        let message = format!("Subject: {seed}\r\n\r\n{}", "x".repeat(200_000));
        let batch = store.read(|snapshot| {
            let context = Context {
                snapshot,
                directory: auth.people(),
                mailbox: "",
                now_us: 1_000_000,
                ids: Ids::from_random(seed),
                quota_bytes: None,
                full: &BTreeSet::new(),
            };
            let decision = groupware_mail::receive(&context, &to, "", message.as_bytes())?;
            Ok::<_, MailError>(decision.batch)
        });
        store.commit(batch.unwrap()).await.unwrap();
    }

    fn check(store: &Store, mails: u64, bodies: usize) {
        let mut found = Found::default();
        let left = store.read(|snapshot| {
            found.look(snapshot, "ada")?;
            found.look(snapshot, "ben")?;
            found.look_at_shared(snapshot)?;
            Ok::<_, MailError>(remove_shared(snapshot)?)
        });
        assert_eq!(found.wrong, Vec::<String>::new());
        let left: usize = left.unwrap().iter().map(|batch| batch.ops.len()).sum();
        assert_eq!((found.messages, left), (mails, 2 * bodies));
    }

    #[tokio::test]
    async fn a_reset_leaves_alone_what_comes_in_meanwhile() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let auth = start(&store);
        let accounts = &auth.accounts;
        accounts.register(new_user(), 0).await.unwrap();
        let mut ben = new_user();
        ben[0].name = UserName::parse("ben").unwrap();
        accounts.register(ben, 0).await.unwrap();
        deliver(&store, &auth, 1).await;
        check(&store, 2, 1);

        let shared = store.read(remove_shared).unwrap();
        // One message arrives between the two users, and one after both.
        accounts.clear(&["ada".into()]).await.unwrap();
        deliver(&store, &auth, 2).await;
        accounts.clear(&["ben".into()]).await.unwrap();
        deliver(&store, &auth, 3).await;
        for batch in shared {
            store.commit(batch).await.unwrap();
        }
        check(&store, 3, 2);

        assert_eq!(accounts.reset_all().await.unwrap(), 2);
        check(&store, 0, 0);
    }

    #[tokio::test]
    async fn a_departure_that_was_cut_short_is_finished_before_the_name_is_used_again() {
        for by_registering in [false, true] {
            let store = Store::memory(StoreOptions::default()).unwrap();
            let auth = start(&store);
            let accounts = &auth.accounts;
            accounts.register(new_user(), 0).await.unwrap();
            let mut batch = Batch::new();
            batch.put("ada", "m/x", "mail");
            store.commit(batch).await.unwrap();
            // The server stops once the user is removed.
            accounts.dismiss("ada").await.unwrap();
            assert!(has_data(&store));
            let auth = start(&store);
            let accounts = &auth.accounts;
            assert!(auth.directory().find("ada").is_none());
            match by_registering {
                true => drop(accounts.register(new_user(), 0).await.unwrap()),
                false => accounts.finish_departures().await.unwrap(),
            }
            assert!(!has_data(&store));
            assert!(store.read(people::leaving).unwrap().is_empty());
            // Later data belongs to a new user.
            accounts.register(new_user(), 0).await.unwrap();
            let mut batch = Batch::new();
            batch.put("ada", "m/x", "mail");
            store.commit(batch).await.unwrap();
            accounts.finish_departures().await.unwrap();
            assert!(has_data(&store));
        }
    }
}
