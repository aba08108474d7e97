//! Signals, and the end of the parent process, as requests to the server.

use std::io;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use tokio::signal::unix::{SignalKind, signal};

/// The interval of the checks for the parent, in addition to the system's signal.
const PARENT_CHECK: Duration = Duration::from_millis(500);

/// A request to the server from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stop.
    Stop,
    /// Reload the configuration.
    Reload,
}

/// The receiver of these requests.
#[derive(Debug)]
pub struct Signals {
    hang_up: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    parent_died: tokio::signal::unix::Signal,
    parent: Option<u32>,
}

impl Signals {
    /// Starts to receive signals. If a parent's process id is given, checks that it is still the parent.
    ///
    /// # Errors
    /// When a signal handler can't be installed.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn new(parent: Option<u32>) -> io::Result<Self> {
        let signals = Self {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            parent_died: signal(SignalKind::user_defined2())?,
            parent,
        };
        if parent.is_some() {
            // The system sends it when the parent's *thread* that started this process ends, which may be before the
            // parent ends. So the signal triggers a check and not a stop.
            prctl::set_pdeathsig(Signal::SIGUSR2)?;
        }
        Ok(signals)
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Order {
        let mut looks = tokio::time::interval(PARENT_CHECK);
        loop {
            tokio::select! {
                _ = self.hang_up.recv() => return Order::Reload,
                _ = self.terminate.recv() => return Order::Stop,
                _ = self.interrupt.recv() => return Order::Stop,
                _ = self.parent_died.recv() => {}
                _ = looks.tick(), if self.parent.is_some() => {}
            }
            if self
                .parent
                .is_some_and(|parent| parent != getppid().as_raw().unsigned_abs())
            {
                return Order::Stop;
            }
        }
    }
}
