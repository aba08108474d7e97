//! What a server is told when it starts.

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
/// the same port, and lets at most n requests be *worked on* at once over all of them: from the
/// moment when the request's body has arrived until its response is ready to be sent. Waiting for
/// the disk counts as work; hashing a password, and what the admin interface does to many users,
/// does not, since each has a bound of its own. A request beyond that waits, first come, first
/// served. Idle connections, and connections that are sending a request or receiving a response,
/// hold none of the n. The n threads are not all that the process has: the store writes on one
/// and copies its log on another, and passwords are hashed on up to half as many as there are
/// cores. This bounds what the setting of the same name bounds in servers that give each request
/// a thread; it differs from them in that the request may be worked on by a thread that also
/// serves other connections, and that a response is sent outside the bound.
///
/// `requests_at_once: Some(n)` lets n requests be worked on at once, whatever the number of threads: a
/// thread goes on with another request while one waits for the disk, so that more threads than cores cost
/// memory and context switches, and gain nothing.
///
/// `http_threads: None` starts as many threads as the machine has cores, and where neither is given the
/// bound is [`Limits::requests_at_once`]. With records in a database elsewhere it starts eight times as many: a thread
/// that reads waits for the database, and others serve their connections meanwhile.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Allows an address that others can reach, without TLS: for a proxy in front that speaks it.
    /// Session cookies are then for HTTPS only, too.
    pub allow_plain_exposed: bool,
    /// There they are not: there is no proxy, and clients come as they are.
    pub plain_cookies: bool,
    /// Where the data lies.
    pub data: Data,
    /// An object store in which the content of attachments is put; in the data's folder unless given.
    pub objects: Option<ObjectPlace>,
    /// The number of threads and of requests worked on at once, see above.
    pub http_threads: Option<usize>,
    /// The number of requests worked on at once where it isn't that of threads, see above.
    pub requests_at_once: Option<usize>,
    /// Speaks TLS, and only TLS, if given.
    pub tls: Option<TlsFiles>,
    /// A file that the address is written to, as `host:port`, once connections are accepted.
    pub port_file: Option<PathBuf>,
    /// The file with the admin token; made, readable by its owner only, if it isn't there. The
    /// default is `admin-token` in the data folder, or no file if the data is in memory.
    pub admin_token_file: Option<PathBuf>,
    /// The admin token itself; then the file is neither read nor written.
    pub admin_token: Option<String>,
    /// Who is registered at a start without any users, with the right to manage users and a password that
    /// is made then.
    pub first_admin: Option<String>,
    /// How long changes are kept, by which a backup is brought to any later moment, and in how much room;
    /// none are unless given. They lie in the data folder.
    pub keep_changes: Option<Retention>,
    /// Bytes of filler that a new user's mailbox gets, unless the registration says otherwise; at
    /// most 1 GiB.
    pub mailbox_pad_bytes: u64,
    /// Most bytes that the messages of one mailbox may have; `None` for as many as the disk holds.
    pub mail_quota_bytes: Option<u64>,
    /// The process without which the server stops.
    pub parent_pid: Option<u32>,
    /// Names by which clients reach the server, besides its domain, `localhost`, and addresses. Where
    /// only this machine can reach it, requests for other names are refused: a page of another site,
    /// whose name was made to lead here, sends those. None checks nothing where others can reach it.
    pub hosts: Vec<String>,
    /// What is written to standard error while the server runs.
    pub log: LogSettings,
    /// Who may change registrations of the lookup service; unless said, users.
    pub lookup: Option<LookupAccess>,
    /// How registrations lie in the store.
    pub lookup_layout: LookupLayout,
    /// The domain of the users' addresses.
    pub domain: String,
    /// The organization that canonical names of users may have (`CN=ada/O=Acme`); with another one, or where there is
    /// none, they are names of nobody here.
    pub organization: Option<String>,
    /// Where mail for local users is taken in over SMTP, if anywhere. Clients can go over to TLS
    /// where [`Config::tls`] is given.
    pub smtp_listen: Option<SocketAddr>,
    /// Where local users hand in mail over SMTP, if anywhere. They sign in, within TLS unless
    /// nobody but this machine can reach the address.
    pub submission_listen: Option<SocketAddr>,
    /// Who has no share of its own but takes from all that there is: this machine's own programs,
    /// unless said otherwise.
    pub trusted: Networks,
    /// Who is believed when it says for whom it asks (`X-Forwarded-For`).
    pub proxies: Networks,
    /// Whether each of their connections that speaks HTTP begins with a header of the PROXY protocol; for
    /// SMTP, see [`SmtpLimits::proxies_say`].
    pub proxies_say: bool,
    /// Whether it is found out of mail from elsewhere whether it comes from whom it says, by the DNS; unless
    /// said, where others than this machine can hand in mail at [`Config::smtp_listen`].
    pub mail_auth: Option<bool>,
    /// The DNS resolvers that are asked; those of the system, if none are given.
    pub resolvers: Vec<SocketAddr>,
    /// What SMTP clients may use.
    pub smtp_limits: SmtpLimits,
    /// What one client, and all together, may use.
    pub limits: Limits,
}

