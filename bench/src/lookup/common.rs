//! Shared parts of the compared systems and their drivers.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::data::Service;

/// The errors of the benchmark.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] postgres::Error),
    #[error("{0}")]
    Peer(String),
}

/// A system under comparison: each call is one whole operation, acknowledged.
pub(crate) trait System {
    fn name(&self) -> &'static str;
    /// Registers the service.
    fn register(&mut self, service: &Service) -> Result<(), Error>;
    /// Queries the service with this address, whole; returns its number of interfaces.
    fn query(&mut self, address: &str) -> Result<usize, Error>;
    /// Removes the service.
    fn deregister(&mut self, service: &Service) -> Result<(), Error>;
}

/// Returns the median (the mean of the two middle values).
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Polls until a value is available.
pub(crate) fn wait_for<T>(
    what: &str,
    mut ready: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let begin = now();
    while begin.elapsed() < Duration::from_secs(60) {
        if let Some(found) = ready()? {
            return Ok(found);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Err(Error::Peer(format!("{what} was not ready within 60 s")))
}
