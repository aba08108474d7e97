//! Decisions about accounts: what is to be stored, and what becomes visible once it is.

use std::ops::ControlFlow;
use std::sync::Arc;

use groupware_store::{Batch, Snapshot, StoreError};

use crate::account::Stored;
use crate::{Account, AppPasswordBits, Credentials, KEPT_PREFIX, UserName, Users};

/// The partition of the accounts; no user can be called that.
const PARTITION: &str = "$accounts";
/// The partition of the names of users who are gone, as long as their data isn't.
const LEAVING: &str = "$leaving";
/// The first key after all that outlives a reset: `0` follows `/`.
const AFTER_KEPT: &[u8] = b"pad0";
/// Beyond every key: those of the domain crates begin with ASCII.
const END: &[u8] = &[0xFF];

/// Why accounts could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// Nobody has this name.
    #[error("there is no user {0}")]
    Unknown(String),
    /// The user has no application password of this name.
    #[error("there is no application password {0}")]
    UnknownAppPassword(String),
    /// The user may have no further application password.
    #[error("the user has as many application passwords as allowed")]
    TooManyAppPasswords,
    /// There is a user of this name.
    #[error("there is a user {0} already")]
    Taken(String),
    /// There may be no further user.
    #[error("the server has as many users as allowed")]
    TooManyUsers,
    /// A stored record is no account.
    #[error("the account record {0} is damaged")]
    Damaged(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A user to register.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// What the user is to be called.
    pub name: UserName,
    /// The label of an application password to make, if one is to be made.
    pub app_password: Option<&'static str>,
    /// Bytes of filler for the mailbox of a user who is new.
    pub pad_bytes: u64,
}

/// A registered user.
#[derive(Debug)]
pub struct Registered {
    /// The user.
    pub account: Arc<Account>,
    /// Whether the user is new.
    pub created: bool,
    /// The text of the application password that was made, which is kept nowhere else.
    pub app_password: Option<String>,
}

/// A change of an account that is to become visible to sign-in once it is stored.
#[derive(Debug)]
pub struct Change {
    registered: Registered,
    credentials: Credentials,
}

/// Reads all accounts into a new directory.
///
/// # Errors
/// The store's, and [`AccountError::Damaged`].
pub fn load(snapshot: &dyn Snapshot, domain: &str) -> Result<Users, AccountError> {
    let directory = Users::new(domain);
    let mut accounts = Vec::new();
    let mut damaged = None;
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
    })?;
    if let Some(key) = damaged {
        return Err(AccountError::Damaged(key));
    }
    directory.insert(accounts);
    Ok(directory)
}

/// Registers users, of whom there may be `most`, in one batch. Those who exist keep what they have,
/// and are to have the filler that they were to have at first; an application password of the same
/// label is replaced.
///
/// # Errors
/// When there are too many users, or application passwords of one.
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
        let (account, created) = find_or_new(directory, user.name, user.pad_bytes, now);
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
            // What a deleted user of the same name may have left by a late write.
            batch.delete_partition(Arc::clone(account.name.key()));
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

/// Sets the hash of a user's password; registers the user, to have so much filler, if need be and if
/// there are fewer than `most`.
///
/// # Errors
/// When there are too many users.
pub fn set_password(
    directory: &Users,
    name: UserName,
    (hash, pad_bytes): (String, u64),
    most: usize,
    now: i64,
) -> Result<(Batch, Change), AccountError> {
    let (account, created) = find_or_new(directory, name, pad_bytes, now);
    if created && directory.len() >= most {
        return Err(AccountError::TooManyUsers);
    }
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.password = Some(hash);
    Ok(keep(account, created, credentials))
}

/// Registers a user with the hash of a password, and perhaps the right to manage users.
///
/// # Errors
/// When there is a user of this name, or there are `most` users.
pub fn add(
    directory: &Users,
    name: UserName,
    (password, admin): (String, bool),
    most: usize,
    now: i64,
) -> Result<(Batch, Change), AccountError> {
    let (account, created) = find_or_new(directory, name, 0, now);
    if !created {
        return Err(AccountError::Taken(account.name.spelling().to_string()));
    }
    if directory.len() >= most {
        return Err(AccountError::TooManyUsers);
    }
    let credentials = Credentials {
        password: Some(password),
        admin,
        ..Credentials::default()
    };
    Ok(keep(account, created, credentials))
}

