//! The accounts as kept in the store, and the only place that changes them.

use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Batch, CommitError, Store, StoreError};
use tokio::sync::{Mutex, MutexGuard};

use super::account::Stored;
use super::{Account, Credentials, Directory, UserName};
use crate::padding;

/// The partition of the accounts; no user can be called that.
const PARTITION: &str = "$accounts";
/// Users whose data goes in one batch when everybody's does.
const RESET_AT_ONCE: usize = 1000;

/// Why accounts could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("there is no user {0}")]
    Unknown(String),
    #[error("there is no application password {0}")]
    UnknownAppPassword(String),
    #[error("the user has as many application passwords as allowed")]
    TooManyAppPasswords,
    #[error("the server has as many users as allowed")]
    TooManyUsers,
    #[error("the account record {0} is damaged")]
    Damaged(String),
    #[error("the mailbox can't be read: {0}")]
    Mailbox(String),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A user to register.
#[derive(Debug, Clone)]
pub(crate) struct NewUser {
    pub(crate) name: UserName,
    /// The label of an application password to make, if one is to be made.
    pub(crate) app_password: Option<&'static str>,
    /// Bytes of filler for the mailbox of a user who is new.
    pub(crate) pad_bytes: u64,
}

/// A registered user.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) account: Arc<Account>,
    /// Whether the user is new.
    pub(crate) created: bool,
    pub(crate) app_password: Option<String>,
}

/// Keeps store and directory in step. Changes wait for each other; look-ups wait for nothing.
#[derive(Debug)]
pub(crate) struct Accounts {
    store: Store,
    directory: Directory,
    max_users: usize,
    changing: Mutex<()>,
}

