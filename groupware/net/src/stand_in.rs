//! One thread that accepts connections for threads that don't return to their listeners.
//!
//! The system gives each listener its share of the connections, whatever its thread does: a thread
//! may wait for a slow disk, or compute for long. This thread then serves the waiting connections.
//! Requests pay nothing for it, and connections only where they wait.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::accept::{Accepting, Connections, Serve, event_loop};
use crate::listen::Listener;

/// The interval between checks of the listeners. A connection that waits at two checks in a row is served.
const LOOK: Duration = Duration::from_millis(100);
/// Most connections that are accepted from one listener per check.
const AT_ONCE: usize = 64;

/// Watches the listeners of other threads, and serves connections that wait there, until the server
/// stops; then until the requests under way are answered or the deadline passes.
///
/// # Errors
/// When the system can't create an event loop.
pub fn stand_in<H: Serve>(
    listeners: Vec<Listener>,
    shared: &Arc<Accepting<H>>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    event_loop()?.block_on(look_after(listeners, shared, stop));
    Ok(())
}

async fn look_after<H: Serve>(
    listeners: Vec<Listener>,
    shared: &Arc<Accepting<H>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut left_alone = LeftAlone::new(listeners);
    // The checks count as one more task: with a single connection, this thread doesn't wait for the disk either.
    let mut connections = Connections::new(shared, 1);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => for listener in left_alone.look() {
                serve_waiting(listener, &mut connections);
            },
            () = connections.ended() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(left_alone);
    connections.finish().await;
}

fn serve_waiting<H: Serve>(listener: &Listener, connections: &mut Connections<H>) {
    for _ in 0..AT_ONCE {
        // An empty queue is an error, too. Further connections are accepted at the next check.
        let Ok((stream, peer)) = listener.socket.accept() else {
            return;
        };
        let stream = stream.set_nonblocking(true).map(|()| stream);
        if let Ok(stream) = stream.and_then(TcpStream::from_std) {
            connections.admit(stream, peer.ip());
        }
    }
}

/// Finds listeners with waiting connections whose threads accept none.
struct LeftAlone {
    listeners: Vec<Listener>,
    /// For each listener with a waiting connection at the last check: the number its thread had accepted.
    taken: Vec<Option<u64>>,
}

impl LeftAlone {
    fn new(listeners: Vec<Listener>) -> Self {
        Self {
            taken: vec![None; listeners.len()],
            listeners,
        }
    }

    fn look(&mut self) -> impl Iterator<Item = &Listener> {
        let sockets = self.listeners.iter().map(|it| it.socket.as_fd());
        let readable = |socket| PollFd::new(socket, PollFlags::POLLIN);
        let mut polled: Vec<_> = sockets.map(readable).collect();
        // A failed poll counts as no waiting connection: the next check is soon.
        let _ = poll(&mut polled, PollTimeout::ZERO);
        let waits: Vec<bool> = polled.iter().map(|it| it.any() == Some(true)).collect();
        let looks = self.listeners.iter().zip(&mut self.taken).zip(waits);
        looks.filter_map(|((listener, taken), waits)| {
            let now = waits.then(|| listener.accepted.load(Relaxed));
            let before = std::mem::replace(taken, now);
            (now.is_some() && now == before).then_some(listener)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

    use super::*;
    use crate::{Admission, Connection, Networks, TrustedNetworks, listen, run};

    /// Echoes each byte with the number of connections on the thread. On `w`, it reports that it
    /// blocks its whole thread, and continues on a signal.
    struct Echo {
        held: SyncSender<()>,
        go_on: Mutex<Receiver<()>>,
    }

    impl Serve for Echo {
        async fn serve<S>(&self, mut stream: S, with: Arc<Connection>, _: watch::Receiver<bool>)
        where
            S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        {
            while let Ok(byte) = stream.read_u8().await {
                if byte == b'w' {
                    self.held.send(()).unwrap();
                    let _ = self.go_on.lock().map(|go_on| go_on.recv());
                }
                let others = with.on_thread.load(Relaxed);
                let answer = [byte, b'0' + u8::try_from(others).unwrap_or(9)];
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }

        fn opened(&self) {}
        fn closed(&self) {}
        fn refused(&self) {}
    }

    /// The answer to a byte on this connection.
    fn ask(stream: &mut TcpStream, byte: u8) -> [u8; 2] {
        stream.write_all(&[byte]).unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).unwrap();
        answer
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    #[test]
    fn who_comes_to_a_thread_that_is_held_up_is_served() {
        let ((held, is_held), (go_on, waits)) = (sync_channel(1), sync_channel(1));
        let echo = Echo {
            held,
            go_on: Mutex::new(waits),
        };
        let known = TrustedNetworks::new(Networks::loopback(), Networks::loopback());
        let accepting = Accepting::new(echo, Arc::new(Admission::new(8, known)));
        let shared = &Arc::new(accepting.shutdown_timeout(Duration::ZERO));
        let (mut listeners, address) = listen(([127, 0, 0, 1], 0).into(), 1).unwrap();
        let listener = Listener::from(listeners.remove(0));
        let (stop, stopping) = watch::channel(false);
        // The senders are dropped also by a failure, so that the threads end.
        std::thread::scope(move |scope| {
            let (seen, until) = (vec![listener.try_clone().unwrap()], stopping.clone());
            scope.spawn(move || run(listener, shared, stopping).unwrap());
            let mut first = connect(address);
            assert_eq!(ask(&mut first, b'a'), *b"a1");
            scope.spawn(move || stand_in(seen, shared, until).unwrap());
            first.write_all(b"w").unwrap();
            is_held.recv().unwrap();
            for _ in 0..3 {
                let [answer, on_thread] = ask(&mut connect(address), b'b');
                assert_eq!(answer, b'b');
                // If the count were 1, a request would wait for the disk on this thread, too.
                assert!(on_thread > b'1');
            }
            go_on.send(()).unwrap();
            let mut answer = [0; 2];
            first.read_exact(&mut answer).unwrap();
            assert_eq!(answer, *b"w1");
            stop.send_replace(true);
        });
    }

    #[test]
    fn a_listener_is_left_alone_when_nobody_is_taken_between_two_looks() {
        let (mut listeners, address) = listen(([127, 0, 0, 1], 0).into(), 1).unwrap();
        let listener = Listener::from(listeners.remove(0));
        let accepted = Arc::clone(&listener.accepted);
        let mut left_alone = LeftAlone::new(vec![listener]);
        let mut look = || left_alone.look().count();
        assert_eq!((look(), look()), (0, 0));
        let _waits = connect(address);
        assert_eq!((look(), look(), look()), (0, 1, 1));
        // Its thread accepted another connection meanwhile: it is busy, and returns.
        accepted.fetch_add(1, Relaxed);
        assert_eq!((look(), look()), (0, 1));
    }
}
