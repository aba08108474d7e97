//! The users of a server: their accounts, their authentication, and changes of both.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use groupware_people::{Account, Directory, SecretHash, Users};
use groupware_runtime::clock::Clock;
use groupware_runtime::random;
use groupware_store::{Store, StoreError};

use crate::account_cache::AccountCache;
use crate::accounts::{Accounts, AccountsError};
use crate::cache::Cache;
use crate::passwords::Passwords;
use crate::sessions::{Lifetime, Sessions};
use crate::throttle::Throttle;

/// The settings of a server that authentication needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The domain of the users' addresses.
    pub domain: String,
    /// The organization that canonical names of users may have (`CN=ada/O=Acme`).
    pub organization: Option<String>,
    /// The maximum number of users.
    pub users: usize,
    /// The maximum number of passwords hashed concurrently.
    pub hashes_at_once: usize,
    /// The maximum number of cached sessions; others are looked up in the store.
    pub sessions: usize,
    /// Whether other servers may change the same store.
    pub is_shared: bool,
    /// The lifetime of sessions.
    pub session_lifetime: Lifetime,
    /// Failed sign-ins as one user from one address before further ones must wait.
    pub sign_in_failures: u32,
    /// The time after which one failed sign-in is forgotten.
    pub sign_in_forgiveness: Duration,
    /// The hash of the administrator's token.
    pub admin_token: SecretHash,
}

impl Default for Settings {
    /// A small server without an administrator.
    fn default() -> Self {
        Self {
            domain: "localhost".into(),
            organization: None,
            users: 1000,
            hashes_at_once: 1,
            sessions: 1000,
            is_shared: false,
            session_lifetime: Lifetime {
                idle: Duration::from_secs(3600),
                total: Duration::from_secs(24 * 3600),
            },
            sign_in_failures: 10,
            sign_in_forgiveness: Duration::from_secs(30),
            admin_token: random::bytes(),
        }
    }
}

/// Authenticates users.
#[derive(Debug)]
pub struct Auth {
    pub(crate) known: Arc<AccountCache>,
    /// Changes users.
    pub accounts: Accounts,
    /// Hashes and verifies passwords.
    pub passwords: Passwords,
    /// The sessions of users.
    pub sessions: Sessions,
    pub(crate) throttle: Throttle,
    /// The clock for throttling and for verified passwords.
    pub(crate) clock: Clock,
    pub(crate) admin_token: SecretHash,
}

impl Auth {
    /// Reads the accounts of a store.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn start(store: &Store, settings: &Settings) -> Result<Self, AccountsError> {
        let cache = Cache::new(settings.sessions);
        let nobody = Users::new(&settings.domain).with_organization(settings.organization.clone());
        let known = AccountCache::load(store.clone(), nobody, cache, settings.is_shared)?;
        let known = Arc::new(known);
        let lifetime = settings.session_lifetime;
        Ok(Self {
            accounts: Accounts::new(store.clone(), Arc::clone(&known), settings.users),
            passwords: Passwords::new(settings.hashes_at_once),
            sessions: Sessions::new(store.clone(), Arc::clone(&known), lifetime),
            known,
            throttle: Throttle::new(settings.sign_in_failures, settings.sign_in_forgiveness),
            clock: Clock::start(),
            admin_token: settings.admin_token,
        })
    }

    /// Ensures that the cache of users and sessions, which other servers may change, is valid. May
    /// wait for the store.
    ///
    /// # Errors
    /// If the store can't be read, or could not be read recently.
    pub fn ensure_ready(&self) -> Result<(), StoreError> {
        self.known.ensure_ready()
    }

    /// The local users in the account cache.
    pub fn directory(&self) -> &Users {
        &self.known.users
    }

    /// The local users, for decisions: users that are missing in the cache are looked up in the store.
    pub fn people(&self) -> &dyn Directory {
        &*self.known
    }

    /// Finds a user by name, case-insensitively, even if another server has registered the user
    /// just now.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn find(&self, name: &str) -> Result<Option<Arc<Account>>, StoreError> {
        self.known.find(name)
    }

    /// Returns a lookup of registration times, in seconds since 1970. The names come from a record
    /// that was read before, so one read of the store is enough for all users missing in the cache.
    pub fn registrations(&self) -> impl Fn(&str) -> Result<Option<i64>, StoreError> + '_ {
        let has_looked = Cell::new(false);
        move |name| match self.directory().registered(name)? {
            None if !has_looked.replace(true) => self.people().registered(name),
            known => Ok(known),
        }
    }

    /// Reads the changes of users and sessions by other servers. Blocks.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn keep_up(&self) -> Result<(), StoreError> {
        self.known.look_again(self.known.seen()).map(drop)
    }

    /// Whether other servers may change the same store.
    pub fn is_shared(&self) -> bool {
        self.known.is_shared()
    }
}
