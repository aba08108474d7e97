//! Starts and stops a server.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use groupware_content::{Spared, Upload};
use groupware_data::{AdminToken, Data, Opening};
use groupware_fixtures::padding;
use groupware_front_lookup::LookupAccess;
use groupware_front_pages::{are_asked_for, dressed};
use groupware_front_smtp::{self as smtp, Role, Smtp, SmtpLimits};
use groupware_front_tus::AT_HAND;
use groupware_http::{Dress, HeadLimits, HttpServer, RequestLog, STREAMS};
use groupware_jobs::{
    AnsweredSweep, ChangeRetention, Departures, Job, Jobs, KeepUp, Leased, LookupSweep,
    MailNumbers, Part, SeriesLists, SessionSweep,
};
use groupware_mailauth::MailAuth;
use groupware_net::{
    self as net, Accepting, Admission, Certificate, Listener, Pace, TlsAcceptor, TrustedNetworks,
    descriptors, listen,
};
use groupware_service::Service;
use groupware_service::mail::after_restore;
use groupware_store::FolderLock;
use tokio::sync::watch;

use crate::config::{Config, LogSettings};
use crate::error::ServeError;
use crate::parts::Parts;
use crate::reload::Reloaded;
use crate::router::{patterns, router};

/// The descriptors reserved for files and listeners.
const RESERVED_DESCRIPTORS: u64 = 256 + (Upload::DESCRIPTORS * (STREAMS + AT_HAND)) as u64;
/// Per thread: its listener, a second one for its replacement, its poller, the poller's waker, and
/// a reader of the store with three files.
const DESCRIPTORS_OF_THREAD: u64 = 7;
/// The maximum number of threads that serve connections.
const MAX_THREADS: usize = 1024;

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    smtp_address: Option<SocketAddr>,
    submission_address: Option<SocketAddr>,
    admin_token: AdminToken,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// They end before the store does.
    jobs: Option<Jobs>,
    service: Service,
    /// Released after the store is closed.
    _folder: Option<FolderLock>,
    certificate: Option<Certificate>,
    request_log: Arc<RequestLog>,
    known: TrustedNetworks,
    /// The current configuration.
    config: Config,
    router: Router,
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// See [`ServeError`]; on an error, nothing is left running.
    pub fn start(config: Config) -> Result<Self, ServeError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let thread_count = threads(&config, cores);
        check(&config, thread_count)?;
        let certificate = config.tls.as_ref().map(Certificate::load).transpose()?;
        let tls = |protocol: Option<&[u8]>| {
            let certificate = certificate.as_ref();
            certificate
                .map(|certificate| net::acceptor(certificate, protocol))
                .transpose()
        };
        let (tls, smtp_tls) = (tls(Some(b"http/1.1"))?, tls(None)?);
        let stored = groupware_data::open(&opening(&config, thread_count))?;
        let admin_token = admin_token(&config).map_err(ServeError::AdminToken)?;
        let parts = Parts::new(
            &config,
            (stored.store, stored.content, stored.objects),
            &admin_token.text,
            cores,
        )?;
        count_anew(&parts.service)?;
        let known = TrustedNetworks::new(config.trusted.clone(), config.proxies.clone());
        let http = http_server(&parts, &config, &known);
        let router = http.router.clone();
        let (listeners, address) =
            listen(config.listen, thread_count).map_err(|source| ServeError::Listen {
                address: config.listen,
                source,
            })?;
        let jobs = start_jobs(&parts, &config)?;
        let (most, most_smtp) = connections(&config, thread_count);
        let admission = Arc::new(Admission::new(most, known.clone()));
        let shares = &parts.metrics.shares;
        shares.admission("http", Arc::clone(&admission));
        let accepting = Accepting::new(http, admission)
            .proxies_say(config.proxies_say)
            .tls(tls, config.limits.head_timeout)
            .shutdown_timeout(config.limits.shutdown_timeout);
        let (stop, _) = watch::channel(false);
        let mut server = Self {
            address,
            smtp_address: None,
            submission_address: None,
            admin_token,
            stop,
            threads: Vec::with_capacity(listeners.len()),
            jobs: None,
            service: parts.service.clone(),
            _folder: stored.folder,
            certificate,
            request_log: Arc::clone(&parts.request_log),
            known,
            config: config.clone(),
            router,
        };
        server
            .spawn(listeners, &Arc::new(accepting))
            .map_err(ServeError::System)?;
        server.jobs = Some(jobs);
        let smtp = smtp_server(&parts, &config, (smtp_tls, most_smtp), &server.known)?;
        server.spawn_smtp(&config, smtp)?;
        if let Some(file) = &config.port_file {
            write_port_file(file, address).map_err(|source| ServeError::PortFile {
                file: file.clone(),
                source,
            })?;
        }
        Ok(server)
    }

    fn spawn(
        &mut self,
        listeners: Vec<TcpListener>,
        shared: &Arc<Accepting<HttpServer>>,
    ) -> io::Result<()> {
        let listeners: Vec<Listener> = listeners.into_iter().map(Listener::from).collect();
        let seen = listeners.iter().map(Listener::try_clone);
        let seen = seen.collect::<io::Result<Vec<_>>>()?;
        for (number, listener) in listeners.into_iter().enumerate() {
            let (shared, stop) = (Arc::clone(shared), self.stop.subscribe());
            self.spawn_thread(format!("http-{number}"), move || {
                net::run(listener, &shared, stop)
            })?;
        }
        let (shared, stop) = (Arc::clone(shared), self.stop.subscribe());
        self.spawn_thread("http-stand-in".to_owned(), move || {
            net::stand_in(seen, &shared, stop)
        })
    }

    fn spawn_thread(
        &mut self,
        name: String,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name).spawn(run)?;
        self.threads.push(thread);
        Ok(())
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    fn spawn_smtp(&mut self, config: &Config, smtp: Smtp) -> Result<(), ServeError> {
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
            let thread = smtp::start(listeners, smtp, self.stop.subscribe());
            self.threads.push(thread.map_err(ServeError::System)?);
        }
        Ok(())
    }

    /// The address of the SMTP receiver for local users.
    pub fn smtp_address(&self) -> Option<SocketAddr> {
        self.smtp_address
    }

    /// The address of SMTP submission for local users.
    pub fn submission_address(&self) -> Option<SocketAddr> {
        self.submission_address
    }

    /// The patterns of all routes.
    pub fn routes(&self) -> BTreeSet<String> {
        patterns(&self.router)
    }

    /// The address of the HTTP listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The admin token.
    pub fn admin_token(&self) -> &str {
        &self.admin_token.text
    }

    /// Whether this start created the admin token.
    pub fn admin_token_is_new(&self) -> bool {
        self.admin_token.is_new
    }

    /// Applies another configuration, as far as possible without a restart; reads the certificates'
    /// files again in any case.
    ///
    /// # Errors
    /// If the certificates can't be used: nothing changes then.
    pub fn reload(&mut self, new: Config) -> Result<Reloaded, ServeError> {
        let mut reloaded = Reloaded::between(&self.config, &new);
        if let (Some(certificate), Some(files)) = (&self.certificate, &new.tls)
            && certificate.reload(files)?
        {
            reloaded.changed.push("tls-cert");
        }
        let log = &new.log;
        self.request_log.set(log.requests, log.slow_request);
        self.service.store().note_slow_commits(log.slow_commit);
        self.service
            .set_quotas(new.limits.quota_bytes, new.mail_quota_bytes);
        self.known.set(new.trusted.clone(), new.proxies.clone());
        // Settings that need a restart are reported each time until then.
        self.config.log = LogSettings {
            format: self.config.log.format,
            ..new.log
        };
        self.config.limits.quota_bytes = new.limits.quota_bytes;
        self.config.mail_quota_bytes = new.mail_quota_bytes;
        self.config.trusted = new.trusted;
        self.config.proxies = new.proxies;
        Ok(reloaded)
    }

    /// Stops accepting connections, completes pending requests within the configured time, and
    /// closes the store. Blocks until then.
    pub fn shutdown(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        drop(self.jobs.take());
        for thread in self.threads.drain(..) {
            // The panic of a failed thread was logged; the others still end cleanly.
            let _ = thread.join();
        }
        // No further response is sent.
        self.service.remove_answered();
        self.service.store().close_blocking();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The maximum numbers of connections of HTTP, by the configuration or the available descriptors,
/// and of SMTP, which has a quarter of those at most.
fn connections(config: &Config, thread_count: usize) -> (usize, usize) {
    let has_smtp = config.smtp_listen.is_some() || config.submission_listen.is_some();
    let smtp_threads = match (has_smtp, &config.data) {
        (true, Data::Postgres { .. }) => groupware_front_smtp::THREADS,
        _ => 1,
    };
    let threads = thread_count + smtp_threads;
    let all = descriptors(RESERVED_DESCRIPTORS, DESCRIPTORS_OF_THREAD, threads);
    let smtp = match has_smtp {
        true => config.smtp_limits.connections.min(all / 4),
        false => 0,
    };
    (config.limits.connections.unwrap_or(all - smtp), smtp)
}

/// Creates the SMTP server, with or without listeners.
fn smtp_server(
    parts: &Parts,
    config: &Config,
    (tls, connections): (Option<TlsAcceptor>, usize),
    known: &TrustedNetworks,
) -> Result<Smtp, ServeError> {
    let mut smtp = Smtp::new(
        parts.service.clone(),
        tls,
        SmtpLimits {
            connections,
            ..config.smtp_limits.clone()
        },
        config.allow_plain_exposed,
        known.clone(),
    );
    let shares = &parts.metrics.shares;
    shares.admission("smtp", Arc::clone(smtp.admission()));
    shares.pool("smtp_messages_kib", smtp.memory_gauge());
    let is_exposed = config.smtp_listen.is_some_and(|it| !it.ip().is_loopback());
    let is_usual = is_exposed && groupware_mailauth::IS_THERE;
    if is_exposed && !groupware_mailauth::IS_THERE && config.mail_auth.is_none() {
        tracing::warn!(
            "where mail comes from is not found out: this program was built without it (mail-auth)"
        );
    }
    if config.smtp_listen.is_some() && config.mail_auth.unwrap_or(is_usual) {
        smtp = smtp.with_mail_auth(MailAuth::new(&config.domain, &config.resolvers)?);
    }
    if let Some(gauge) = smtp.asking_gauge() {
        shares.pool("smtp_asking", gauge);
    }
    Ok(smtp)
}

/// Runs before the first request: after a restore, numbers would be assigned again.
fn count_anew(service: &Service) -> Result<(), ServeError> {
    if after_restore(service).map_err(ServeError::Restored)? {
        tracing::info!("the data are those of an earlier moment: mailboxes have new numbers");
    }
    Ok(())
}

/// Starts the background jobs.
fn start_jobs(parts: &Parts, config: &Config) -> Result<Jobs, ServeError> {
    let mut jobs = Jobs::default();
    let (service, store) = (&parts.service, parts.service.store());
    jobs.start(KeepUp::new(service.clone()))
        .map_err(ServeError::System)?;
    jobs.start(AnsweredSweep::new(service.clone()))
        .map_err(ServeError::System)?;
    if parts.content.segments().is_some() {
        // Each server sweeps its folder, and one of them the objects.
        jobs.start(parts.content_sweep(config).of(Part::Folder))
            .map_err(ServeError::System)?;
        let objects = parts.content_sweep(config).of(Part::Objects);
        start_once(&mut jobs, objects, service)?;
    } else {
        start_once(&mut jobs, parts.content_sweep(config), service)?;
    }
    start_once(&mut jobs, Departures::new(service.clone()), service)?;
    start_once(&mut jobs, SessionSweep::new(service.clone()), service)?;
    // Every server runs this at its start: the last one to be upgraded finds what it wrote before.
    // Two at once do no harm, since messages with numbers are skipped.
    jobs.start(MailNumbers::new(service.clone()))
        .map_err(ServeError::System)?;
    start_once(&mut jobs, SeriesLists::new(service.clone()), service)?;
    if config.lookup != Some(LookupAccess::Off) {
        let sweep = LookupSweep::new(store.clone(), config.lookup_layout);
        start_once(&mut jobs, sweep, service)?;
    }
    if let (Data::Folder(folder), Some(retention)) = (&config.data, config.keep_changes) {
        let spared = Spared::of(folder);
        jobs.start(ChangeRetention::new(
            groupware_data::changes(folder),
            spared,
            retention,
        ))
        .map_err(ServeError::System)?;
    }
    Ok(jobs)
}

/// Starts a job that only one of several servers runs.
fn start_once<J: Job>(jobs: &mut Jobs, job: J, service: &Service) -> Result<(), ServeError> {
    let started = match service.is_shared() {
        true => jobs.start(Leased::new(job, service.store().clone())),
        false => jobs.start(job),
    };
    started.map_err(ServeError::System)
}

fn opening(config: &Config, threads: usize) -> Opening<'_> {
    Opening {
        data: &config.data,
        objects: config.objects.as_ref(),
        keeps_changes: config.keep_changes.is_some(),
        slow_commit: config.log.slow_commit,
        threads,
    }
}

