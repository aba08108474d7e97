//! A bad link between two programs that speak TCP. It delays, narrows, stalls, halves, and cuts the forwarded bytes,
//! each direction by itself, and keeps their order. It is independent of the protocol.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

/// The interval between two looks at the setting of a direction.
const LOOK: Duration = Duration::from_millis(10);
/// The interval between two pieces on a narrow link.
const BETWEEN: Duration = Duration::from_millis(20);
/// The largest piece.
const PIECE: usize = 16 << 10;

/// The state of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Way {
    /// All bytes pass at once.
    #[default]
    Open,
    /// Each piece is delayed by this.
    Delayed(Duration),
    /// This many bytes pass at a time, fifty times a second: messages arrive in halves, and senders of more fill all
    /// buffers.
    Narrow(usize),
    /// Nothing passes, without an error.
    Stalled,
    /// Of each connection's next piece the first half passes; then the connection is cut.
    Halved,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    There,
    /// To the client.
    Back,
}

#[derive(Debug, Default)]
struct State {
    ways: [Way; 2],
    /// New connections are closed.
    is_closed: bool,
    /// The number of times that all connections were cut.
    cuts: u64,
    is_over: bool,
}

/// A relay in front of one address. When dropped, it cuts all connections.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// Waits this long.
pub fn pause(length: Duration) {
    // Never sent to.
    let (_never, timer) = sync_channel::<()>(1);
    let _ = timer.recv_timeout(length);
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Starts a relay on a free port of this machine.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let relay = Self {
            address: listener.local_addr()?,
            state: Arc::default(),
        };
        let state = Arc::clone(&relay.state);
        thread::spawn(move || accept(&listener, to, &state));
        Ok(relay)
    }

    /// The address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the state of a direction, for existing and later connections.
    pub fn set(&self, direction: Direction, way: Way) {
        lock(&self.state).ways[direction as usize] = way;
    }

    /// Cuts all connections; new ones are accepted.
    pub fn cut(&self) {
        lock(&self.state).cuts += 1;
    }

    /// Cuts all connections; new ones end before any byte passes.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.cuts += 1;
    }

    /// Ends all disturbances, for existing and new connections.
    pub fn heal(&self) {
        let mut state = lock(&self.state);
        state.ways = Default::default();
        state.is_closed = false;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.cuts += 1;
        drop(state);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, to: SocketAddr, state: &Arc<Mutex<State>>) {
    for client in listener.incoming().map_while(Result::ok) {
        let (is_over, is_closed, cuts) = {
            let state = lock(state);
            (state.is_over, state.is_closed, state.cuts)
        };
        if is_over {
            return;
        }
        if is_closed {
            continue;
        }
        // If the server doesn't accept, the connection ends here.
        if let Ok(server) = TcpStream::connect(to) {
            let _ended_at_once = join((client, server), state, cuts);
        }
    }
}

/// Starts two threads for a connection, one for each direction.
fn join(
    (client, server): (TcpStream, TcpStream),
    state: &Arc<Mutex<State>>,
    cuts: u64,
) -> io::Result<()> {
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
    }
    let broken = Arc::new(AtomicBool::new(false));
    let ends = [
        (client.try_clone()?, server.try_clone()?, Direction::There),
        (server, client, Direction::Back),
    ];
    for (from, to, direction) in ends {
        let half = Half {
            state: Arc::clone(state),
            broken: Arc::clone(&broken),
            direction,
            cuts,
        };
        thread::spawn(move || half.pass_all(from, to));
    }
    Ok(())
}

/// One direction of a connection.
struct Half {
    state: Arc<Mutex<State>>,
    /// Whether this connection alone is cut.
    broken: Arc<AtomicBool>,
    direction: Direction,
    /// The number of cuts when it began.
    cuts: u64,
}

