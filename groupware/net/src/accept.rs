//! One thread that accepts connections and serves them, with its own listener and event loop.

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

use crate::admission::{Admission, ConnectionPermit};
use crate::arrival::{Origin, arrive};
use crate::listen::Listener;

/// The pause of a thread after a failed accept, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An accepted connection: its peer, its origin, its permit, and the load of its thread.
#[derive(Debug)]
pub struct Connection {
    /// The address of the peer.
    pub peer: IpAddr,
    /// Where the connection was made.
    pub origin: Origin,
    /// The connection's permit.
    pub slot: ConnectionPermit,
    /// Connections that the same thread serves, this one included.
    pub on_thread: Arc<AtomicUsize>,
}

/// Serves accepted connections.
pub trait Serve: Send + Sync + 'static {
    /// Serves a connection until either side closes it, or the server stops.
    fn serve<S>(
        &self,
        stream: S,
        connection: Arc<Connection>,
        stopping: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Records an opened connection.
    fn opened(&self);

    /// Records the end of an open connection.
    fn closed(&self);

    /// Records a rejected connection: too many are open, or a proxy didn't name the client.
    fn refused(&self);
}

/// The state that all accepting threads share.
pub struct Accepting<H> {
    handler: H,
    tls: Option<TlsAcceptor>,
    handshake_timeout: Duration,
    shutdown_timeout: Duration,
    admission: Arc<Admission>,
    proxies_say: bool,
}

impl<H> Accepting<H> {
    /// Serves accepted connections with this handler.
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

    /// Sets whether each connection of a proxy begins with a header that names the client.
    #[must_use]
    pub fn proxies_say(self, proxies_say: bool) -> Self {
        Self {
            proxies_say,
            ..self
        }
    }

    /// Enables TLS, if given, with this bound on the handshake.
    #[must_use]
    pub fn tls(self, tls: Option<TlsAcceptor>, handshake_timeout: Duration) -> Self {
        Self {
            tls,
            handshake_timeout,
            ..self
        }
    }

    /// Sets how long a stopping server waits for the requests under way.
    #[must_use]
    pub fn shutdown_timeout(self, shutdown_timeout: Duration) -> Self {
        Self {
            shutdown_timeout,
            ..self
        }
    }
}

/// Serves connections until the server stops, then until the requests under way are answered or the
/// deadline passes.
///
/// # Errors
/// When the system can't create an event loop, or the listener can't be used with one.
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
    /// A signal of this thread's own: all threads would contend for the server's signal, which is
    /// polled with every request.
    stop: watch::Sender<bool>,
    on_thread: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl<H: Serve> Connections<H> {
    /// A set without connections, on a thread with this number of other tasks.
    pub(crate) fn new(shared: &Arc<Accepting<H>>, others: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            stop: watch::channel(false).0,
            on_thread: Arc::new(AtomicUsize::new(others)),
            tasks: JoinSet::new(),
        }
    }

    /// Serves a connection, if a permit is free.
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

    /// Waits until a connection has ended; for ever if there are none.
    pub(crate) async fn ended(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending().await
        }
    }

    /// Waits until the requests under way are answered, or the deadline passes.
    pub(crate) async fn finish(mut self) {
        self.stop.send_replace(true);
        let tasks = &mut self.tasks;
        let drained = async { while tasks.join_next().await.is_some() {} };
        // Past the deadline, dropping the set closes the remaining connections.
        let _ = tokio::time::timeout(self.shared.shutdown_timeout, drained).await;
    }
}

async fn serve<H: Serve>(
    (mut stream, peer, slot): (TcpStream, IpAddr, ConnectionPermit),
    on_thread: Arc<AtomicUsize>,
    shared: &Accepting<H>,
    stopping: watch::Receiver<bool>,
) {
    // Answers are sent at once; a socket that refuses this option is about to fail anyway.
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