impl Config {
    /// The file that holds the admin token, if there is to be one.
    pub(crate) fn admin_token_file(&self) -> Option<PathBuf> {
        let in_data = || Some(self.data.folder()?.join("admin-token"));
        self.admin_token_file.clone().or_else(in_data)
    }

    /// A server on a free port of the loopback address, with everything else at its default.
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

/// What the log says, and how. Faults of the server are always in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// How lines are written.
    pub format: LogFormat,
    /// Whether there is a line for every request.
    pub requests: bool,
    /// A request that takes so long is in the log in any case.
    pub slow_request: Duration,
    /// So is a transaction of the store that takes so long.
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

/// Bounds on what clients may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body of a request; from who isn't signed in yet, it is 64 KiB at most.
    pub body_bytes: usize,
    /// Largest body of a request to the admin interface.
    pub admin_body_bytes: usize,
    /// Largest head of a request: its first line and headers.
    pub head_bytes: usize,
    /// Most headers of a request.
    pub headers: usize,
    /// Longest time that a head may take to arrive, give or take half.
    pub head_timeout: Duration,
    /// Longest time that the body of a request may take to arrive; of an attachment, which may be
    /// far larger, each 64 KiB of it.
    pub body_timeout: Duration,
    /// The same for a message with its attachments, which may be larger than other bodies.
    pub mail_body_timeout: Duration,
    /// Longest time from the end of the body to the response, waiting included.
    pub request_timeout: Duration,
    /// The same for requests to the admin interface, which may change a million users and answer
    /// with what can't be had again. Their bodies may take as long to arrive.
    pub admin_timeout: Duration,
    /// Longest time in which a client may take 64 KiB, or the rest, of a response that waits for it,
    /// give or take half a head's time.
    pub send_timeout: Duration,
    /// Longest time that a connection may be idle.
    pub idle_timeout: Duration,
    /// Most open connections; further ones are closed at once. `None`: as many as the process
    /// may have descriptors, less a reserve for files.
    pub connections: Option<usize>,
    /// Most requests worked on at once where neither [`Config::requests_at_once`] nor
    /// [`Config::http_threads`] says.
    pub requests_at_once: usize,
    /// Most users.
    pub users: usize,
    /// Most sessions that are remembered; others are looked up in the store.
    pub sessions: usize,
    /// Time without a request after which a session ends.
    pub session_idle: Duration,
    /// Time after which a session ends, however much it is used.
    pub session_lifetime: Duration,
    /// Failed sign-ins as one user from one address before further ones must wait; from one
    /// address, as whomever, it is ten times as many.
    pub sign_in_failures: u32,
    /// Time after which one failed sign-in is forgiven.
    pub sign_in_forgiveness: Duration,
    /// Most requests and registrations per second that a client elsewhere may send to the lookup
    /// service; it may save up twenty seconds' worth.
    pub lookup_per_s: u32,
    /// Largest attachment.
    pub attachment_bytes: u64,
    /// Most bytes that a user stores: messages, meetings, documents, attachments, and uploads under way.
    pub quota_bytes: u64,
    /// Time without a chunk after which an upload is given up.
    pub upload_lifetime: Duration,
    /// How often content that nothing refers to is looked for.
    pub sweep_interval: Duration,
    /// Longest time that a stopping server waits for the requests under way.
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
