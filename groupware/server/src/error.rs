//! Why a server could not be started.

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

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address can be reached by others, and nothing protects the passwords on the way.
    #[error("refusing to listen on {0} without TLS, since others than this machine can reach it")]
    Exposed(SocketAddr),
    /// A setting is out of range.
    #[error("http_threads is {0}; it must be 1 to 1024")]
    Threads(usize),
    /// A new user's mailbox would be larger than a mailbox may be.
    #[error("mailbox_pad_bytes is {0}; it must be at most {max}", max = padding::MAX_BYTES)]
    MailboxPad(u64),
    /// The address can't be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is nobody to ask where mail comes from.
    #[error("{0}; --mail-auth=false does without")]
    Resolver(#[from] ResolverError),
    /// What it keeps can't be opened.
    #[error(transparent)]
    Data(#[from] DataError),
    /// TLS can't be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store did not take what a start writes.
    #[error("cannot write to the store")]
    Commit(#[from] CommitError),
    /// The store can't be started or read.
    #[error("cannot start the store")]
    Store(#[from] StoreError),
    /// Mailboxes that were put back as they were earlier can't get new numbers.
    #[error("cannot give mailboxes new numbers after a restore")]
    Restored(#[source] ChangeError<MailError>),
    /// The accounts can't be read.
    #[error("cannot read the accounts: {0}")]
    Accounts(String),
    /// The admin token can't be read or made.
    #[error("cannot read or write the admin token")]
    AdminToken(#[source] io::Error),
    /// Nobody can be called what the first administrator is to be called.
    #[error("{0:?} is no user name: letters, digits, '.', '_', and '-', 64 at most")]
    FirstAdmin(String),
    /// The first administrator's password can't be written.
    #[error("cannot write the first administrator's password")]
    FirstPassword(#[source] io::Error),
    /// What a server to look at shows can't be put into it.
    #[error("cannot fill the mailboxes: {0}")]
    Demo(String),
    /// The port file can't be written.
    #[error("cannot write {}", file.display())]
    PortFile {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store's writer panicked: what is acknowledged is safe, and nothing more can be.
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
    /// Whether the settings are wrong, or the files they name: starting again with the same ones
    /// fails again, whatever the machine's state.
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
