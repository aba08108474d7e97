//! One thread that accepts connections and has them served, with its own listener and event loop.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::admission::{Admission, Slot};
use crate::arrival::{Origin, arrive};
use crate::listen::Listener;

/// How long a thread stays away from its listener after an error, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where a connection comes from, what is known of it, and what else its thread does.
#[derive(Debug)]
pub struct Connection {
    /// The other end.
    pub peer: IpAddr,
    /// From where it was made.
    pub origin: Origin,
    /// The place that it takes.
    pub slot: Slot,
    /// Connections that the same thread serves, this one included.
    pub on_thread: Arc<AtomicUsize>,
}

/// What is done with connections.
pub trait Serve: Send + Sync + 'static {
    /// Serves one until either side ends it, or it is told to stop.
    fn serve<S>(
        &self,
        stream: S,
        connection: Arc<Connection>,
        stopping: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// A connection is open.
    fn opened(&self);

    /// A connection that was open is closed.
    fn closed(&self);

    /// A connection was closed at once, since too many are open, or a proxy didn't say whose it is.
    fn refused(&self);
}

/// What the threads that accept connections share.
pub struct Accepting<H> {
    handler: H,
    tls: Option<TlsAcceptor>,
    handshake_timeout: Duration,
    shutdown_timeout: Duration,
    admission: Arc<Admission>,
    proxies_say: bool,
}

impl<H> Accepting<H> {
    /// Has this handler serve the connections that are let in.
    pub fn new(handler: H, admission: Arc<Admission>) -> Self {
        Self {
            handler,
            tls: None,
            handshake_timeout: Duration::MAX,
            shutdown_timeout: Duration::MAX,
            admission,
            proxies_say: false,
        }
    }

    /// Whether each connection of a proxy begins with a header that says for whom it comes.
    #[must_use]
    pub fn proxies_say(self, proxies_say: bool) -> Self {
        Self {
            proxies_say,
            ..self
        }
    }

    /// Speaks TLS, if given, whose handshake may take so long.
    #[must_use]
    pub fn tls(self, tls: Option<TlsAcceptor>, handshake_timeout: Duration) -> Self {
        Self {
            tls,
            handshake_timeout,
            ..self
        }
    }

    /// Waits at most so long for what is under way when it is told to stop.
    #[must_use]
    pub fn shutdown_timeout(self, shutdown_timeout: Duration) -> Self {
        Self {
            shutdown_timeout,
            ..self
        }
    }
}

/// Serves until told to stop, and then until the requests under way are answered or the deadline
/// has come.
///
/// # Errors
/// When the system has no event loop to give, or the listener can't be used with one.
pub fn run<H: Serve>(
    listener: Listener,
    shared: &Arc<Accepting<H>>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    event_loop()?.block_on(accept_all(listener, shared, stop))
}

/// The event loop of a thread that serves connections.
pub(crate) fn event_loop() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
}

async fn accept_all<H: Serve>(
    listener: Listener,
    shared: &Arc<Accepting<H>>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let Listener { socket, accepted } = listener;
    let socket = tokio::net::TcpListener::from_std(socket)?;
    let mut connections = Connections::new(shared, 0);
    loop {
        tokio::select! {
            arrived = socket.accept() => match arrived {
                Ok((stream, peer)) => {
                    accepted.fetch_add(1, Relaxed);
                    connections.admit(stream, peer.ip());
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            () = connections.ended() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(socket);
    connections.finish().await;
    Ok(())
}

/// The connections of one thread.
pub(crate) struct Connections<H: Serve> {
    shared: Arc<Accepting<H>>,
    /// They watch a signal of their own: polled with every request, the server's would be fought over by
    /// all threads.
    stop: watch::Sender<bool>,
    on_thread: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl<H: Serve> Connections<H> {
    /// None yet, on a thread that does so many other things.
    pub(crate) fn new(shared: &Arc<Accepting<H>>, others: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            stop: watch::channel(false).0,
            on_thread: Arc::new(AtomicUsize::new(others)),
            tasks: JoinSet::new(),
        }
    }

    /// Serves one, if there is room for it.
    pub(crate) fn admit(&mut self, stream: TcpStream, peer: IpAddr) {
        let shared = Arc::clone(&self.shared);
        let Some(slot) = shared.admission.enter(peer, shared.proxies_say) else {
            shared.handler.refused();
            return;
        };
        let open = OpenConnection::count(&shared, &self.on_thread);
        let (on_thread, stopping) = (Arc::clone(&self.on_thread), self.stop.subscribe());
        self.tasks.spawn(async move {
            let _open = open;
            serve((stream, peer, slot), on_thread, &shared, stopping).await;
        });
    }

    /// Waits until one has ended; for ever where there is none.
    pub(crate) async fn ended(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending().await
        }
    }

    /// Waits until the requests under way are answered, or the deadline has come.
    pub(crate) async fn finish(mut self) {
        self.stop.send_replace(true);
        let tasks = &mut self.tasks;
        let drained = async { while tasks.join_next().await.is_some() {} };
        // Past the deadline, the rest is cut off when the set is dropped.
        let _ = tokio::time::timeout(self.shared.shutdown_timeout, drained).await;
    }
}

async fn serve<H: Serve>(
    (mut stream, peer, slot): (TcpStream, IpAddr, Slot),
    on_thread: Arc<AtomicUsize>,
    shared: &Accepting<H>,
    stopping: watch::Receiver<bool>,
) {
    // Answers go out at once; a socket that refuses this is about to fail anyway.
    let _ = stream.set_nodelay(true);
    let Ok((origin, slot)) = arrive(&mut stream, slot).await else {
        shared.handler.refused();
        return;
    };
    let connection = Arc::new(Connection {
        peer,
        origin,
        slot,
        on_thread,
    });
    let Some(tls) = &shared.tls else {
        return shared.handler.serve(stream, connection, stopping).await;
    };
    let handshake = tokio::time::timeout(shared.handshake_timeout, tls.accept(stream));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = connection.slot.ticket().displaced() => return,
    };
    if let Ok(Ok(stream)) = shaken {
        shared.handler.serve(stream, connection, stopping).await;
    }
}

/// Counts a connection as long as it is open.
struct OpenConnection<H: Serve> {
    shared: Arc<Accepting<H>>,
    on_thread: Arc<AtomicUsize>,
}

impl<H: Serve> OpenConnection<H> {
    fn count(shared: &Arc<Accepting<H>>, on_thread: &Arc<AtomicUsize>) -> Self {
        shared.handler.opened();
        on_thread.fetch_add(1, Relaxed);
        Self {
            shared: Arc::clone(shared),
            on_thread: Arc::clone(on_thread),
        }
    }
}

impl<H: Serve> Drop for OpenConnection<H> {
    fn drop(&mut self) {
        self.shared.handler.closed();
        self.on_thread.fetch_sub(1, Relaxed);
    }
}
