//! The configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use groupware_data::{Data, ObjectPlace};
use groupware_front_lookup::LookupAccess;
use groupware_front_smtp::SmtpLimits;
use groupware_jobs::Retention;
use groupware_lookup::Layout as LookupLayout;
use groupware_net::{Networks, TlsFiles};
use groupware_process::LogFormat;

/// Settings of a server.
///
/// # Threads
/// `http_threads: Some(n)` starts n threads, each with its own event loop and its own listener on
/// the same port, and processes at most n requests at once over all of them. A request counts from
/// the arrival of its whole body until its response is ready to be sent. Waiting for the disk
/// counts; hashing a password, and the admin interface's work on many users, do not: each has a
/// bound of its own. Further requests wait in FIFO order. Idle connections, and connections that
/// are sending a request or receiving a response, don't count. The process has more than the n
/// threads: the store writes on one and copies its log on another, and passwords are hashed on up
/// to half as many as there are cores. The setting of the same name bounds the same in servers with
/// one thread per request. The differences: a thread also serves other connections, and sending a
/// response is outside the bound.
///
/// `requests_at_once: Some(n)` processes at most n requests at once, whatever the number of
/// threads. A thread processes another request while one waits for the disk: more threads than
/// cores cost memory and context switches, and gain nothing.
///
/// `http_threads: None` starts as many threads as the machine has cores; if neither is set, the bound is
/// [`Limits::requests_at_once`]. With records in a remote database it starts eight times as many: a thread
/// that reads blocks on the database, and others serve their connections meanwhile.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Allows an address that is reachable by other machines, without TLS: for a proxy in front
    /// that terminates it. Session cookies are then for HTTPS only, too.
    pub allow_plain_exposed: bool,
    /// Keeps session cookies usable without TLS: there is no proxy, and clients connect directly.
    pub plain_cookies: bool,
    /// The location of the data.
    pub data: Data,
    /// The object store for the content of attachments; the data folder if `None`.
    pub objects: Option<ObjectPlace>,
    /// The number of threads and of requests processed at once, see above.
    pub http_threads: Option<usize>,
    /// The number of requests processed at once if it differs from that of threads, see above.
    pub requests_at_once: Option<usize>,
    /// The TLS files. If given, the server accepts TLS only.
    pub tls: Option<TlsFiles>,
    /// The file to write the address to, as `host:port`, once connections are accepted.
    pub port_file: Option<PathBuf>,
    /// The file with the admin token; created, readable by its owner only, if it is missing. The
    /// default is `admin-token` in the data folder, or no file if the data is in memory.
    pub admin_token_file: Option<PathBuf>,
    /// The admin token itself; the file is then neither read nor written.
    pub admin_token: Option<String>,
    /// The user to register when the server starts without any users: an administrator with a new
    /// password.
    pub first_admin: Option<String>,
    /// The maximum age and size of the kept changes, with which a backup can be restored to any
    /// later time; no changes are kept by default. They are stored in the data folder.
    pub keep_changes: Option<Retention>,
    /// The bytes of filler in a new user's account, unless the registration sets another value; at
    /// most 1 GiB.
    pub mailbox_pad_bytes: u64,
    /// The maximum bytes of the messages of one account; `None` for no limit but the disk's.
    pub mail_quota_bytes: Option<u64>,
    /// The process whose end stops the server.
    pub parent_pid: Option<u32>,
    /// The names by which clients reach the server, besides its domain, `localhost`, and addresses. A server
    /// that only this machine can reach rejects requests for other names: they come from pages of other sites
    /// by DNS rebinding. A server that other machines can reach checks names only if some are given.
    pub hosts: Vec<String>,
    /// The settings of the log on standard error.
    pub log: LogSettings,
    /// The principals that may change registrations of the lookup service; users by default.
    pub lookup: Option<LookupAccess>,
    /// The storage layout of registrations.
    pub lookup_layout: LookupLayout,
    /// The domain of the users' addresses.
    pub domain: String,
    /// The organization of canonical user names (`CN=ada/O=Acme`); names with another one, or any
    /// if this is `None`, name no local user.
    pub organization: Option<String>,
    /// The address of the SMTP receiver for local users, if any. Clients can use STARTTLS if
    /// [`Config::tls`] is given.
    pub smtp_listen: Option<SocketAddr>,
    /// The address of SMTP submission for local users, if any. Clients must sign in, within TLS
    /// unless only this machine can reach the address.
    pub submission_listen: Option<SocketAddr>,
    /// The trusted networks: their clients have no individual share, but use the common resources.
    /// This machine by default.
    pub trusted: Networks,
    /// The proxies whose forwarding info (`X-Forwarded-For`) is trusted.
    pub proxies: Networks,
    /// Whether each of their HTTP connections starts with a PROXY protocol header; for SMTP, see
    /// [`SmtpLimits::proxies_say`].
    pub proxies_say: bool,
    /// Whether the sender of remote mail is authenticated by the DNS; by default if machines other
    /// than this one can reach [`Config::smtp_listen`].
    pub mail_auth: Option<bool>,
    /// The DNS resolvers; those of the system if none are given.
    pub resolvers: Vec<SocketAddr>,
    /// The limits for SMTP clients.
    pub smtp_limits: SmtpLimits,
    /// The limits for one client and for all clients together.
    pub limits: Limits,
}

