//! A thread that runs network futures for blocking callers.

use std::future::Future;
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::FleetError;

/// A runtime on its own thread. Dropping it ends the runtime and all its futures.
#[derive(Debug)]
pub(crate) struct Runner {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    pub(crate) fn start(name: &str) -> Result<Self, FleetError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(FleetError::Thread)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            let _told = runtime.block_on(ended);
        });
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread.map_err(FleetError::Thread)?),
        })
    }

    /// Runs a future on the runtime, and blocks until it ends.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (say, said) = oneshot::channel();
        self.handle.spawn(async move {
            let _gone = say.send(future.await);
        });
        said.blocking_recv()
            .expect("the thread lives as long as this")
    }

    /// Returns the runtime handle, usable from any thread.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts a future on the runtime.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}
