//! One thread that accepts connections and serves them, with its own listener and event loop.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::Limits;
use crate::serve::Front;

/// How long a thread stays away from its listener after an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// So much of a response, or the rest of it, is received within the time that sending may take: who
/// receives a little now and then would hold memory for ever.
const PACE_BYTES: u64 = 64 << 10;

thread_local! {
    /// Connections that this thread serves.
    static CONNECTIONS: Cell<usize> = const { Cell::new(0) };
}

/// Whether this is a thread that serves a single connection, so that no other request is held up while
/// one of it waits.
pub(crate) fn serves_one() -> bool {
    CONNECTIONS.get() == 1
}

/// What the threads share.
pub(crate) struct Shared {
    pub(crate) front: Front,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    pub(crate) max_connections: usize,
    pub(crate) open: AtomicUsize,
}

/// Serves until told to stop, and then until the requests under way are answered or the deadline
/// has come.
pub(crate) fn run(
    listener: TcpListener,
    shared: &Arc<Shared>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(accept_all(listener, shared, stop))
}

async fn accept_all(
    listener: TcpListener,
    shared: &Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // The connections of a thread watch a signal of its own: polled with every request, the
    // server's would be fought over by all threads.
    let (stop_here, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => admit((stream, peer.ip()), shared, &stopping, &mut connections),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(listener);
    stop_here.send_replace(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    // Past the deadline, the rest is cut off when the set is dropped.
    let _ = tokio::time::timeout(shared.limits.shutdown_timeout, drained).await;
    Ok(())
}

fn admit(
    (stream, peer): (TcpStream, IpAddr),
    shared: &Arc<Shared>,
    stopping: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let metrics = &shared.front.state().metrics;
    let Some(place) = Place::take(shared) else {
        metrics.connections_refused.inc();
        return;
    };
    let (shared, stopping) = (Arc::clone(shared), stopping.clone());
    connections.spawn(async move {
        let _place = place;
        // Answers go out at once; a socket that refuses this is about to fail anyway.
        let _ = stream.set_nodelay(true);
        match &shared.tls {
            None => serve(stream, peer, &shared, stopping).await,
            Some(tls) => {
                let handshake = tls.accept(stream);
                if let Ok(Ok(stream)) =
                    tokio::time::timeout(shared.limits.head_timeout, handshake).await
                {
                    serve(stream, peer, &shared, stopping).await;
                }
            }
        }
    });
}

/// One of the connections that may be open.
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        if shared.open.fetch_add(1, Relaxed) >= shared.max_connections {
            shared.open.fetch_sub(1, Relaxed);
            return None;
        }
        shared.front.state().metrics.connections.inc();
        CONNECTIONS.set(CONNECTIONS.get() + 1);
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
        self.0.front.state().metrics.connections.dec();
        CONNECTIONS.set(CONNECTIONS.get() - 1);
    }
}

/// Serves one connection until either side ends it, it is too slow, or the server stops.
async fn serve<S>(
    stream: S,
    peer: IpAddr,
    shared: &Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pulse = Arc::new(Pulse::default());
    let io = Watched {
        io: TokioIo::new(stream),
        pulse: Arc::clone(&pulse),
    };
    let service = service_fn(|request| {
        let (shared, pulse) = (Arc::clone(shared), Arc::clone(&pulse));
        async move {
            pulse.enter(Phase::Busy);
            let response = shared.front.answer(request, peer).await;
            pulse.enter(Phase::Idle);
            Ok::<_, Infallible>(response)
        }
    });
    let limits = &shared.limits;
    let mut connection = pin!(
        http1::Builder::new()
            .max_headers(limits.headers)
            .max_header_size(limits.head_bytes)
            .max_buf_size(limits.head_bytes.max(8192))
            // Of our own, see `Patience`: hyper's also runs while a connection is idle.
            .header_read_timeout(None)
            .serve_connection(io, service)
    );
    let mut patience = Patience::new(limits);
    let mut ticks = tokio::time::interval(patience.tick);
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            _ = stopping.changed(), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = ticks.tick() => if patience.ends_at_this_tick(&pulse) { return },
        }
    }
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for a request, or sending a response.
    Idle = 0,
    /// Receiving the head of a request.
    Head = 1,
    /// Receiving a body, or working: bounded by the request's own timeout.
    Busy = 2,
}

/// A connection's phase and how often it changed, as seen by its reader and its service.
#[derive(Debug)]
struct Pulse {
    phase: AtomicU8,
    changes: AtomicU32,
    /// The last bytes sent had to wait for the client to receive earlier ones.
    blocked: AtomicBool,
    /// Bytes sent so far.
    sent_bytes: AtomicU64,
}

impl Default for Pulse {
    /// A new connection owes a head.
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Head as u8),
            changes: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            sent_bytes: AtomicU64::new(0),
        }
    }
}

impl Pulse {
    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.changes.fetch_add(1, Relaxed);
    }

    fn received(&self) {
        if self.phase.load(Relaxed) == Phase::Idle as u8 {
            self.enter(Phase::Head);
        }
    }

    /// Something was sent, or had to wait. What is sent at once, as most is, costs a look.
    fn sent(&self, is_ready: bool) {
        if is_ready && self.blocked.load(Relaxed) {
            self.blocked.store(false, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        } else if !is_ready {
            self.blocked.store(true, Relaxed);
        }
    }

    /// So many bytes were sent, or some had to wait.
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        self.sent(polled.is_ready());
        if let Poll::Ready(Ok(count)) = polled {
            // Nobody else writes it, so that it needs no locked instruction.
            let before = self.sent_bytes.load(Relaxed);
            self.sent_bytes.store(before + *count as u64, Relaxed);
        }
    }
}