impl Accounts {
    /// Reads all accounts.
    pub(crate) fn load(store: Store, domain: &str, max_users: usize) -> Result<Self, AccountError> {
        let directory = Directory::new(domain);
        let mut accounts = Vec::new();
        let mut damaged = None;
        store.read(|snapshot| {
            snapshot.scan(PARTITION, b"", None, usize::MAX, &mut |key, record| {
                match decode(&record.value) {
                    Some(account) => accounts.push(Arc::new(account)),
                    None => damaged = Some(String::from_utf8_lossy(key).into_owned()),
                }
                if damaged.is_some() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        })?;
        if let Some(key) = damaged {
            return Err(AccountError::Damaged(key));
        }
        directory.insert(accounts);
        Ok(Self {
            store,
            directory,
            max_users,
            changing: Mutex::default(),
        })
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Registers users, in one batch. Those who exist keep what they have, and are to have the
    /// filler that they were to have at first; an application password of the same label is
    /// replaced. The caller writes the filler.
    pub(crate) async fn register(
        &self,
        users: Vec<NewUser>,
        now: i64,
    ) -> Result<Vec<Registered>, AccountError> {
        let changing = self.changing.lock().await;
        let mut batch = Batch::new();
        let mut changes: Vec<(Registered, Credentials)> = Vec::with_capacity(users.len());
        for user in users {
            let (account, created) = self.find_or_new(user.name, user.pad_bytes, now);
            let mut credentials = Credentials::clone(&account.credentials());
            let app_password = match user.app_password {
                Some(label) => Some(
                    credentials
                        .new_app_password(label, now)
                        .ok_or(AccountError::TooManyAppPasswords)?
                        .1,
                ),
                None => None,
            };
            if created {
                // What a deleted user of the same name may have left by a late write.
                batch.delete_partition(Arc::clone(account.name.key()));
            }
            if created || app_password.is_some() {
                put(&mut batch, &account, &credentials);
            }
            changes.push((
                Registered {
                    account,
                    created,
                    app_password,
                },
                credentials,
            ));
        }
        let new = changes
            .iter()
            .filter(|(registered, _)| registered.created)
            .count();
        if self.directory.len() + new > self.max_users {
            return Err(AccountError::TooManyUsers);
        }
        self.store.commit(batch).await?;
        Ok(self.publish(changes, &changing))
    }

    /// Sets the hash of a user's password; registers the user, to have so much filler, if need
    /// be. The caller writes the filler.
    pub(crate) async fn set_password(
        &self,
        name: UserName,
        hash: String,
        pad_bytes: u64,
        now: i64,
    ) -> Result<Registered, AccountError> {
        let changing = self.changing.lock().await;
        let (account, created) = self.find_or_new(name, pad_bytes, now);
        if created && self.directory.len() >= self.max_users {
            return Err(AccountError::TooManyUsers);
        }
        let mut credentials = Credentials::clone(&account.credentials());
        credentials.password = Some(hash);
        let mut batch = Batch::new();
        if created {
            batch.delete_partition(Arc::clone(account.name.key()));
        }
        put(&mut batch, &account, &credentials);
        self.store.commit(batch).await?;
        let registered = Registered {
            account,
            created,
            app_password: None,
        };
        let mut published = self.publish(vec![(registered, credentials)], &changing);
        Ok(published.pop().expect("one change gives one result"))
    }

    /// Makes an application password; returns its id and text.
    pub(crate) async fn add_app_password(
        &self,
        name: &str,
        label: &str,
        now: i64,
    ) -> Result<(String, String), AccountError> {
        let _changing = self.changing.lock().await;
        let account = self.known(name)?;
        let mut credentials = Credentials::clone(&account.credentials());
        let made = credentials
            .new_app_password(label, now)
            .ok_or(AccountError::TooManyAppPasswords)?;
        self.change(&account, credentials).await?;
        Ok(made)
    }

    /// Removes an application password.
    pub(crate) async fn remove_app_password(
        &self,
        name: &str,
        id: &str,
    ) -> Result<Arc<Account>, AccountError> {
        let _changing = self.changing.lock().await;
        let account = self.known(name)?;
        let mut credentials = Credentials::clone(&account.credentials());
        let before = credentials.app_passwords.len();
        credentials
            .app_passwords
            .retain(|password| password.id != id);
        if credentials.app_passwords.len() == before {
            return Err(AccountError::UnknownAppPassword(id.into()));
        }
        self.change(&account, credentials).await?;
        Ok(account)
    }

    /// Removes a user and all the user's data.
    pub(crate) async fn delete(&self, name: &str) -> Result<Arc<Account>, AccountError> {
        let _changing = self.changing.lock().await;
        let account = self.known(name)?;
        let key = account.name.key();
        self.let_go_of_shared(key).await?;
        let mut batch = Batch::new();
        batch
            .delete(PARTITION, key.as_bytes())
            .delete_partition(Arc::clone(key));
        self.store.commit(batch).await?;
        self.directory.remove(key);
        Ok(account)
    }

    /// Removes a user's data, filler apart.
    pub(crate) async fn reset(&self, name: &str) -> Result<(), AccountError> {
        let account = self.known(name)?;
        self.let_go_of_shared(account.name.key()).await?;
        let mut batch = Batch::new();
        padding::delete_all_but(&mut batch, account.name.key());
        self.store.commit(batch).await?;
        Ok(())
    }

    /// Removes every user's data, filler apart. Returns the number of users.
    pub(crate) async fn reset_all(&self) -> Result<usize, AccountError> {
        let keys = self.directory.keys();
        for keys in keys.chunks(RESET_AT_ONCE) {
            let mut batch = Batch::new();
            for key in keys {
                padding::delete_all_but(&mut batch, key);
            }
            self.store.commit(batch).await?;
        }
        // Last: what is left without holders by a crash before this goes with the next reset.
        let mut batch = Batch::new();
        batch.delete_partition(groupware_mail::keys::SHARED);
        self.store.commit(batch).await?;
        Ok(keys.len())
    }

    /// Lets go of what a mailbox shares with others, before it is emptied.
    async fn let_go_of_shared(&self, mailbox: &str) -> Result<(), AccountError> {
        const AT_ONCE: usize = 1000;
        // Others may let go of the same at the same moment; each round one of them gets on.
        const ROUNDS: u32 = 1000;
        for _ in 0..ROUNDS {
            let (batch, more) = self
                .store
                .read(|snapshot| groupware_mail::release_shared(snapshot, mailbox, AT_ONCE))
                .map_err(|error| AccountError::Mailbox(error.to_string()))?;
            if batch.is_empty() {
                return Ok(());
            }
            match self.store.commit(batch).await {
                Ok(_) if !more => return Ok(()),
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CommitError::Conflict { index: 0 }.into())
    }

    fn known(&self, name: &str) -> Result<Arc<Account>, AccountError> {
        self.directory
            .find(name)
            .ok_or_else(|| AccountError::Unknown(name.into()))
    }

    fn find_or_new(&self, name: UserName, pad_bytes: u64, now: i64) -> (Arc<Account>, bool) {
        match self.directory.find(name.key()) {
            Some(account) => (account, false),
            None => (
                Arc::new(Account::new(name, now, Credentials::default()).padded(pad_bytes)),
                true,
            ),
        }
    }

    async fn change(&self, account: &Account, to: Credentials) -> Result<(), AccountError> {
        let mut batch = Batch::new();
        put(&mut batch, account, &to);
        self.store.commit(batch).await?;
        account.set_credentials(to);
        Ok(())
    }

    /// Makes committed changes visible to sign-in.
    fn publish(
        &self,
        changes: Vec<(Registered, Credentials)>,
        _changing: &MutexGuard<'_, ()>,
    ) -> Vec<Registered> {
        let mut registered = Vec::with_capacity(changes.len());
        for (change, credentials) in changes {
            change.account.set_credentials(credentials);
            registered.push(change);
        }
        let new = registered.iter().filter(|change| change.created);
        self.directory
            .insert(new.map(|change| Arc::clone(&change.account)));
        registered
    }
}

fn put(batch: &mut Batch, account: &Account, credentials: &Credentials) {
    batch.put(
        PARTITION,
        account.name.key().as_bytes(),
        account.stored(credentials),
    );
}

fn decode(value: &[u8]) -> Option<Account> {
    let stored: Stored = serde_json::from_slice(value).ok()?;
    let name = UserName::parse(&stored.name)?;
    let account = Account::new(name, stored.created, stored.credentials);
    Some(account.padded(stored.pad_bytes))
}
