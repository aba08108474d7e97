//! Runs a server as a process of its own: until a signal, or the end of the parent process.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use groupware_data::Data;
use groupware_fixtures::demo;
use groupware_process::{Log, LogFormat, Notify, Order, Signals};

use crate::config::Config;
use crate::error::ServeError;
use crate::first_admin;
use crate::server::Server;

/// A commit that takes longer will probably never end: the service manager restarts the server.
const STUCK: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Serves until SIGTERM, SIGINT, or the end of the parent process, then shuts down cleanly.
///
/// Writes the address, and a new admin token, to standard error.
///
/// # Errors
/// If the server can't be started, or can't continue.
pub fn run(config: Config, surroundings: ProcessEnvironment) -> Result<(), ServeError> {
    serve(config, surroundings, None)
}

/// The same for a demo server in memory with some users, mails, and meetings around today. All of
/// it is lost at the end.
///
/// Writes the users and their passwords, which are new at each start, to standard error.
///
/// # Errors
/// If the server can't be started, or machines other than this one could reach it.
pub fn run_demo(mut config: Config, surroundings: ProcessEnvironment) -> Result<(), ServeError> {
    if !config.listen.ip().is_loopback() {
        return Err(ServeError::Exposed(config.listen));
    }
    config.data = Data::Memory;
    let quota_bytes = config.mail_quota_bytes.unwrap_or(demo::QUOTA_BYTES);
    config.mail_quota_bytes = Some(quota_bytes.min(demo::QUOTA_BYTES));
    serve(config, surroundings, Some(Demo))
}

/// The environment of a process, besides its configuration.
#[derive(Default)]
pub struct ProcessEnvironment {
    /// Reads the configuration again on SIGHUP; the error explains why it can't be used. Without
    /// it, and without certificates, SIGHUP ends the server as SIGTERM does.
    pub reread: Option<Box<dyn Fn() -> Result<Config, String>>>,
    /// The socket of the service manager (systemd's `NOTIFY_SOCKET`).
    pub notify_socket: Option<OsString>,
    /// The interval of keep-alives after which the manager restarts the server (`WATCHDOG_USEC`).
    pub watchdog: Option<Duration>,
}

impl std::fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

/// Selects the demo data.
struct Demo;

fn serve(
    config: Config,
    surroundings: ProcessEnvironment,
    demo: Option<Demo>,
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::System)?;
    let _log = Log::start(config.log.format).map_err(ServeError::System)?;
    // Before anything is started: signals are queued from here on, and the end of the parent
    // process is noticed.
    let signals = runtime
        .block_on(async { Signals::new(config.parent_pid) })
        .map_err(ServeError::System)?;
    let notify = Notify::to(surroundings.notify_socket.as_deref());
    let is_demo = demo.is_some();
    let (scheme, first) = (scheme(&config), config.clone());
    let server = Server::start(config)?;
    let mut said = addresses(scheme, &server);
    if !is_demo {
        let is_terminal = io::stderr().is_terminal();
        said += &token(&first, &server, is_terminal);
        let admin = first_admin::register(&first, server.service(), is_terminal);
        said += &runtime.block_on(admin)?;
    } else {
        let users = runtime.block_on(demo::fill(server.service()));
        let users = users.map_err(|error| ServeError::Demo(error.to_string()))?;
        said += &demo::greeting(scheme, server.address(), &users);
    }
    say(&said, first.log.format);
    let status = format!("listening on {scheme}://{}", server.address());
    notify.ready(&status);
    let running = Running {
        server,
        first,
        surroundings,
        notify,
        status,
    };
    let (running, is_dead) = runtime.block_on(running.until_end(signals));
    running.notify.stopping();
    running.server.shutdown();
    match is_dead {
        true => Err(ServeError::Died),
        false => Ok(()),
    }
}

/// Writes to the terminal, or as lines of a JSON log for programs.
fn say(said: &str, format: LogFormat) {
    if format == LogFormat::Json && !io::stderr().is_terminal() {
        said.lines().for_each(|line| tracing::info!("{line}"));
        return;
    }
    // Standard error may be closed.
    let _ = io::stderr().write_all(said.as_bytes());
}

fn scheme(config: &Config) -> &'static str {
    match config.tls {
        Some(_) => "https",
        None => "http",
    }
}

fn addresses(scheme: &str, server: &Server) -> String {
    let mut said = format!("listening on {scheme}://{}\n", server.address());
    if let Some(address) = server.smtp_address() {
        said += &format!("taking in mail on smtp://{address}\n");
    }
    if let Some(address) = server.submission_address() {
        said += &format!("taking mail from users on smtp://{address}\n");
    }
    said
}

/// A terminal shows a new token once. Otherwise standard error is a log, which others may read, and
/// the token is in the file.
fn token(config: &Config, server: &Server, is_terminal: bool) -> String {
    if !server.admin_token_is_new() {
        return String::new();
    }
    let file = config
        .admin_token_file()
        .filter(|_| config.admin_token.is_none());
    let mut said = String::new();
    if is_terminal || file.is_none() {
        said += &format!("admin token: {}\n", server.admin_token());
    }
    if let Some(file) = file {
        said += &format!("admin token is kept in {}\n", file.display());
    }
    said
}

/// A running server, and its resources.
struct Running {
    server: Server,
    /// The configuration at the start.
    first: Config,
    surroundings: ProcessEnvironment,
    notify: Notify,
    status: String,
}

impl Running {
    /// Returns true if it ends because the store's writer is dead.
    async fn until_end(mut self, mut signals: Signals) -> (Self, bool) {
        let store = self.server.service().store().clone();
        let watchdog = self.surroundings.watchdog.map(|time| time / 2);
        let mut lives = tokio::time::interval(watchdog.unwrap_or(Duration::MAX).min(DAY));
        let is_dead = loop {
            tokio::select! {
                () = store.died() => break true,
                asked = signals.next() => match asked {
                    Order::Stop => break false,
                    Order::Reload if self.can_reload() => self.reload(),
                    Order::Reload => break false,
                },
                _ = lives.tick(), if watchdog.is_some() => {
                    let condition = store.condition();
                    if condition.busy_for.is_none_or(|time| time <= STUCK) {
                        self.notify.alive();
                    }
                }
            }
        };
        (self, is_dead)
    }

    fn can_reload(&self) -> bool {
        self.surroundings.reread.is_some() || self.first.tls.is_some()
    }

    fn reload(&mut self) {
        self.notify.reloading();
        let next = match &self.surroundings.reread {
            Some(reread) => reread(),
            None => Ok(self.first.clone()),
        };
        let reloaded = next.and_then(|config| {
            let reloaded = self.server.reload(config);
            reloaded.map_err(|error| groupware_http::Fault::of(&error).causes().to_owned())
        });
        match reloaded {
            Ok(reloaded) => {
                let changed = reloaded.changed.join(", ");
                let needs_restart = reloaded.needs_restart.join(", ");
                tracing::info!(changed, needs_restart, "the configuration was read again");
            }
            Err(cause) => {
                tracing::error!(cause, "the configuration can't be used: all is as it was");
            }
        }
        self.notify.ready(&self.status);
    }
}