/// Ends connections that keep the server waiting. It looks at them now and then rather than
/// setting a timer per request, so that a limit may be exceeded by half a head's time.
struct Patience {
    tick: Duration,
    idle_ticks: u32,
    send_ticks: u32,
    seen: u32,
    ticks: u32,
    /// Bytes that had been sent when the client last kept the pace, and the ticks since.
    paced_bytes: u64,
    paced_ticks: u32,
}

impl Patience {
    /// A head may take two ticks.
    const HEAD_TICKS: u32 = 2;

    fn new(limits: &Limits) -> Self {
        let tick = (limits.head_timeout / Self::HEAD_TICKS).max(Duration::from_millis(1));
        let ticks = |time: Duration| {
            u32::try_from(time.as_millis().div_ceil(tick.as_millis())).unwrap_or(u32::MAX)
        };
        Self {
            tick,
            idle_ticks: ticks(limits.idle_timeout),
            send_ticks: ticks(limits.send_timeout),
            seen: 0,
            ticks: 0,
            paced_bytes: 0,
            paced_ticks: 0,
        }
    }

    fn ends_at_this_tick(&mut self, pulse: &Pulse) -> bool {
        if self.receives_too_little(pulse) {
            return true;
        }
        let changes = pulse.changes.load(Relaxed);
        if changes != self.seen {
            (self.seen, self.ticks) = (changes, 0);
            return false;
        }
        self.ticks = self.ticks.saturating_add(1);
        match pulse.phase.load(Relaxed) {
            phase if phase == Phase::Idle as u8 => self.ticks > self.idle_ticks,
            phase if phase == Phase::Head as u8 => self.ticks > Self::HEAD_TICKS,
            _ => false,
        }
    }

    /// Whether a response waits for a client that does not keep the pace.
    fn receives_too_little(&mut self, pulse: &Pulse) -> bool {
        let sent = pulse.sent_bytes.load(Relaxed);
        if !pulse.blocked.load(Relaxed) || sent - self.paced_bytes >= PACE_BYTES {
            (self.paced_bytes, self.paced_ticks) = (sent, 0);
            return false;
        }
        self.paced_ticks = self.paced_ticks.saturating_add(1);
        self.paced_ticks > self.send_ticks
    }
}

/// A stream that tells when something arrives on it, and when nothing can be sent.
struct Watched<S> {
    io: TokioIo<S>,
    pulse: Arc<Pulse>,
}

impl<S: AsyncRead + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        if polled.is_ready() {
            self.pulse.received();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(context, bytes);
        self.pulse.wrote(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(context);
        self.pulse.sent(polled.is_ready());
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.pulse.wrote(&polled);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_slow_heads_and_idle_connections_but_no_work() {
        let limits = Limits {
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(20),
            ..Limits::default()
        };
        let ticks_until_end = |phase: Option<Phase>| {
            let (pulse, mut patience) = (Pulse::default(), Patience::new(&limits));
            if let Some(phase) = phase {
                pulse.enter(phase);
            }
            (1..100).find(|_| patience.ends_at_this_tick(&pulse))
        };
        assert_eq!(ticks_until_end(None), Some(3));
        assert_eq!(ticks_until_end(Some(Phase::Head)), Some(4));
        assert_eq!(ticks_until_end(Some(Phase::Idle)), Some(14));
        assert_eq!(ticks_until_end(Some(Phase::Busy)), None);
    }

    #[test]
    fn who_receives_too_little_of_a_response_is_cut_off() {
        let limits = Limits {
            head_timeout: Duration::from_secs(10),
            send_timeout: Duration::from_secs(20),
            ..Limits::default()
        };
        // What is received at each tick; the connection waits to send more.
        let ticks_until_end = |bytes: u64| {
            let (pulse, mut patience) = (Pulse::default(), Patience::new(&limits));
            pulse.enter(Phase::Idle);
            (1..100).find(|_| {
                if bytes > 0 {
                    let count = usize::try_from(bytes).unwrap();
                    pulse.wrote(&Poll::Ready(Ok(count)));
                }
                pulse.wrote(&Poll::Pending);
                patience.ends_at_this_tick(&pulse)
            })
        };
        assert_eq!(ticks_until_end(0), Some(5));
        assert_eq!(ticks_until_end(1), Some(5));
        assert_eq!(ticks_until_end(PACE_BYTES / 8), Some(5));
        assert_eq!(ticks_until_end(PACE_BYTES / 4), None);
        // Who has received all that there was to send owes nothing.
        let (pulse, mut patience) = (Pulse::default(), Patience::new(&limits));
        pulse.enter(Phase::Idle);
        for _ in 0..20 {
            pulse.wrote(&Poll::Pending);
            assert!((0..4).all(|_| !patience.ends_at_this_tick(&pulse)));
            pulse.wrote(&Poll::Ready(Ok(1)));
            assert!(!patience.ends_at_this_tick(&pulse));
        }
    }
}
