//! Starts and stops a server.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

use groupware_content::{ContentError, ContentStore, Upload};
use groupware_store::{OpenError, Store, StoreError, StoreOptions};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::watch;

use crate::access_log::AccessLog;
use crate::accounts::{AccountError, Accounts, Passwords};
use crate::admin_token::{self, AdminToken};
use crate::app::{App, AppState, Settings};
use crate::clock::Clock;
use crate::documents::ContentSweeper;
use crate::lookup::{self, Sweeper};
use crate::metrics::Metrics;
use crate::router::router;
use crate::serve::Front;
use crate::sessions::{Lifetime, Sessions};
use crate::smtp::{self, Role};
use crate::stream::Streams;
use crate::throttle::Throttle;
use crate::tls::{self, TlsError};
use crate::tus::OpenUploads;
use crate::worker::{self, Shared};
use crate::{Config, Data, LookupAccess, padding, random, stream, tus};

/// Descriptors kept for files and listeners.
const RESERVED_DESCRIPTORS: u64 =
    256 + (Upload::DESCRIPTORS * (stream::STREAMS + tus::AT_HAND)) as u64;
/// Most threads that serve connections.
const MAX_THREADS: usize = 1024;
const BACKLOG: i32 = 4096;

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
    /// TLS can't be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store can't be started or read.
    #[error("cannot start the store")]
    Store(#[from] StoreError),
    /// The folder of attachments' content can't be opened.
    #[error("cannot open the content")]
    Content(#[from] ContentError),
    /// The accounts can't be read.
    #[error("cannot read the accounts: {0}")]
    Accounts(String),
    /// The admin token can't be read or made.
    #[error("cannot read or write the admin token")]
    AdminToken(#[source] io::Error),
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
    /// A thread or signal handler can't be set up.
    #[error("cannot start a thread or watch for signals")]
    System(#[source] io::Error),
}

impl ServeError {
    /// Whether the settings are wrong, or the files they name: starting again with the same ones
    /// fails again, whatever the machine's state.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Exposed(_) | Self::Threads(_) | Self::MailboxPad(_) | Self::Tls(_) => true,
            Self::AdminToken(error) => error.kind() == io::ErrorKind::InvalidData,
            Self::Listen { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            Self::Open(_)
            | Self::Store(_)
            | Self::Content(_)
            | Self::Accounts(_)
            | Self::Demo(_)
            | Self::PortFile { .. }
            | Self::System(_) => false,
        }
    }
}

impl From<AccountError> for ServeError {
    fn from(error: AccountError) -> Self {
        Self::Accounts(error.to_string())
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    smtp_address: Option<SocketAddr>,
    submission_address: Option<SocketAddr>,
    admin_token: AdminToken,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    content_sweeper: Option<ContentSweeper>,
    store: Store,
    /// Ends before the store does.
    lookup_sweeper: Option<Sweeper>,
    state: AppState,
}

impl Server {
    /// Starts a server; when this returns, it accepts connections.
    ///
    /// # Errors
    /// See [`ServeError`]; then nothing is left running.
    pub fn start(config: Config) -> Result<Self, ServeError> {
        let exposed = !config.listen.ip().is_loopback();
        if exposed && config.tls.is_none() && !config.allow_plain_exposed {
            return Err(ServeError::Exposed(config.listen));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let thread_count = config.http_threads.unwrap_or(cores);
        if !(1..=MAX_THREADS).contains(&thread_count) {
            return Err(ServeError::Threads(thread_count));
        }
        if config.mailbox_pad_bytes > padding::MAX_BYTES {
            return Err(ServeError::MailboxPad(config.mailbox_pad_bytes));
        }
        let tls = |protocol: Option<&[u8]>| {
            let files = config.tls.as_ref();
            files
                .map(|files| tls::acceptor(files, protocol))
                .transpose()
        };
        let (tls, smtp_tls) = (tls(Some(b"http/1.1"))?, tls(None)?);
        if let Some(address) = config.submission_listen
            && !address.ip().is_loopback()
            && config.tls.is_none()
            && !config.allow_plain_exposed
        {
            return Err(ServeError::Exposed(address));
        }
        let store = match &config.data {
            Data::Folder(folder) => Store::open_sqlite(folder, StoreOptions::default())?,
            Data::Memory => Store::memory(StoreOptions::default())?,
        };
        // Behind the store, whose lock on the folder is for both.
        let content = match &config.data {
            Data::Folder(folder) => ContentStore::open(folder)?,
            Data::Memory => ContentStore::scratch()?,
        };
        let admin_token = admin_token::find_or_make(&config).map_err(ServeError::AdminToken)?;
        let state = state(&config, (store.clone(), content), &admin_token, cores)?;
        let content_sweeper = ContentSweeper::start(state.clone(), config.limits.sweep_interval)
            .map_err(ServeError::System)?;
        let at_once = config
            .http_threads
            .unwrap_or(config.limits.requests_at_once.max(1));
        let front = Front::new(state.clone(), router(state.clone()), at_once);
        let (listeners, address) =
            listen(config.listen, thread_count).map_err(|source| ServeError::Listen {
                address: config.listen,
                source,
            })?;
        let max_connections = config
            .limits
            .connections
            .unwrap_or_else(|| descriptors(thread_count));
        let shared = Arc::new(Shared {
            front,
            tls,
            limits: config.limits.clone(),
            max_connections,
            open: AtomicUsize::new(0),
        });
        let smtp = smtp::Shared::new(
            shared.front.state().clone(),
            smtp_tls,
            config.smtp_limits.clone(),
            config.allow_plain_exposed,
        );
        let (stop, _) = watch::channel(false);
        let threads = Vec::with_capacity(listeners.len());
        let mut server = Self {
            address,
            smtp_address: None,
            submission_address: None,
            admin_token,
            stop,
            threads,
            content_sweeper: Some(content_sweeper),
            store,
            lookup_sweeper: None,
            state,
        };
        server
            .spawn(listeners, &shared)
            .map_err(ServeError::System)?;
        if config.lookup != Some(LookupAccess::Off) {
            let sweeper = Sweeper::start(server.store.clone(), config.lookup_layout);
            server.lookup_sweeper = Some(sweeper.map_err(ServeError::System)?);
        }
        server.spawn_smtp(&config, smtp)?;
        if let Some(file) = &config.port_file {
            write_port_file(file, address).map_err(|source| ServeError::PortFile {
                file: file.clone(),
                source,
            })?;
        }
        Ok(server)
    }

    fn spawn(&mut self, listeners: Vec<TcpListener>, shared: &Arc<Shared>) -> io::Result<()> {
        for (number, listener) in listeners.into_iter().enumerate() {
            let (shared, stop) = (Arc::clone(shared), self.stop.subscribe());
            let thread = std::thread::Builder::new()
                .name(format!("http-{number}"))
                .spawn(move || worker::run(listener, &shared, stop))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    fn spawn_smtp(&mut self, config: &Config, shared: smtp::Shared) -> Result<(), ServeError> {
        let mut listeners = Vec::new();
        let mut open = |address: Option<SocketAddr>, role| {
            let Some(address) = address else {
                return Ok(None);
            };
            let (mut opened, bound) =
                listen(address, 1).map_err(|source| ServeError::Listen { address, source })?;
            listeners.extend(opened.pop().map(|listener| (listener, role)));
            Ok::<_, ServeError>(Some(bound))
        };
        self.smtp_address = open(config.smtp_listen, Role::Receive)?;
        self.submission_address = open(config.submission_listen, Role::Submission)?;
        if !listeners.is_empty() {
            let thread = smtp::start(listeners, shared, self.stop.subscribe());
            self.threads.push(thread.map_err(ServeError::System)?);
        }
        Ok(())
    }

    /// Where mail for local users is taken in.
    pub fn smtp_address(&self) -> Option<SocketAddr> {
        self.smtp_address
    }

    /// Where local users hand in mail.
    pub fn submission_address(&self) -> Option<SocketAddr> {
        self.submission_address
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The admin token.
    pub fn admin_token(&self) -> &str {
        &self.admin_token.text
    }

    /// Whether this start made the admin token, so that nobody knows it yet.
    pub fn admin_token_is_new(&self) -> bool {
        self.admin_token.is_new
    }

    /// Stops accepting, answers the requests under way within the configured time, and closes the
    /// store. Blocks until all that is done.
    pub fn shutdown(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        drop(self.content_sweeper.take());
        for thread in self.threads.drain(..) {
            // A thread that failed has said so in its panic; the others still end in order.
            let _ = thread.join();
        }
        drop(self.lookup_sweeper.take());
        self.store.close_blocking();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

fn state(
    config: &Config,
    (store, content): (Store, ContentStore),
    admin_token: &AdminToken,
    cores: usize,
) -> Result<AppState, ServeError> {
    let limits = &config.limits;
    let access_log = match config.access_log {
        true => Some(AccessLog::start().map_err(ServeError::System)?),
        false => None,
    };
    let settings = Settings {
        admin_token: random::hash(&admin_token.text),
        form_key: random::bytes(),
        exposed: !config.listen.ip().is_loopback(),
        // In front of plain HTTP that others can reach, there is a proxy that speaks TLS.
        secure_cookies: config.tls.is_some() || config.allow_plain_exposed,
        lookup: lookup::Access::new(config.lookup, !config.listen.ip().is_loopback()),
        lookup_layout: config.lookup_layout,
        mailbox_pad_bytes: config.mailbox_pad_bytes,
        mail_quota_bytes: config.mail_quota_bytes,
        body_bytes: limits.body_bytes,
        admin_body_bytes: limits.admin_body_bytes,
        body_timeout: limits.body_timeout,
        mail_body_timeout: limits.mail_body_timeout,
        request_timeout: limits.request_timeout,
        admin_timeout: limits.admin_timeout,
        attachment_bytes: limits.attachment_bytes,
        quota_bytes: limits.quota_bytes,
        upload_lifetime_s: i64::try_from(limits.upload_lifetime.as_secs()).unwrap_or(i64::MAX),
    };
    Ok(AppState::new(App {
        accounts: Accounts::load(store.clone(), &config.domain, limits.users)?,
        // The rest of the machine serves the others.
        passwords: Passwords::new((cores / 2).max(1)),
        sessions: Sessions::new(
            limits.sessions,
            Lifetime {
                idle: limits.session_idle,
                total: limits.session_lifetime,
            },
        ),
        lookup_rate: lookup::Rate::new(limits.lookup_per_s),
        throttle: Throttle::new(limits.sign_in_failures, limits.sign_in_forgiveness),
        metrics: Metrics::new(store.clone()),
        access_log,
        clock: Clock::start(),
        settings,
        content,
        streams: Streams::new(),
        uploads: OpenUploads::default(),
        store,
    }))
}

/// The parts of a server that listens nowhere and has the defaults of one in memory.
#[cfg(test)]
pub(crate) fn state_for_tests(store: Store) -> AppState {
    let config = Config::new(Data::Memory);
    let token = AdminToken {
        text: random::secret(),
        is_new: true,
    };
    let content = ContentStore::scratch().expect("there are temporary folders");
    state(&config, (store, content), &token, 2).expect("an empty store has readable accounts")
}

/// One listener per thread on the same port; the system spreads connections over them.
fn listen(address: SocketAddr, count: usize) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    if address.port() != 0 {
        // Sharing a port is for our own threads only: another server on it is an error, which
        // only a socket that doesn't share can see.
        bind(address, false)?;
    }
    let first: TcpListener = bind(address, true)?.into();
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address, true)?.into());
    }
    Ok((listeners, address))
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// As many connections as there can be descriptors, after asking for as many as are allowed.
fn descriptors(threads: usize) -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, hard)| {
        match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => soft,
        }
    });
    // A thread has its listener, its poller, the poller's waker, and a reader of the store with
    // three files.
    let reserved = RESERVED_DESCRIPTORS.min(limit / 2) + 6 * threads as u64;
    usize::try_from(limit.saturating_sub(reserved))
        .unwrap_or(usize::MAX)
        .max(16)
}

/// Written beside and renamed, so that whoever waits for the file finds it whole.
fn write_port_file(file: &Path, address: SocketAddr) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".partial");
    fs::write(&beside, address.to_string())?;
    fs::rename(&beside, file)
}
