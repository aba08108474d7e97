//! Decisions about accounts: the records to store, and the changes to publish once they are stored.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Assert, Batch, Snapshot, StoreError};

use crate::account::{Stored, stamp};
use crate::{Account, AppPasswordBits, Credentials, KEPT_PREFIX, UserName, Users};

/// The partition of the accounts. It is no valid user name.
const PARTITION: &str = "$accounts";
/// The partition of the names of deleted users whose data is not deleted yet.
const LEAVING: &str = "$leaving";
/// The first key after the keys that outlive a reset: `0` follows `/`.
const AFTER_KEPT: &[u8] = b"pad0";
/// A key after all others: the keys of the domain crates begin with ASCII.
const END: &[u8] = &[0xFF];

/// Why accounts could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// No user has this name.
    #[error("there is no user {0}")]
    Unknown(String),
    /// The user has no application password of this name.
    #[error("there is no application password {0}")]
    UnknownAppPassword(String),
    /// The user may have no further application password.
    #[error("the user has as many application passwords as allowed")]
    TooManyAppPasswords,
    /// A user with this name exists already.
    #[error("there is a user {0} already")]
    Taken(String),
    /// The server has the maximum number of users.
    #[error("the server has as many users as allowed")]
    TooManyUsers,
    /// A stored record is not a valid account.
    #[error("the account record {0} is damaged")]
    Damaged(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A user to register.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// The name of the user.
    pub name: UserName,
    /// The label of the application password to generate, if any.
    pub app_password: Option<&'static str>,
    /// The bytes of filler for a new user's account.
    pub pad_bytes: u64,
}

/// A registered user.
#[derive(Debug)]
pub struct Registered {
    /// The user.
    pub account: Arc<Account>,
    /// True if the user is new.
    pub created: bool,
    /// The text of the generated application password. It is stored nowhere else.
    pub app_password: Option<String>,
}

/// A change of an account to publish to sign-in once it is stored.
#[derive(Debug)]
pub struct Change {
    registered: Registered,
    credentials: Credentials,
}

/// Reads all accounts into an empty directory.
///
/// # Errors
/// The store's, and [`AccountError::Damaged`].
pub fn load(snapshot: &dyn Snapshot, directory: Users) -> Result<Users, AccountError> {
    directory.insert(read_all(snapshot)?.into_iter().map(Arc::new));
    Ok(directory)
}

