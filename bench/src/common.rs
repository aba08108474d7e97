//! Shared parts of all benchmarks of this program: errors, child servers, and the median.

use std::process::Child;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// The errors of a benchmark.
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

/// A server that ends on drop.
pub(crate) struct Server(pub(crate) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        // It may have ended by itself.
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Returns the median (the mean of the two middle values).
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

/// Returns the CPU time so far of this process, or of its finished children, in microseconds.
pub(crate) fn cpu_us(whose: UsageWho) -> Result<f64, Error> {
    let usage = getrusage(whose).map_err(std::io::Error::from)?;
    let total = usage.user_time() + usage.system_time();
    Ok(total.num_microseconds() as f64)
}