impl Config {
    /// Returns the file of the admin token, if there is one.
    pub(crate) fn admin_token_file(&self) -> Option<PathBuf> {
        let in_data = || Some(self.data.folder()?.join("admin-token"));
        self.admin_token_file.clone().or_else(in_data)
    }

    /// Returns the configuration of a server on a free port of the loopback address, with all defaults.
    pub fn new(data: Data) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            allow_plain_exposed: false,
            plain_cookies: false,
            data,
            objects: None,
            http_threads: None,
            requests_at_once: None,
            tls: None,
            port_file: None,
            admin_token_file: None,
            admin_token: None,
            first_admin: None,
            keep_changes: None,
            mailbox_pad_bytes: 0,
            mail_quota_bytes: Some(2 << 30),
            parent_pid: None,
            hosts: Vec::new(),
            log: LogSettings::default(),
            lookup: None,
            lookup_layout: LookupLayout::default(),
            domain: "localhost".into(),
            organization: None,
            smtp_listen: None,
            submission_listen: None,
            trusted: Networks::loopback(),
            proxies: Networks::default(),
            proxies_say: false,
            mail_auth: None,
            resolvers: Vec::new(),
            smtp_limits: SmtpLimits::default(),
            limits: Limits::default(),
        }
    }
}

/// The content and format of the log. Faults of the server are always logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The format of log lines.
    pub format: LogFormat,
    /// Whether every request is logged.
    pub requests: bool,
    /// Requests that take this long are always logged.
    pub slow_request: Duration,
    /// Transactions of the store that take this long are always logged.
    pub slow_commit: Duration,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            requests: false,
            slow_request: Duration::from_secs(1),
            slow_commit: Duration::from_millis(250),
        }
    }
}

/// The limits for clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest body of a request; unauthenticated clients may send at most 64 KiB.
    pub body_bytes: usize,
    /// The largest body of a request to the admin interface.
    pub admin_body_bytes: usize,
    /// The largest head of a request: its first line and headers.
    pub head_bytes: usize,
    /// The maximum number of headers of a request.
    pub headers: usize,
    /// The maximum time for a head to arrive, give or take half.
    pub head_timeout: Duration,
    /// The maximum time for the body of a request to arrive; for an attachment, which may be far
    /// larger, for each 64 KiB of it.
    pub body_timeout: Duration,
    /// The same for a message with its attachments, which may be larger than other bodies.
    pub mail_body_timeout: Duration,
    /// The maximum time from the end of the body to the response, including queueing.
    pub request_timeout: Duration,
    /// The same for requests to the admin interface, which may change a million users, and whose
    /// responses can't be repeated. Their bodies may take as long to arrive.
    pub admin_timeout: Duration,
    /// The maximum time for a client to receive 64 KiB, or the rest, of a pending response, give or
    /// take half the time for a head.
    pub send_timeout: Duration,
    /// The maximum idle time of a connection.
    pub idle_timeout: Duration,
    /// The maximum number of open connections; further ones are closed at once. `None`: as many as
    /// the process may have descriptors, less a reserve for files.
    pub connections: Option<usize>,
    /// The maximum number of requests processed at once if neither [`Config::requests_at_once`] nor
    /// [`Config::http_threads`] is set.
    pub requests_at_once: usize,
    /// The maximum number of users.
    pub users: usize,
    /// The maximum number of cached sessions; others are looked up in the store.
    pub sessions: usize,
    /// The time without a request after which a session expires.
    pub session_idle: Duration,
    /// The time after which a session expires even if it is in use.
    pub session_lifetime: Duration,
    /// The number of failed sign-ins as one user from one address before further ones must wait;
    /// ten times as many from one address as any users.
    pub sign_in_failures: u32,
    /// The time after which one failed sign-in is forgotten.
    pub sign_in_forgiveness: Duration,
    /// The maximum number of requests and registrations per second from one remote client to the
    /// lookup service; unused ones accumulate for up to twenty seconds.
    pub lookup_per_s: u32,
    /// The largest attachment.
    pub attachment_bytes: u64,
    /// The maximum bytes that a user stores: messages, meetings, documents, attachments, and pending uploads.
    pub quota_bytes: u64,
    /// The time without a chunk after which an upload expires.
    pub upload_lifetime: Duration,
    /// The interval of the sweep for unreferenced content.
    pub sweep_interval: Duration,
    /// The maximum time that a stopping server waits for pending requests.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            admin_body_bytes: 16 << 20,
            head_bytes: 32 << 10,
            headers: 64,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            mail_body_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(60),
            admin_timeout: Duration::from_secs(1800),
            send_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            connections: None,
            requests_at_once: 1024,
            users: 1_000_000,
            sessions: 262_144,
            session_idle: Duration::from_secs(3600),
            session_lifetime: Duration::from_secs(24 * 3600),
            sign_in_failures: 10,
            sign_in_forgiveness: Duration::from_secs(30),
            lookup_per_s: 100,
            attachment_bytes: 4 << 30,
            quota_bytes: 2 << 30,
            upload_lifetime: Duration::from_secs(24 * 3600),
            sweep_interval: Duration::from_secs(600),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