/// Reads all users.
pub(crate) fn read_all(snapshot: &dyn Snapshot) -> Result<Vec<Account>, AccountError> {
    let (mut accounts, mut wrong) = (Vec::new(), None);
    snapshot.scan(PARTITION, b"", None, usize::MAX, &mut |key, record| {
        match decode(key, &record.value) {
            Ok(account) => accounts.push(account),
            Err(error) => wrong = Some(error),
        }
        match wrong {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    wrong.map_or(Ok(accounts), Err)
}

/// A user's key, and the user if it exists.
pub(crate) type Keyed = (Arc<str>, Option<Account>);

/// Reads users by their keys.
pub(crate) fn read(
    snapshot: &dyn Snapshot,
    keys: BTreeSet<Arc<str>>,
) -> Result<Vec<Keyed>, AccountError> {
    let wanted: Vec<_> = keys.iter().map(|key| (PARTITION, key.as_bytes())).collect();
    let records = snapshot.get_many(&wanted)?;
    let decoded = keys.into_iter().zip(records).map(|(key, record)| {
        let account = record.map(|record| decode(key.as_bytes(), &record.value));
        Ok((key, account.transpose()?))
    });
    decoded.collect()
}

/// Registers users in one batch, up to `most` users in total. Existing users keep their records and the filler size
/// they were registered with; an application password with the same label is replaced.
///
/// # Errors
/// When there are too many users, or a user has too many application passwords.
pub fn register(
    directory: &Users,
    users: Vec<NewUser>,
    most: usize,
    now: i64,
    mut bits: impl FnMut() -> AppPasswordBits,
) -> Result<(Batch, Vec<Change>), AccountError> {
    let mut batch = Batch::new();
    let mut changes: Vec<Change> = Vec::with_capacity(users.len());
    for user in users {
        let new = (user.pad_bytes, now, first_bits(bits()));
        let (account, created) = find_or_new(directory, user.name, new);
        let mut credentials = Credentials::clone(&account.credentials());
        let app_password = match user.app_password {
            Some(label) => Some(
                credentials
                    .new_app_password(label, now, &bits())
                    .ok_or(AccountError::TooManyAppPasswords)?
                    .1,
            ),
            None => None,
        };
        if created {
            make_place(&mut batch, account.name.key());
        }
        if created || app_password.is_some() {
            put(&mut batch, &account, &credentials);
        }
        changes.push(Change {
            registered: Registered {
                account,
                created,
                app_password,
            },
            credentials,
        });
    }
    let new = changes
        .iter()
        .filter(|change| change.registered.created)
        .count();
    match directory.len() + new > most {
        true => Err(AccountError::TooManyUsers),
        false => Ok((batch, changes)),
    }
}

/// Sets the hash of a user's password and ends the user's sessions. Registers the user with this filler size if the
/// user is unknown and there are fewer than `most` users.
///
/// # Errors
/// When there are too many users.
pub fn set_password(
    directory: &Users,
    name: UserName,
    (hash, pad_bytes): (String, u64),
    most: usize,
    (now, stamp): (i64, u64),
) -> Result<(Batch, Change), AccountError> {
    let (account, created) = find_or_new(directory, name, (pad_bytes, now, stamp));
    if created && directory.len() >= most {
        return Err(AccountError::TooManyUsers);
    }
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.password = Some(hash);
    credentials.stamp = stamp;
    Ok(keep(account, created, credentials))
}

/// Registers a user with the hash of a password, and optionally the right to manage users.
///
/// # Errors
/// When there is a user of this name, or there are `most` users.
pub fn add(
    directory: &Users,
    name: UserName,
    (password, admin): (String, bool),
    most: usize,
    (now, stamp): (i64, u64),
) -> Result<(Batch, Change), AccountError> {
    let (account, created) = find_or_new(directory, name, (0, now, stamp));
    if !created {
        return Err(AccountError::Taken(account.name.spelling().to_string()));
    }
    if directory.len() >= most {
        return Err(AccountError::TooManyUsers);
    }
    let credentials = Credentials {
        password: Some(password),
        admin,
        stamp,
        ..Credentials::default()
    };
    Ok(keep(account, created, credentials))
}

/// Asserts that no deletion under this name is pending, as it would delete the new user's data. Deletes at once what a
/// late write of a deleted user may have left.
fn make_place(batch: &mut Batch, key: &Arc<str>) {
    batch
        .assert_absent(LEAVING, key.as_bytes())
        .delete_partition(Arc::clone(key));
}

/// Builds the records of a user with these credentials, and the change to publish.
fn keep(account: Arc<Account>, created: bool, credentials: Credentials) -> (Batch, Change) {
    let mut batch = Batch::new();
    if created {
        make_place(&mut batch, account.name.key());
    }
    put(&mut batch, &account, &credentials);
    let registered = Registered {
        account,
        created,
        app_password: None,
    };
    let change = Change {
        registered,
        credentials,
    };
    (batch, change)
}

/// Generates an application password; returns its id and text too.
///
/// # Errors
/// When there is no such user, or the user has too many.
pub fn add_app_password(
    directory: &Users,
    (name, label): (&str, &str),
    now: i64,
    bits: &AppPasswordBits,
) -> Result<(Batch, Change, (String, String)), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    let made = credentials
        .new_app_password(label, now, bits)
        .ok_or(AccountError::TooManyAppPasswords)?;
    let (batch, change) = replace(account, credentials);
    Ok((batch, change, made))
}

/// Removes an application password and ends all sessions: those that began with it can't be distinguished.
///
/// # Errors
/// When there is no such user, or the user has no such password.
pub fn remove_app_password(
    directory: &Users,
    name: &str,
    id: &str,
    stamp: u64,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    let before = credentials.app_passwords.len();
    credentials
        .app_passwords
        .retain(|password| password.id != id);
    credentials.stamp = stamp;
    match credentials.app_passwords.len() == before {
        true => Err(AccountError::UnknownAppPassword(id.into())),
        false => Ok(replace(account, credentials)),
    }
}

/// Sets the hash of an existing user's password and ends the user's sessions.
///
/// # Errors
/// When there is no such user.
pub fn change_password(
    directory: &Users,
    name: &str,
    hash: String,
    stamp: u64,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.password = Some(hash);
    credentials.stamp = stamp;
    Ok(replace(account, credentials))
}

/// Ends all sessions of a user.
///
/// # Errors
/// When there is no such user.
pub fn end_sessions(
    directory: &Users,
    name: &str,
    stamp: u64,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.stamp = stamp;
    Ok(replace(account, credentials))
}

/// Disables or enables sign-in of a user. Disabling ends the user's sessions.
///
/// # Errors
/// When there is no such user.
pub fn set_disabled(
    directory: &Users,
    name: &str,
    disabled: bool,
    stamp: u64,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.disabled = disabled;
    credentials.stamp = match disabled {
        true => stamp,
        false => credentials.stamp,
    };
    Ok(replace(account, credentials))
}

/// Grants or revokes a user's right to manage users.
///
/// # Errors
/// When there is no such user.
pub fn set_admin(
    directory: &Users,
    name: &str,
    admin: bool,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.admin = admin;
    Ok(replace(account, credentials))
}

/// Removes a user and records that the data is to be deleted. [`Users::remove`] then removes the user from memory.
pub fn delete(account: &Account) -> Batch {
    let key = account.name.key();
    let mut batch = Batch::new();
    batch
        .delete(PARTITION, key.as_bytes())
        .put(LEAVING, key.as_bytes(), "");
    batch
}

/// Returns the names of deleted users whose data may not be deleted yet.
///
/// # Errors
/// The store's.
pub fn leaving(snapshot: &dyn Snapshot) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    snapshot.scan(LEAVING, b"", None, usize::MAX, &mut |key, _| {
        names.extend(String::from_utf8(key.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

/// Returns an assert that holds while the data of the deleted user of this name may still exist; `None` if no deletion
/// is pending. Each deletion asserts it: another server may have finished it and registered a new user of the name.
///
/// # Errors
/// The store's.
pub fn departure(snapshot: &dyn Snapshot, key: &str) -> Result<Option<Assert>, StoreError> {
    let record = snapshot.get(LEAVING, key.as_bytes())?;
    Ok(record.map(|record| Assert::Revision {
        partition: LEAVING.into(),
        key: key.into(),
        revision: record.revision,
    }))
}

/// Records that the data of a deleted user is deleted.
pub fn left(key: &str, departure: &Assert) -> Batch {
    let mut batch = Batch::new();
    batch.asserts.push(departure.clone());
    batch.delete(LEAVING, key.as_bytes());
    batch
}

/// The key ranges of an account that a reset deletes, each as first key and exclusive end.
pub fn ranges_of_reset() -> [(&'static [u8], &'static [u8]); 2] {
    [(b"", KEPT_PREFIX), (AFTER_KEPT, END)]
}

/// Adds the deletion of an account's records to the batch, except those that outlive a reset.
pub fn clear(batch: &mut Batch, mailbox: &Arc<str>) {
    for (from, to) in ranges_of_reset() {
        batch.delete_range(Arc::clone(mailbox), from, to);
    }
}

/// Publishes stored changes to sign-in.
pub fn publish(directory: &Users, changes: &[Change]) {
    for change in changes {
        let credentials = change.credentials.clone();
        change.account().set_credentials(credentials);
    }
    let new = changes.iter().filter(|change| change.registered.created);
    directory.insert(new.map(|change| Arc::clone(change.account())));
}

fn known(directory: &Users, name: &str) -> Result<Arc<Account>, AccountError> {
    directory
        .find(name)
        .ok_or_else(|| AccountError::Unknown(name.into()))
}

fn find_or_new(
    directory: &Users,
    name: UserName,
    (pad_bytes, now, stamp): (u64, i64, u64),
) -> (Arc<Account>, bool) {
    let found = directory.find(name.key());
    found.map_or_else(
        || {
            let credentials = Credentials {
                stamp,
                ..Credentials::default()
            };
            let new = Account::new(name, now, credentials).padded(pad_bytes);
            (Arc::new(new), true)
        },
        |account| (account, false),
    )
}

fn first_bits(bits: AppPasswordBits) -> u64 {
    let first = bits.first_chunk().copied();
    stamp(first.unwrap_or_default())
}

fn replace(account: Arc<Account>, credentials: Credentials) -> (Batch, Change) {
    let mut batch = Batch::new();
    put(&mut batch, &account, &credentials);
    let registered = Registered {
        account,
        created: false,
        app_password: None,
    };
    let change = Change {
        registered,
        credentials,
    };
    (batch, change)
}

fn put(batch: &mut Batch, account: &Account, credentials: &Credentials) {
    batch.put(
        PARTITION,
        account.name.key().as_bytes(),
        account.stored(credentials),
    );
}

fn decode(key: &[u8], value: &[u8]) -> Result<Account, AccountError> {
    let damaged = || AccountError::Damaged(String::from_utf8_lossy(key).into_owned());
    let stored: Stored = serde_json::from_slice(value).map_err(|_| damaged())?;
    let name = UserName::parse(&stored.name).ok_or_else(damaged)?;
    let account = Account::new(name, stored.created, stored.credentials);
    Ok(account.padded(stored.pad_bytes))
}

impl Change {
    /// The changed account.
    pub fn account(&self) -> &Arc<Account> {
        &self.registered.account
    }

    /// Returns the user and the generated application password.
    pub fn into_registered(self) -> Registered {
        self.registered
    }
}
