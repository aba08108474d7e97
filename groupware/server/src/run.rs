//! Runs a server as a process of its own: until a signal, or the parent's end.

use std::io::{self, Write};
use std::time::Duration;

use groupware_fixtures::demo;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin_token;
use crate::config::{Config, Data};
use crate::error::ServeError;
use crate::log::Log;
use crate::server::Server;

/// How often the parent is looked for, besides the signal that the system sends.
const PARENT_CHECK: Duration = Duration::from_millis(500);

/// Serves until SIGTERM, SIGINT, or the parent's end, then stops in order.
///
/// The address, and an admin token that was made just now, are said on standard error.
///
/// # Errors
/// When the server can't be started, or can't go on.
pub fn run(config: Config) -> Result<(), ServeError> {
    serve(config, None)
}

/// The same for a server in memory with some users, mails, and meetings around today, for whoever
/// wants to look. Nothing of it is left afterwards.
///
/// The users and their passwords, which are new at each start, are said on standard error.
///
/// # Errors
/// When the server can't be started, or others than this machine could reach it.
pub fn run_demo(mut config: Config) -> Result<(), ServeError> {
    if !config.listen.ip().is_loopback() {
        return Err(ServeError::Exposed(config.listen));
    }
    config.data = Data::Memory;
    config.mail_quota_bytes = config.mail_quota_bytes.or(Some(demo::QUOTA_BYTES));
    serve(config, Some(Demo))
}

/// Asks for a server with something to look at.
struct Demo;

fn serve(config: Config, demo: Option<Demo>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::System)?;
    let _log = Log::start(config.log.format).map_err(ServeError::System)?;
    let parent = config.parent_pid;
    // Before anything is started: a signal that comes meanwhile is kept, and a parent that is
    // gone already is noticed.
    let stopped = runtime
        .block_on(async { Stop::new(parent) })
        .map_err(ServeError::System)?;
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let token_file = admin_token::path(&config).filter(|_| config.admin_token.is_none());
    let server = Server::start(config)?;
    let mut said = format!("listening on {scheme}://{}\n", server.address());
    if let Some(address) = server.smtp_address() {
        said += &format!("taking in mail on smtp://{address}\n");
    }
    if let Some(address) = server.submission_address() {
        said += &format!("taking mail from users on smtp://{address}\n");
    }
    if server.admin_token_is_new() && demo.is_none() {
        said += &format!("admin token: {}\n", server.admin_token());
        if let Some(file) = token_file {
            said += &format!("admin token is kept in {}\n", file.display());
        }
    }
    if demo.is_some() {
        let users = runtime.block_on(demo::fill(server.service()));
        let users = users.map_err(|error| ServeError::Demo(error.to_string()))?;
        said += &demo::greeting(scheme, server.address(), &users);
    }
    // Nobody may be there to read it.
    let _ = io::stderr().write_all(said.as_bytes());
    let store = server.service().store();
    let is_dead = runtime.block_on(async {
        tokio::select! {
            () = stopped.wait() => false,
            () = store.died() => true,
        }
    });
    server.shutdown();
    match is_dead {
        true => Err(ServeError::Died),
        false => Ok(()),
    }
}

/// What ends the server.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    parent_died: tokio::signal::unix::Signal,
    parent: Option<u32>,
}

impl Stop {
    fn new(parent: Option<u32>) -> io::Result<Self> {
        let stop = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            parent_died: signal(SignalKind::user_defined2())?,
            parent,
        };
        if parent.is_some() {
            // The system sends it when the parent's *thread* that started this process ends, which
            // need not be the parent's end: hence a signal to look, not to die.
            prctl::set_pdeathsig(Signal::SIGUSR2)?;
        }
        Ok(stop)
    }

    async fn wait(mut self) {
        let mut looks = tokio::time::interval(PARENT_CHECK);
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.parent_died.recv() => {}
                _ = looks.tick(), if self.parent.is_some() => {}
            }
            if self
                .parent
                .is_some_and(|parent| parent != getppid().as_raw().unsigned_abs())
            {
                return;
            }
        }
    }
}
