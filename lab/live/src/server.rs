//! The server of the live page, and of the reports of runs that are over: a thread of its own, behind
//! everything else that wants a CPU, which looks at the archive when somebody looks at the page, and at
//! no other time.
//!
//! Whoever knows the token that is in the address may see the run and steer it. There is no cookie: a
//! page elsewhere can't ask for anything in a reader's name. Names that could be made to lead here by a
//! hostile name server are refused as the host.

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

/// The nice value of a thread that comes after all others.
const LAST: i32 = 19;
/// How long pages may take for their last parts.
const GOODBYE: Duration = Duration::from_secs(2);

/// The server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system gives no random bits, no thread, or no runtime.
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

    /// The same with a token that is known beforehand, so that a scraper can have the address of its metrics.
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
                // Its looks must not cost the load anything; where that isn't allowed it is still little.
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

    /// Where the page is, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.text())
    }
}

impl Drop for Live {
    /// Pages get their last parts.
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
