//! Signals, and the end of the parent, as what they ask.

use std::io;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use tokio::signal::unix::{SignalKind, signal};

/// How often the parent is looked for, besides the signal that the system sends.
const PARENT_CHECK: Duration = Duration::from_millis(500);

/// What is asked of a server from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It is to end.
    Stop,
    /// It is to read its configuration again.
    Reload,
}

/// What ends the server, or has it read its configuration again.
#[derive(Debug)]
pub struct Signals {
    hang_up: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    parent_died: tokio::signal::unix::Signal,
    parent: Option<u32>,
}

impl Signals {
    /// Listens to signals from now on, and looks whether the process with this id is still the parent, if one
    /// is given.
    ///
    /// # Errors
    /// When the system refuses.
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
            // The system sends it when the parent's *thread* that started this process ends, which
            // need not be the parent's end: hence a signal to look, not to die.
            prctl::set_pdeathsig(Signal::SIGUSR2)?;
        }
        Ok(signals)
    }

    /// Waits until something is asked.
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