fn admin_token(config: &Config) -> io::Result<AdminToken> {
    let (given, file) = (config.admin_token.as_deref(), config.admin_token_file());
    AdminToken::find_or_make(given, file.as_deref())
}

/// Returns the number of threads that serve connections. A thread that waits for a database is blocked.
fn threads(config: &Config, cores: usize) -> usize {
    config.http_threads.unwrap_or(match config.data {
        Data::Folder(_) | Data::Memory => cores,
        Data::Postgres { .. } => cores * 8,
    })
}

/// Rejects invalid settings before anything is started.
fn check(config: &Config, thread_count: usize) -> Result<(), ServeError> {
    let is_protected = config.tls.is_some() || config.allow_plain_exposed;
    if !config.listen.ip().is_loopback() && !is_protected {
        return Err(ServeError::Exposed(config.listen));
    }
    if !(1..=MAX_THREADS).contains(&thread_count) {
        return Err(ServeError::Threads(thread_count));
    }
    if config.mailbox_pad_bytes > padding::MAX_BYTES {
        return Err(ServeError::MailboxPad(config.mailbox_pad_bytes));
    }
    match config.submission_listen {
        Some(address) if !address.ip().is_loopback() && !is_protected => {
            Err(ServeError::Exposed(address))
        }
        _ => Ok(()),
    }
}

fn http_server(parts: &Parts, config: &Config, known: &TrustedNetworks) -> HttpServer {
    let limits = &config.limits;
    let gate = parts.gate(config);
    HttpServer {
        router: router(parts, config, &gate),
        dress: Dress {
            is_asked_for: are_asked_for,
            dressed,
        },
        head: HeadLimits {
            bytes: limits.head_bytes,
            headers: limits.headers,
        },
        pace: Pace {
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            send_timeout: limits.send_timeout,
        },
        // On this machine alone, other servers may have the same name without TLS.
        is_https_only: config.tls.is_some() && !config.listen.ip().is_loopback(),
        known: known.clone(),
        metrics: Arc::clone(&parts.metrics),
    }
}

/// Written to a temporary file and renamed, so that a waiting program finds it complete.
fn write_port_file(file: &Path, address: SocketAddr) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".partial");
    fs::write(&beside, address.to_string())?;
    fs::rename(&beside, file)
}
