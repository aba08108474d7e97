//! Disk work, on threads that may block.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::Semaphore;

use crate::error::ApiError;

/// Most files that are worked on at once. A disk is as fast with this many requests as with more.
const AT_ONCE: usize = 32;

/// The blocking pool for disk work.
#[derive(Debug)]
pub struct Disk(Arc<Semaphore>);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }

    /// Runs work in the background, after the work queued before it.
    pub fn later(&self, work: impl FnOnce() + Send + 'static) {
        let permits = Arc::clone(&self.0);
        tokio::spawn(async move {
            let permit = permits.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let _permit = permit;
                work();
            });
        });
    }

    /// Runs work and waits for it. If the caller stops waiting, the work completes all the same.
    ///
    /// # Errors
    /// 503 if the server is stopping.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        match done.await {
            Ok(done) => Ok(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(ApiError::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server is stopping.",
                5,
            )),
        }
    }
}
