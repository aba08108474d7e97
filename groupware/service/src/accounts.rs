//! The accounts as kept in the store, and the only place that changes them.

use std::sync::Arc;

use groupware_people::{self as people, Account, NewUser, Registered, UserName, Users};
use groupware_store::{Batch, CommitError, Store, StoreError};
use tokio::sync::Mutex;

use crate::random;

/// Users whose data goes in one batch when everybody's does.
const RESET_AT_ONCE: usize = 1000;

/// Why accounts could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// It was decided that they may not.
    #[error(transparent)]
    Decided(#[from] people::AccountError),
    /// What a mailbox shares with others can't be read.
    #[error("the mailbox can't be read: {0}")]
    Mailbox(String),
    /// The store did not take the change.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Keeps store and directory in step. Changes wait for each other; look-ups wait for nothing.
#[derive(Debug)]
pub struct Accounts {
    store: Store,
    directory: Users,
    max_users: usize,
    changing: Mutex<()>,
}

impl Accounts {
    /// Reads all accounts. There may be `max_users` of them.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn load(store: Store, domain: &str, max_users: usize) -> Result<Self, AccountsError> {
        let directory = store.read(|snapshot| people::load(snapshot, domain))?;
        Ok(Self {
            store,
            directory,
            max_users,
            changing: Mutex::default(),
        })
    }

    /// Who the local users are.
    pub fn directory(&self) -> &Users {
        &self.directory
    }

    /// Registers users, in one batch, as [`people::register`] decides. The caller writes the filler.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn register(
        &self,
        users: Vec<NewUser>,
        now: i64,
    ) -> Result<Vec<Registered>, AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, changes) =
            people::register(&self.directory, users, self.max_users, now, random::bytes)?;
        self.store.commit(batch).await?;
        Ok(people::publish(&self.directory, changes))
    }

    /// Sets the hash of a user's password; registers the user, to have so much filler, if need
    /// be. The caller writes the filler.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn set_password(
        &self,
        name: UserName,
        hash: String,
        pad_bytes: u64,
        now: i64,
    ) -> Result<Registered, AccountsError> {
        let _changing = self.changing.lock().await;
        let to = (hash, pad_bytes);
        let (batch, change) = people::set_password(&self.directory, name, to, self.max_users, now)?;
        self.store.commit(batch).await?;
        let mut published = people::publish(&self.directory, [change]);
        Ok(published.pop().expect("one change gives one result"))
    }

    /// Sets the hash of the password of a user who is there. The caller ends sessions.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn change_password(
        &self,
        name: &str,
        hash: String,
    ) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, change) = people::change_password(&self.directory, name, hash)?;
        let account = Arc::clone(change.account());
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(account)
    }

    /// Makes an application password; returns its id and text.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn add_app_password(
        &self,
        name: &str,
        label: &str,
        now: i64,
    ) -> Result<(String, String), AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, change, made) =
            people::add_app_password(&self.directory, (name, label), now, &random::bytes())?;
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(made)
    }

    /// Removes an application password.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn remove_app_password(
        &self,
        name: &str,
        id: &str,
    ) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, change) = people::remove_app_password(&self.directory, name, id)?;
        let account = Arc::clone(change.account());
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(account)
    }

    /// Lets a user not sign in any more, or again. The caller ends the user's sessions.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn set_disabled(
        &self,
        name: &str,
        disabled: bool,
    ) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, change) = people::set_disabled(&self.directory, name, disabled)?;
        let account = Arc::clone(change.account());
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(account)
    }

    /// Removes a user and all the user's data.
    ///
    /// # Errors
    /// When there is no such user, and the store's.
    pub async fn delete(&self, name: &str) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let account = self.known(name)?;
        let key = account.name.key();
        self.let_go_of_shared(key).await?;
        self.store.commit(people::delete(&account)).await?;
        self.directory.remove(key);
        Ok(account)
    }

    /// Removes a user's data, filler apart.
    ///
    /// # Errors
    /// When there is no such user, and the store's.
    pub async fn reset(&self, name: &str) -> Result<(), AccountsError> {
        let account = self.known(name)?;
        self.let_go_of_shared(account.name.key()).await?;
        let mut batch = Batch::new();
        people::clear(&mut batch, account.name.key());
        self.store.commit(batch).await?;
        Ok(())
    }

    /// Removes every user's data, filler apart. Returns the number of users.
    ///
    /// # Errors
    /// The store's.
    pub async fn reset_all(&self) -> Result<usize, AccountsError> {
        let keys = self.directory.keys();
        for keys in keys.chunks(RESET_AT_ONCE) {
            let mut batch = Batch::new();
            for key in keys {
                people::clear(&mut batch, key);
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
    async fn let_go_of_shared(&self, mailbox: &str) -> Result<(), AccountsError> {
        const AT_ONCE: usize = 1000;
        // Others may let go of the same at the same moment; each round one of them gets on.
        const ROUNDS: u32 = 1000;
        for _ in 0..ROUNDS {
            let (batch, more) = self
                .store
                .read(|snapshot| groupware_mail::release_shared(snapshot, mailbox, AT_ONCE))
                .map_err(|error| AccountsError::Mailbox(error.to_string()))?;
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

    fn known(&self, name: &str) -> Result<Arc<Account>, people::AccountError> {
        let account = self.directory.find(name);
        account.ok_or_else(|| people::AccountError::Unknown(name.into()))
    }
}

impl From<StoreError> for AccountsError {
    fn from(error: StoreError) -> Self {
        Self::Decided(error.into())
    }
}