/// The records of a user with these credentials, and what is told of the change.
fn keep(account: Arc<Account>, created: bool, credentials: Credentials) -> (Batch, Change) {
    let mut batch = Batch::new();
    if created {
        // What a deleted user of the same name may have left by a late write.
        batch.delete_partition(Arc::clone(account.name.key()));
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

/// Makes an application password; gives its id and text too.
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

/// Removes an application password.
///
/// # Errors
/// When there is no such user, or the user has no such password.
pub fn remove_app_password(
    directory: &Users,
    name: &str,
    id: &str,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    let before = credentials.app_passwords.len();
    credentials
        .app_passwords
        .retain(|password| password.id != id);
    match credentials.app_passwords.len() == before {
        true => Err(AccountError::UnknownAppPassword(id.into())),
        false => Ok(replace(account, credentials)),
    }
}

/// Sets the hash of the password of a user who is there.
///
/// # Errors
/// When there is no such user.
pub fn change_password(
    directory: &Users,
    name: &str,
    hash: String,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.password = Some(hash);
    Ok(replace(account, credentials))
}

/// Lets a user not sign in any more, or again.
///
/// # Errors
/// When there is no such user.
pub fn set_disabled(
    directory: &Users,
    name: &str,
    disabled: bool,
) -> Result<(Batch, Change), AccountError> {
    let account = known(directory, name)?;
    let mut credentials = Credentials::clone(&account.credentials());
    credentials.disabled = disabled;
    Ok(replace(account, credentials))
}

/// Lets a user manage users, or not any more.
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

/// Removes a user, and notes that the data is to go. The user is gone once [`Users::remove`] says so.
pub fn delete(account: &Account) -> Batch {
    let key = account.name.key();
    let mut batch = Batch::new();
    batch
        .delete(PARTITION, key.as_bytes())
        .put(LEAVING, key.as_bytes(), "");
    batch
}

/// The names of users who are gone and whose data may not be yet.
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

/// Whether the data of a user of this name, who is gone, may not be yet.
///
/// # Errors
/// The store's.
pub fn is_leaving(snapshot: &dyn Snapshot, key: &str) -> Result<bool, StoreError> {
    Ok(snapshot.get(LEAVING, key.as_bytes())?.is_some())
}

/// Notes that the data of a user who is gone is gone, too.
pub fn left(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.delete(LEAVING, key.as_bytes());
    batch
}

/// Where the records of a mailbox lie that don't outlive a reset: the first key, and the first after.
pub fn ranges_of_reset() -> [(&'static [u8], &'static [u8]); 2] {
    [(b"", KEPT_PREFIX), (AFTER_KEPT, END)]
}

/// Has the batch delete what a mailbox holds besides what outlives a reset.
pub fn clear(batch: &mut Batch, mailbox: &Arc<str>) {
    for (from, to) in ranges_of_reset() {
        batch.delete_range(Arc::clone(mailbox), from, to);
    }
}

/// Makes stored changes visible to sign-in.
pub fn publish(directory: &Users, changes: impl IntoIterator<Item = Change>) -> Vec<Registered> {
    let mut registered = Vec::new();
    for change in changes {
        let Change {
            registered: user,
            credentials,
        } = change;
        user.account.set_credentials(credentials);
        registered.push(user);
    }
    let new = registered.iter().filter(|user| user.created);
    directory.insert(new.map(|user| Arc::clone(&user.account)));
    registered
}

fn known(directory: &Users, name: &str) -> Result<Arc<Account>, AccountError> {
    directory
        .find(name)
        .ok_or_else(|| AccountError::Unknown(name.into()))
}

fn find_or_new(
    directory: &Users,
    name: UserName,
    pad_bytes: u64,
    now: i64,
) -> (Arc<Account>, bool) {
    match directory.find(name.key()) {
        Some(account) => (account, false),
        None => (
            Arc::new(Account::new(name, now, Credentials::default()).padded(pad_bytes)),
            true,
        ),
    }
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

fn decode(value: &[u8]) -> Option<Account> {
    let stored: Stored = serde_json::from_slice(value).ok()?;
    let name = UserName::parse(&stored.name)?;
    let account = Account::new(name, stored.created, stored.credentials);
    Some(account.padded(stored.pad_bytes))
}

impl Change {
    /// The account that is changed.
    pub fn account(&self) -> &Arc<Account> {
        &self.registered.account
    }
}
