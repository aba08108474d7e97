//! Errors of starting a server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use groupware_auth::AccountsError;
use groupware_data::DataError;
use groupware_fixtures::padding;
use groupware_mail::MailError;
use groupware_mailauth::ResolverError;
use groupware_net::TlsError;
use groupware_service::ChangeError;
use groupware_store::{CommitError, StoreError};

/// The reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines can reach the address, and passwords would be unprotected.
    #[error("refusing to listen on {0} without TLS, since others than this machine can reach it")]
    Exposed(SocketAddr),
    /// A setting is out of range.
    #[error("http_threads is {0}; it must be 1 to 1024")]
    Threads(usize),
    /// A new user's account would exceed the maximum size.
    #[error("mailbox_pad_bytes is {0}; it must be at most {max}", max = padding::MAX_BYTES)]
    MailboxPad(u64),
    /// The address can't be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No DNS resolver is available to authenticate mail.
    #[error("{0}; --mail-auth=false does without")]
    Resolver(#[from] ResolverError),
    /// The data can't be opened.
    #[error(transparent)]
    Data(#[from] DataError),
    /// TLS can't be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store rejected a write of the start.
    #[error("cannot write to the store")]
    Commit(#[from] CommitError),
    /// The store can't be started or read.
    #[error("cannot start the store")]
    Store(#[from] StoreError),
    /// Restored accounts can't get new numbers.
    #[error("cannot give mailboxes new numbers after a restore")]
    Restored(#[source] ChangeError<MailError>),
    /// The accounts can't be read.
    #[error("cannot read the accounts: {0}")]
    Accounts(String),
    /// The admin token can't be read or created.
    #[error("cannot read or write the admin token")]
    AdminToken(#[source] io::Error),
    /// The first administrator's name is invalid.
    #[error("{0:?} is no user name: letters, digits, '.', '_', and '-', 64 at most")]
    FirstAdmin(String),
    /// The first administrator's password can't be written.
    #[error("cannot write the first administrator's password")]
    FirstPassword(#[source] io::Error),
    /// The demo data can't be created.
    #[error("cannot fill the mailboxes: {0}")]
    Demo(String),
    /// The port file can't be written.
    #[error("cannot write {}", file.display())]
    PortFile {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store's writer panicked: acknowledged data is safe, and no further write is possible.
    #[error(
        "the store's writer has died of a fault in this program, which the log names above: nothing \
         more can be written. What was acknowledged is safe; start the server again, and report it"
    )]
    Died,
    /// A thread or signal handler can't be set up.
    #[error("cannot start a thread or watch for signals")]
    System(#[source] io::Error),
}

impl ServeError {
    /// Returns true if the settings, or the files they name, are wrong: another start with the same
    /// ones fails again, whatever the machine's state.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Exposed(_)
            | Self::Threads(_)
            | Self::MailboxPad(_)
            | Self::Tls(_)
            | Self::FirstAdmin(_) => true,
            Self::Data(error) => error.is_configuration(),
            Self::AdminToken(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Listen { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            Self::Store(_)
            | Self::Commit(_)
            | Self::Restored(_)
            | Self::Accounts(_)
            | Self::FirstPassword(_)
            | Self::Demo(_)
            | Self::PortFile { .. }
            | Self::Died
            | Self::Resolver(_)
            | Self::System(_) => false,
        }
    }
}

impl From<AccountsError> for ServeError {
    fn from(error: AccountsError) -> Self {
        Self::Accounts(error.to_string())
    }
}
