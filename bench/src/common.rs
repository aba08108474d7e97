//! What all benchmarks of this program need: their errors, servers that end, and the middle of several goes.

use std::process::Child;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// What can go wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the store failed: {0}")]
    Open(#[from] groupware_store::OpenError),
    #[error("the store failed: {0}")]
    Commit(#[from] groupware_store::CommitError),
    #[error("a benchmark thread ended early")]
    Thread,
    #[error("{0}")]
    Peer(String),
}

/// A server, ended with its value.
pub(crate) struct Server(pub(crate) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        // It may have ended by itself; then there is nothing to end.
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// The middle value (the mean of the two middle ones).
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

/// CPU time so far of this process, or of the children that it has waited for, in microseconds.
pub(crate) fn cpu_us(whose: UsageWho) -> Result<f64, Error> {
    let usage = getrusage(whose).map_err(std::io::Error::from)?;
    let total = usage.user_time() + usage.system_time();
    Ok(total.num_microseconds() as f64)
}
