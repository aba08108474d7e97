//! The accounts as kept in the store, and the only place that changes them.

use std::sync::Arc;

use groupware_people::{self as people, Account, Change, NewUser, Registered, UserName, Users};
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
    /// Removes the data of those who are gone.
    departing: Mutex<()>,
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
            departing: Mutex::default(),
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
        for user in &users {
            self.finish_departure(user.name.key()).await?;
        }
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
        self.finish_departure(name.key()).await?;
        let to = (hash, pad_bytes);
        let (batch, change) = people::set_password(&self.directory, name, to, self.max_users, now)?;
        self.store.commit(batch).await?;
        let mut published = people::publish(&self.directory, [change]);
        Ok(published.pop().expect("one change gives one result"))
    }

    /// Registers a user with the hash of a password, and perhaps the right to manage users.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn add(
        &self,
        name: UserName,
        hash: String,
        admin: bool,
        now: i64,
    ) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        self.finish_departure(name.key()).await?;
        let with = (hash, admin);
        let (batch, change) = people::add(&self.directory, name, with, self.max_users, now)?;
        let account = Arc::clone(change.account());
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(account)
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
        self.decide(|users| people::change_password(users, name, hash))
            .await
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
        self.decide(|users| people::remove_app_password(users, name, id))
            .await
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
        self.decide(|users| people::set_disabled(users, name, disabled))
            .await
    }

    /// Lets a user manage users, or not any more.
    ///
    /// # Errors
    /// The decision's, and the store's.
    pub async fn set_admin(&self, name: &str, admin: bool) -> Result<Arc<Account>, AccountsError> {
        self.decide(|users| people::set_admin(users, name, admin))
            .await
    }

    /// Decides about one account and commits; nobody else changes accounts meanwhile.
    async fn decide(
        &self,
        decide: impl FnOnce(&Users) -> Result<(Batch, Change), people::AccountError>,
    ) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let (batch, change) = decide(&self.directory)?;
        let account = Arc::clone(change.account());
        self.store.commit(batch).await?;
        people::publish(&self.directory, [change]);
        Ok(account)
    }

    /// Removes a user, and then all the user's data, some at a time: nobody who writes meanwhile waits
    /// for long.
    ///
    /// # Errors
    /// When there is no such user, and the store's.
    pub async fn delete(&self, name: &str) -> Result<Arc<Account>, AccountsError> {
        let account = self.dismiss(name).await?;
        self.finish_departure(account.name.key()).await?;
        Ok(account)
    }

    /// Removes a user, whose data is to go next.
    async fn dismiss(&self, name: &str) -> Result<Arc<Account>, AccountsError> {
        let _changing = self.changing.lock().await;
        let account = self.known(name)?;
        self.store.commit(people::delete(&account)).await?;
        self.directory.remove(account.name.key());
        Ok(account)
    }

    /// Removes the data of users who are gone, where an end of the server came between.
    ///
    /// # Errors
    /// The store's.
    pub async fn finish_departures(&self) -> Result<(), AccountsError> {
        for key in self.store.read(people::leaving)? {
            self.finish_departure(&key).await?;
        }
        Ok(())
    }

    /// Removes the data of a user who is gone, if there is any.
    async fn finish_departure(&self, key: &str) -> Result<(), AccountsError> {
        let is_leaving = || {
            self.store
                .read(|snapshot| people::is_leaving(snapshot, key))
        };
        if !is_leaving()? {
            return Ok(());
        }
        let _departing = self.departing.lock().await;
        // Somebody else may have been at it; and a new user of the name may be there since.
        if !is_leaving()? {
            return Ok(());
        }
        self.let_go_of_shared(key).await?;
        self.store.remove_in_slices(key, b"", None).await?;
        self.store.commit(people::left(key)).await?;
        Ok(())
    }

    /// Removes a user's data, filler apart.
    ///
    /// # Errors
    /// When there is no such user, and the store's.
    pub async fn reset(&self, name: &str) -> Result<(), AccountsError> {
        let account = self.known(name)?;
        let key = account.name.key();
        self.let_go_of_shared(key).await?;
        for (from, to) in people::ranges_of_reset() {
            self.store.remove_in_slices(key, from, Some(to)).await?;
        }
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
        const AT_ONCE: usize = 200;
        // Others may let go of the same at the same moment; each round one of them gets on.
        const ROUNDS: u32 = 1000;
        let mut lost = 0;
        while lost < ROUNDS {
            let (batch, more) = self
                .store
                .read(|snapshot| groupware_mail::release_shared(snapshot, mailbox, AT_ONCE))
                .map_err(|error| AccountsError::Mailbox(error.to_string()))?;
            if batch.is_empty() {
                return Ok(());
            }
            match self.store.commit(batch).await {
                Ok(_) if !more => return Ok(()),
                Ok(_) => {}
                Err(CommitError::Conflict { .. }) => lost += 1,
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

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    fn new_user() -> Vec<NewUser> {
        vec![NewUser {
            name: UserName::parse("ada").unwrap(),
            app_password: None,
            pad_bytes: 0,
        }]
    }

    fn has_data(store: &Store) -> bool {
        let found = store.read(|snapshot| snapshot.get("ada", b"m/x"));
        found.map_err(|error: StoreError| error).unwrap().is_some()
    }

    #[tokio::test]
    async fn a_departure_that_was_cut_short_is_finished_before_the_name_is_used_again() {
        for by_registering in [false, true] {
            let store = Store::memory(StoreOptions::default()).unwrap();
            let accounts = Accounts::load(store.clone(), "x", 10).unwrap();
            accounts.register(new_user(), 0).await.unwrap();
            let mut batch = Batch::new();
            batch.put("ada", "m/x", "mail");
            store.commit(batch).await.unwrap();
            // The server ends once the user is gone.
            accounts.dismiss("ada").await.unwrap();
            assert!(has_data(&store));
            let accounts = Accounts::load(store.clone(), "x", 10).unwrap();
            assert!(accounts.directory().find("ada").is_none());
            match by_registering {
                true => drop(accounts.register(new_user(), 0).await.unwrap()),
                false => accounts.finish_departures().await.unwrap(),
            }
            assert!(!has_data(&store));
            assert!(store.read(people::leaving).unwrap().is_empty());
            // What comes later is a new user's.
            accounts.register(new_user(), 0).await.unwrap();
            let mut batch = Batch::new();
            batch.put("ada", "m/x", "mail");
            store.commit(batch).await.unwrap();
            accounts.finish_departures().await.unwrap();
            assert!(has_data(&store));
        }
    }
}
