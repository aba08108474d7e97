//! The pace that a peer must keep: bounds on how long it may keep the server waiting.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;

/// Bytes of a response, or the rest of it, that the client must receive within the send timeout: a
/// client that receives a few bytes now and then would hold memory for ever.
const PACE_BYTES: u64 = 64 << 10;

/// Bounds on the time and bytes that a client may send after its answer. If the server closed at once,
/// the connection would be reset, and the client would lose the answer on its way (RFC 9112, 9.6).
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: u64 = 16 << 20;

/// Bounds on how long a connection may keep the server waiting.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Longest time until a head is received, plus or minus half.
    pub head_timeout: Duration,
    /// Longest time that a connection may be idle.
    pub idle_timeout: Duration,
    /// Longest time in which a client must receive 64 KiB, or the rest, of a blocked response.
    pub send_timeout: Duration,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for a request, or sending a response.
    Idle = 0,
    /// Receiving the head of a request.
    Head = 1,
    /// Receiving a body, or working: bounded by the request's own timeout.
    Busy = 2,
}

/// A connection's phase and the number of its changes, as seen by its reader and its service.
#[derive(Debug)]
pub struct ConnectionActivity {
    phase: AtomicU8,
    changes: AtomicU32,
    /// The last send had to wait for the client to receive earlier bytes.
    blocked: AtomicBool,
    /// Bytes sent so far.
    sent_bytes: AtomicU64,
    /// The request's body was not read to its end.
    gave_body_up: AtomicBool,
}

impl Default for ConnectionActivity {
    /// A new connection waits for a head.
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Head as u8),
            changes: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            sent_bytes: AtomicU64::new(0),
            gave_body_up: AtomicBool::new(false),
        }
    }
}

impl ConnectionActivity {
    /// Changes the connection's phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.changes.fetch_add(1, Relaxed);
    }

    /// Records the start of a request.
    pub fn begin(&self) {
        self.enter(Phase::Busy);
        if self.gave_body_up.load(Relaxed) {
            self.gave_body_up.store(false, Relaxed);
        }
    }

    /// The rest of the request's body will not be read.
    pub fn give_up_body(&self) {
        self.gave_body_up.store(true, Relaxed);
    }

    fn received(&self) {
        if self.phase.load(Relaxed) == Phase::Idle as u8 {
            self.enter(Phase::Head);
        }
    }

    /// Records that a send succeeded or had to wait. A send that succeeds at once, as most do, costs one load.
    fn sent(&self, is_ready: bool) {
        if is_ready && self.blocked.load(Relaxed) {
            self.blocked.store(false, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        } else if !is_ready {
            self.blocked.store(true, Relaxed);
        }
    }

    /// Records the sent bytes, or that some had to wait.
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        self.sent(polled.is_ready());
        if let Poll::Ready(Ok(count)) = polled {
            // Only this task writes it, so that it needs no locked instruction.
            let before = self.sent_bytes.load(Relaxed);
            self.sent_bytes.store(before + *count as u64, Relaxed);
        }
    }
}

/// Closes connections that keep the server waiting. It checks periodically instead of setting a
/// timer per request, so that a limit may be exceeded by half a head's time.
#[derive(Debug)]
pub struct IdleTimeout {
    tick: Duration,
    idle_ticks: u32,
    send_ticks: u32,
    seen: u32,
    ticks: u32,
    /// Bytes sent when the client last kept the pace, and the ticks since.
    paced_bytes: u64,
    paced_ticks: u32,
}

impl IdleTimeout {
    /// Ticks that a head may take.
    const HEAD_TICKS: u32 = 2;

    /// Derives the ticks from these limits.
    pub fn new(limits: &Pace) -> Self {
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

    /// The interval between checks.
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns true if the connection must be closed; to be called at each tick.
    pub fn ends_at_this_tick(&mut self, pulse: &ConnectionActivity) -> bool {
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

    /// Returns true if a response is blocked by a client that does not keep the pace.
    fn receives_too_little(&mut self, pulse: &ConnectionActivity) -> bool {
        let sent = pulse.sent_bytes.load(Relaxed);
        if !pulse.blocked.load(Relaxed) || sent - self.paced_bytes >= PACE_BYTES {
            (self.paced_bytes, self.paced_ticks) = (sent, 0);
            return false;
        }
        self.paced_ticks = self.paced_ticks.saturating_add(1);
        self.paced_ticks > self.send_ticks
    }
}

/// A stream that records when bytes arrive on it, and when it can't send.
#[derive(Debug)]
pub struct PacedStream<S> {
    io: TokioIo<S>,
    activity: Arc<ConnectionActivity>,
    /// While the client's remaining bytes are discarded: the deadline, and the bytes left.
    lingering: Option<(Pin<Box<Sleep>>, u64)>,
}

impl<S> PacedStream<S> {
    /// Records this stream's events in `pulse`.
    pub fn new(stream: S, pulse: Arc<ConnectionActivity>) -> Self {
        Self {
            io: TokioIo::new(stream),
            activity: pulse,
            lingering: None,
        }
    }
}

impl<S: AsyncRead + Unpin> PacedStream<S> {
    /// Waits for the client to close the connection, within bounds.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (until, left) = (self.lingering)
            .get_or_insert_with(|| (Box::pin(tokio::time::sleep(LINGER)), LINGER_BYTES));
        if until.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut bytes = [0; 8192];
        // Bounded per poll: other tasks of this thread wait.
        for _ in 0..16 {
            let mut buffer = tokio::io::ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(self.io.inner_mut()).poll_read(context, &mut buffer));
            let count = buffer.filled().len() as u64;
            *left = left.saturating_sub(count);
            if read.is_err() || count == 0 || *left == 0 {
                return Poll::Ready(());
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> Read for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        if polled.is_ready() {
            self.activity.received();
        }
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Write for PacedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(context, bytes);
        self.activity.wrote(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(context);
        self.activity.sent(polled.is_ready());
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.io).poll_shutdown(context))?;
        }
        if self.activity.gave_body_up.load(Relaxed) {
            ready!(self.poll_linger(context));
        }
        Poll::Ready(Ok(()))
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
        self.activity.wrote(&polled);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_slow_heads_and_idle_connections_but_no_work() {
        let limits = Pace {
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(20),
        };
        let ticks_until_end = |phase: Option<Phase>| {
            let (pulse, mut patience) = (ConnectionActivity::default(), IdleTimeout::new(&limits));
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
        let limits = Pace {
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(600),
            send_timeout: Duration::from_secs(20),
        };
        // The bytes received at each tick; the connection waits to send more.
        let ticks_until_end = |bytes: u64| {
            let (pulse, mut patience) = (ConnectionActivity::default(), IdleTimeout::new(&limits));
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
        // A client that has received everything is not too slow.
        let (pulse, mut patience) = (ConnectionActivity::default(), IdleTimeout::new(&limits));
        pulse.enter(Phase::Idle);
        for _ in 0..20 {
            pulse.wrote(&Poll::Pending);
            assert!((0..4).all(|_| !patience.ends_at_this_tick(&pulse)));
            pulse.wrote(&Poll::Ready(Ok(1)));
            assert!(!patience.ends_at_this_tick(&pulse));
        }
    }
}
