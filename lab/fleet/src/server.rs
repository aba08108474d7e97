//! The NATS server of a hub: its configuration, process, and reloads.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::clock;
use crate::error::FleetError;
use crate::hub::{Hub, put};
use crate::rights::user;
use crate::subject::Rights;

/// The maximum time for the server to accept connections.
const START_WITHIN: Duration = Duration::from_secs(10);
/// The maximum time for it to end.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Interval between checks for changes of the hub's file.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum pending bytes of one client before it is disconnected.
const MOST_PENDING: u64 = 256 << 20;

/// An event of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubEvent {
    /// Agents and conductors may connect.
    Listening,
    /// Tokens were issued or revoked, and the change is in effect.
    Changed,
}

/// Runs a hub until `interrupt` becomes true.
///
/// # Errors
/// When the server is missing, can't start, or ends.
pub fn run_hub(
    hub: Hub,
    events: &mut dyn FnMut(HubEvent),
    interrupt: &AtomicBool,
) -> Result<(), FleetError> {
    let mut server = Server::start(hub)?;
    events(HubEvent::Listening);
    while !interrupt.load(Ordering::Relaxed) {
        std::thread::park_timeout(LOOK);
        if let Some(ended) = server.ended() {
            return Err(ended);
        }
        if server.reload()? {
            events(HubEvent::Changed);
        }
    }
    Ok(())
}

/// A hub's running server; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    hub: Hub,
    child: Child,
}

impl Server {
    /// Starts the server, and waits until it accepts connections.
    ///
    /// # Errors
    /// When the program is missing, or does not start.
    pub fn start(hub: Hub) -> Result<Self, FleetError> {
        if hub.is_elsewhere() {
            return Err(FleetError::Elsewhere(hub.url().to_owned()));
        }
        let program = server_program().ok_or(FleetError::NoServer)?;
        let taken = TcpStream::connect_timeout(&hub.listen(), Duration::from_millis(200));
        if taken.is_ok() {
            let why = format!("can't listen on {}: another program does", hub.listen());
            return Err(FleetError::Server(why));
        }
        configure(&hub)?;
        let log = fs::File::create(log_file(&hub)).map_err(FleetError::file(log_file(&hub)))?;
        let mut command = with_parent(program);
        command
            .arg("-c")
            .arg(hub.folder().join("nats.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn();
        let child = child.map_err(|error| FleetError::Server(format!("can't start: {error}")))?;
        let mut server = Self { hub, child };
        server.await_ready()?;
        Ok(server)
    }

    /// Returns its hub.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    fn await_ready(&mut self) -> Result<(), FleetError> {
        let until = clock::now() + START_WITHIN;
        while TcpStream::connect_timeout(&self.hub.listen(), Duration::from_millis(200)).is_err() {
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            if clock::now() > until {
                let seconds = START_WITHIN.as_secs();
                let why = format!(
                    "accepts no connection on {} for {seconds} s",
                    self.hub.listen()
                );
                return Err(FleetError::Server(why));
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns an error with its last line if it ended.
    fn ended(&mut self) -> Option<FleetError> {
        let status = self.child.try_wait().ok().flatten()?;
        let log = fs::read_to_string(log_file(&self.hub)).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        Some(FleetError::Server(format!("ended ({status}): {last}")))
    }

    /// Applies invitations and removals since the last call. Returns true if anything changed.
    ///
    /// # Errors
    /// When the hub's files can't be read or written.
    pub fn reload(&mut self) -> Result<bool, FleetError> {
        let now = Hub::open(self.hub.folder())?;
        if now.kept == self.hub.kept {
            return Ok(false);
        }
        self.hub = now;
        configure(&self.hub)?;
        // The next check detects a server that has just ended.
        let _ended = kill(self.pid(), Signal::SIGHUP);
        Ok(true)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = kill(self.pid(), Signal::SIGTERM);
        let until = clock::now() + END_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) && clock::now() < until {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the server's program: on the path, or in Debian's directory, which is not on every path.
#[must_use]
pub fn server_program() -> Option<&'static str> {
    let places = ["nats-server", "/usr/sbin/nats-server"];
    places.into_iter().find(|place| runs(place, "--version"))
}

/// Returns true if the program exists.
fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns the command, ended together with this process if util-linux is installed.
fn with_parent(program: &str) -> Command {
    if !runs("setpriv", "--version") {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

fn log_file(hub: &Hub) -> PathBuf {
    hub.folder().join("nats.log")
}

fn configure(hub: &Hub) -> Result<(), FleetError> {
    let folder = hub.folder();
    let certificate = folder.join("hub.pem");
    put(&certificate, hub.kept.certificate.as_bytes())?;
    let text = configuration(hub, &certificate, &folder.join("hub.key"));
    put(&folder.join("nats.conf"), text.as_bytes())
}

/// Returns the server's configuration, whose language embeds JSON.
fn configuration(hub: &Hub, certificate: &Path, key: &Path) -> String {
    let kept = &hub.kept;
    let watch = Rights {
        publish: Vec::new(),
        subscribe: vec!["$SYS.ACCOUNT.*.DISCONNECT".to_owned()],
        answers: false,
    };
    let address: SocketAddr = kept.listen;
    let value = json!({
        "server_name": "plimsoll-hub",
        "host": address.ip().to_string(),
        "port": address.port(),
        "ping_interval": "1s",
        "ping_max": 2,
        "write_deadline": "5s",
        "max_pending": MOST_PENDING,
        "tls": { "cert_file": certificate, "key_file": key, "timeout": 5 },
        "system_account": "SYS",
        "accounts": {
            "SYS": { "users": [user(&kept.watch.0, &watch)] },
            "FLEET": { "users": kept.users() },
        },
    });
    format!("{value:#}\n")
}

/// Returns true if a NATS server is installed here.
#[must_use]
pub fn has_server() -> bool {
    server_program().is_some()
}
