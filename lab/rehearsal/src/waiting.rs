//! Reports how long a dry run has been waiting for a response. It prints nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Interval of reports.
const EVERY: Duration = Duration::from_secs(5);

/// A thread that reports until this is dropped.
#[derive(Debug)]
pub struct Waiting {
    /// Number of ended requests.
    pub ended: Arc<AtomicU64>,
    _stop: SyncSender<()>,
}

impl Waiting {
    /// Starts to call `report`; `timeout` is that of a response.
    #[must_use]
    pub fn start(timeout: Duration, report: impl Fn(&str) + Send + 'static) -> Self {
        let (stop, stopped) = sync_channel(1);
        let ended = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&ended);
        std::thread::spawn(move || {
            let (mut last, mut waited) = (0, Duration::ZERO);
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = seen.load(Ordering::Relaxed);
                waited = if now == last {
                    waited + EVERY
                } else {
                    Duration::ZERO
                };
                last = now;
                if !waited.is_zero() {
                    report(&format!(
                        "still waiting for an answer, for {} s or more; --timeout is {} s",
                        waited.as_secs(),
                        timeout.as_secs_f64()
                    ));
                }
            }
        });
        Self { ended, _stop: stop }
    }
}