impl Half {
    fn pass_all(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = [0; PIECE];
        while let Some(way) = self.passable() {
            let most = match way {
                Way::Narrow(bytes) => bytes.clamp(1, PIECE),
                _ => PIECE,
            };
            match from.read(&mut piece[..most]) {
                // The other direction may continue.
                Ok(0) => {
                    let _gone = to.shutdown(Shutdown::Write);
                    return;
                }
                // By the state at this moment.
                Ok(bytes) => match self.passable() {
                    Some(way) => self.pass(&mut to, &piece[..bytes], way),
                    None => break,
                },
                Err(error) if is_for_now(&error) => {}
                Err(_) => self.broken.store(true, Relaxed),
            }
        }
        // A reset, as of a machine that is gone, once the other direction has closed, too.
        for stream in [&from, &to] {
            let _gone = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// Waits while nothing passes. Returns `None` when it is cut.
    fn passable(&self) -> Option<Way> {
        loop {
            match self.way() {
                Some(Way::Stalled) => pause(LOOK),
                way => return way,
            }
        }
    }

    /// Returns the state; `None` when it is cut.
    fn way(&self) -> Option<Way> {
        let state = lock(&self.state);
        let is_cut = state.cuts != self.cuts || self.broken.load(Relaxed);
        (!is_cut).then(|| state.ways[self.direction as usize])
    }

    fn pass(&self, to: &mut TcpStream, piece: &[u8], way: Way) {
        match way {
            Way::Delayed(by) => {
                pause(by);
                self.write(to, piece);
            }
            Way::Narrow(_) => {
                self.write(to, piece);
                pause(BETWEEN);
            }
            Way::Halved => {
                self.write(to, &piece[..piece.len() / 2]);
                self.broken.store(true, Relaxed);
            }
            Way::Open | Way::Stalled => self.write(to, piece),
        }
    }

    /// Writes all of it, however long the other side doesn't read.
    fn write(&self, to: &mut TcpStream, mut piece: &[u8]) {
        while !piece.is_empty() && self.way().is_some() {
            match to.write(piece) {
                Ok(bytes) => piece = &piece[bytes..],
                Err(error) if is_for_now(&error) => {}
                Err(_) => self.broken.store(true, Relaxed),
            }
        }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any step takes.
    const DEADLINE: Duration = Duration::from_secs(120);
    const SHORT: Duration = Duration::from_millis(100);

    /// Both ends of a connection through a relay.
    fn through() -> (Relay, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::start(listener.local_addr().unwrap()).unwrap();
        let client = TcpStream::connect(relay.address()).unwrap();
        let (server, _) = listener.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
        }
        (relay, client, server)
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    /// Reads this many bytes.
    fn read(from: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        from.read_exact(&mut read).unwrap();
        read
    }

    #[test]
    fn what_passes_is_whole_and_in_order_on_any_way() {
        let (relay, mut client, mut server) = through();
        let ways = [
            Way::Open,
            Way::Delayed(Duration::from_millis(5)),
            Way::Narrow(700),
        ];
        for way in ways {
            relay.set(Direction::There, way);
            relay.set(Direction::Back, way);
            let said = text(5_000);
            client.write_all(&said).unwrap();
            assert_eq!(read(&mut server, said.len()), said, "{way:?}");
            server.write_all(&said).unwrap();
            assert_eq!(read(&mut client, said.len()), said, "{way:?}");
        }
    }

    #[test]
    fn a_stalled_direction_keeps_what_is_said_and_the_other_goes_on() {
        let (relay, mut client, mut server) = through();
        relay.set(Direction::There, Way::Stalled);
        client.write_all(b"hello").unwrap();
        server.write_all(b"there").unwrap();
        assert_eq!(read(&mut client, 5), b"there");
        server.set_read_timeout(Some(SHORT)).unwrap();
        let nothing = server.read(&mut [0; 8]).unwrap_err();
        assert!(is_for_now(&nothing), "{nothing}");
        server.set_read_timeout(Some(DEADLINE)).unwrap();
        relay.heal();
        assert_eq!(read(&mut server, 5), b"hello");
    }

    #[test]
    fn of_a_halved_piece_a_part_comes_and_then_the_end() {
        let (relay, mut client, mut server) = through();
        relay.set(Direction::There, Way::Halved);
        client.write_all(&text(1_000)).unwrap();
        let mut came = Vec::new();
        // An end, or a reset.
        let _ = server.read_to_end(&mut came);
        assert!(came.len() < 1_000 && text(1_000).starts_with(&came));
    }

    #[test]
    fn what_is_cut_ends_on_both_sides_and_who_comes_to_a_closed_one_is_sent_away() {
        let (relay, mut client, mut server) = through();
        relay.close();
        for stream in [&mut client, &mut server] {
            assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)));
        }
        let mut next = TcpStream::connect(relay.address()).unwrap();
        next.set_read_timeout(Some(DEADLINE)).unwrap();
        let ended = next.read(&mut [0; 8]);
        assert!(!ended.is_err_and(|error| is_for_now(&error)));
    }
}
