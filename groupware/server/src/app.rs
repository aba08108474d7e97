//! What every route can reach: the store, the users, the sessions, the clock, random bits.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_store::{Batch, CommitError, Committed, Store, StoreError};

use crate::access_log::AccessLog;
use crate::accounts::{Accounts, Directory, Passwords};
use crate::clock::{self, Clock};
use crate::metrics::Metrics;
use crate::random::{self, SecretHash};
use crate::sessions::Sessions;
use crate::stream::Streams;
use crate::throttle::Throttle;
use crate::tus::OpenUploads;
use crate::{LookupLayout, lookup, worker};

/// The parts of a running server, shared by its threads.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) content: ContentStore,
    pub(crate) streams: Streams,
    pub(crate) uploads: OpenUploads,
    pub(crate) accounts: Accounts,
    pub(crate) passwords: Passwords,
    pub(crate) sessions: Sessions,
    pub(crate) throttle: Throttle,
    pub(crate) lookup_rate: lookup::Rate,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
}

/// What routes need to know of the configuration.
pub(crate) struct Settings {
    pub(crate) admin_token: SecretHash,
    /// Proves that a form comes from a page of this server; new at each start.
    pub(crate) form_key: [u8; 32],
    /// Others than this machine can reach the server.
    pub(crate) exposed: bool,
    pub(crate) secure_cookies: bool,
    pub(crate) lookup: lookup::Access,
    pub(crate) lookup_layout: LookupLayout,
    pub(crate) mailbox_pad_bytes: u64,
    pub(crate) mail_quota_bytes: Option<u64>,
    pub(crate) body_bytes: usize,
    pub(crate) admin_body_bytes: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) mail_body_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) admin_timeout: Duration,
    pub(crate) attachment_bytes: u64,
    pub(crate) quota_bytes: u64,
    pub(crate) upload_lifetime_s: i64,
}

/// A handle on the running server, one per request.
#[derive(Clone)]
pub(crate) struct AppState(Arc<App>);

impl AppState {
    pub(crate) fn new(app: App) -> Self {
        Self(Arc::new(app))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Commits what a request changes; on this thread, if it serves no other connection. Who connects
    /// meanwhile waits for the disk once.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        match worker::serves_one() {
            true => self.store.commit_here(batch).await,
            false => self.store.commit(batch).await,
        }
    }

    /// Who the local users are.
    pub(crate) fn directory(&self) -> &Directory {
        self.accounts.directory()
    }

    /// Seconds since 1970.
    pub(crate) fn now_s(&self) -> i64 {
        clock::unix_seconds()
    }

    /// Microseconds since 1970.
    pub(crate) fn now_us(&self) -> i64 {
        clock::unix_micros()
    }

    /// 128 random bits, to make identifiers from.
    pub(crate) fn random_bits(&self) -> u128 {
        u128::from_le_bytes(random::bytes())
    }
}

impl Deref for AppState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}

impl groupware_calendar::Directory for AppState {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        self.directory().user(address)
    }

    fn email(&self, user: &str) -> String {
        self.directory().email(user)
    }
}

impl groupware_mail::Directory for AppState {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        groupware_calendar::Directory::user(self.directory(), address)
    }

    fn email(&self, user: &str) -> String {
        groupware_calendar::Directory::email(self.directory(), user)
    }

    fn domain(&self) -> &str {
        self.directory().domain()
    }
}
