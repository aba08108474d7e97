//! The server of the live page, and of the reports of finished runs: a thread of its own, with the lowest priority,
//! which reads the archive only while a page is viewed.
//!
//! Clients with the token of the address may view the run and control it. There is no cookie: another site's page can't
//! send requests in a reader's name. Host names that a hostile name server could point here are refused.

mod answer;
mod gate;
mod reports;
mod shared;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use rustix::process::setpriority_process;
use tokio::sync::watch as signal;

use crate::watch::{Analyse, Controls};

pub use gate::Token;
pub use reports::Reports;
use shared::{Shared, Source};

/// The nice value of the lowest priority.
const LAST: i32 = 19;
/// Longest wait for pages to receive their last parts.
const GOODBYE: Duration = Duration::from_secs(2);

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system provides no random bits, no thread, or no runtime.
    #[error("can't start the server of the live page")]
    Start(#[source] std::io::Error),
}

/// A server of the live page; it ends with this value.
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    token: Token,
    over: signal::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Serves the run whose archive is, or will be, in `dir`. Port 0 is any free one.
    ///
    /// # Errors
    /// [`LiveError`].
    pub fn start(
        address: SocketAddr,
        dir: PathBuf,
        analyse: Analyse,
        controls: Option<Controls>,
    ) -> Result<Self, LiveError> {
        let token = Token::new().map_err(LiveError::Start)?;
        Self::start_with(token, address, (dir, analyse, controls))
    }

    /// The same with a given token, so that the address of the metrics can be configured in a scraper.
    ///
    /// # Errors
    /// [`LiveError`].
    pub fn start_with(
        token: Token,
        address: SocketAddr,
        (dir, analyse, controls): (PathBuf, Analyse, Option<Controls>),
    ) -> Result<Self, LiveError> {
        let source = Source::new(dir, analyse, controls);
        Self::serve(token, address, |token, ended| {
            answer::router(Arc::new(Shared::new(token, source, ended)))
        })
    }

    /// Serves the reports of a folder of runs. Port 0 is any free one.
    ///
    /// # Errors
    /// [`LiveError`].
    pub fn reports(address: SocketAddr, pages: Box<dyn Reports>) -> Result<Self, LiveError> {
        let token = Token::new().map_err(LiveError::Start)?;
        Self::serve(token, address, |token, _| reports::router(token, pages))
    }

    fn serve(
        token: Token,
        address: SocketAddr,
        router: impl FnOnce(Token, signal::Receiver<bool>) -> Router,
    ) -> Result<Self, LiveError> {
        let listen = |address| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let listened = listen(address).map_err(|source| LiveError::Listen { address, source });
        let (address, listener) = listened?;
        let (over, ended) = signal::channel(false);
        let app = router(token.clone(), ended.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(LiveError::Start)?;
        let thread = std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || {
                // Its reads must not slow the load; without permission they are still cheap.
                let _ = setpriority_process(None, LAST);
                runtime.block_on(serve(listener, app, ended));
            })
            .map_err(LiveError::Start)?;
        Ok(Self {
            address,
            token,
            over,
            thread: Some(thread),
        })
    }

    /// The address of the page, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.text())
    }
}

impl Drop for Live {
    /// Sends pages their last parts.
    fn drop(&mut self) {
        let _ = self.over.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, app: Router, ended: signal::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let mut late = ended.clone();
    let mut ended = ended;
    let over = async move { drop(ended.wait_for(|over| *over).await) };
    let served = axum::serve(listener, app).with_graceful_shutdown(over);
    tokio::select! {
        _ = served => {}
        () = async {
            let _ = late.wait_for(|over| *over).await;
            tokio::time::sleep(GOODBYE).await;
        } => {}
    }
}
