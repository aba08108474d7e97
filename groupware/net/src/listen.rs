//! Listeners, and the number of connections that the process can have.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

const BACKLOG: i32 = 4096;
/// Most unsent bytes of answers in the kernel, per connection. The kernel's default is megabytes,
/// which count in no client's share and which no send timeout bounds.
const UNSENT_BYTES: u32 = 128 << 10;
/// How long the kernel keeps bytes that a client doesn't acknowledge, also after the connection is closed.
const UNCONFIRMED: Duration = Duration::from_secs(60);

/// A thread's listener, and the number of connections that the thread accepted from it.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) accepted: Arc<AtomicU64>,
}

impl From<TcpListener> for Listener {
    fn from(socket: TcpListener) -> Self {
        let accepted = Arc::default();
        Self { socket, accepted }
    }
}

impl Listener {
    /// The same listener, for [`crate::stand_in`].
    ///
    /// # Errors
    /// When the process has no free descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            accepted: Arc::clone(&self.accepted),
        })
    }
}

/// Opens listeners on the same port, one per thread; the system spreads connections over them.
/// Returns the address too: port 0 takes any free port.
///
/// # Errors
/// When the address can't be used, or another process listens on it.
pub fn listen(address: SocketAddr, count: usize) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    if address.port() != 0 {
        // Only our own threads may share the port. A bind without sharing fails if another server
        // uses it.
        bind(address, false)?;
    }
    let first: TcpListener = bind(address, true)?.into();
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address, true)?.into());
    }
    Ok((listeners, address))
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    // Accepted connections inherit these options.
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.set_tcp_user_timeout(Some(UNCONFIRMED))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// The number of connections for which descriptors exist, after raising the soft limit to the hard
/// one. Reserved are `reserved` in all, and `per_thread` for each thread.
pub fn descriptors(reserved: u64, per_thread: u64, threads: usize) -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, hard)| {
        match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => soft,
        }
    });
    let reserved = reserved.min(limit / 2) + per_thread * threads as u64;
    usize::try_from(limit.saturating_sub(reserved))
        .unwrap_or(usize::MAX)
        .max(16)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_takes_little_for_a_client_that_reads_nothing() {
        let (listeners, address) = listen((Ipv4Addr::LOCALHOST, 0).into(), 1).unwrap();
        let _client = TcpStream::connect(address).unwrap();
        listeners[0].set_nonblocking(false).unwrap();
        let (mut stream, _) = listeners[0].accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let (piece, mut taken) = (vec![0; 16 << 10], 0);
        loop {
            match stream.write(&piece) {
                Ok(count) => taken += count,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert!(taken < 1 << 20, "{taken}");
    }
}
