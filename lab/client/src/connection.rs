//! A connection to a server: open, write, read. It knows no protocol.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::datagrams::Datagrams;
use crate::exchange::{Phase, Phases};
use crate::time::{Nanos, Time, Timer};
use lab_units::BaseUrl;
use lab_units::Sources;

/// The number of bytes that one user writes per turn: some 50 µs of work. Without this limit, a large message to a
/// server that reads as fast as the client writes would block the worker until its end.
pub(crate) const TURN_BYTES: usize = 64 * 1024;

/// An open connection, with nothing buffered of its own.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// The server, if it is not the base server.
    pub(crate) other: Option<Box<BaseUrl>>,
    /// When its last response was complete; `None` before its first.
    pub(crate) idle_since: Option<Nanos>,
}

/// The bytes of a connection, both ways.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Datagrams; a read returns one.
    Datagrams(Datagrams),
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// All addresses of its name.
    pub(crate) addresses: Arc<[SocketAddr]>,
    /// Its name, if it speaks TLS.
    pub(crate) tls: Option<Secure>,
    /// Local addresses of connections to the server.
    pub(crate) sources: Sources,
}

/// The TLS configuration, and the name that the server must prove to have.
pub(crate) type Secure = (Arc<ClientConfig>, ServerName<'static>);

/// The delay before the next address is tried while the earlier ones don't respond (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Nanos = 250_000_000;

/// Connects to one of a server's addresses. Tries each as soon as the previous one has failed, or has not responded for
/// a quarter of a second, and takes the first that connects (Happy Eyeballs, RFC 8305, in a simple form). No server
/// needs all of its addresses to be up.
async fn connect(
    (addresses, sources): (&[SocketAddr], &Sources),
    time: &impl Time,
) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return reach(*only, sources).await;
    }
    let timer = time.timer();
    let mut left = alternating(addresses).into_iter();
    let mut under_way: Vec<Pin<Box<dyn Future<Output = io::Result<TcpStream>> + '_>>> = Vec::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    loop {
        if let Some(address) = left.next() {
            under_way.push(Box::pin(reach(address, sources)));
            timer.set(time.now().saturating_add(NEXT_ADDRESS_AFTER));
        } else if under_way.is_empty() {
            return Err(last);
        }
        let came = poll_fn(|cx| {
            for at in 0..under_way.len() {
                if let Poll::Ready(result) = under_way[at].as_mut().poll(cx) {
                    drop(under_way.swap_remove(at));
                    return Poll::Ready(Some(result));
                }
            }
            match left.len() {
                0 => Poll::Pending,
                _ => timer.poll_fired(cx).map(|()| None),
            }
        });
        match came.await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => last = error,
            None => {}
        }
    }
}

/// Connects to one address.
async fn reach(address: SocketAddr, sources: &Sources) -> io::Result<TcpStream> {
    let Some(source) = sources.next(address.ip()) else {
        return TcpStream::connect(address).await;
    };
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The kernel chooses the port when the socket connects, so that ports can be reused for other destinations. A
    // choice at bind needs a port that is free for all destinations. With tens of thousands of connections, the search
    // for one costs more than the data sent. A kernel without the option searches.
    let _known = setsockopt(&socket, IpBindAddressNoPort, &true);
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(address).await
}

/// Returns the address families in turn, beginning with the first address's (RFC 8305, section 4).
fn alternating(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (a, b): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    let mut all = Vec::with_capacity(addresses.len());
    while a.len() + b.len() > 0 {
        all.extend(a.next());
        all.extend(b.next());
    }
    all
}

impl Connection {
    /// Opens a connection to the first address that accepts it; see [`connect`]. Adds the time taken to `phases`.
    pub(crate) async fn open(
        route: &Route,
        other: Option<Box<BaseUrl>>,
        time: &impl Time,
        phases: &mut Phases,
    ) -> io::Result<Self> {
        let began = time.now();
        let stream = connect((&route.addresses, &route.sources), time).await?;
        stream.set_nodelay(true)?;
        let connected = time.now();
        phases.set(Phase::Connect, connected.saturating_sub(began));
        let connection = Self {
            stream: Stream::Plain(stream),
            other,
            idle_since: None,
        };
        let Some(tls) = &route.tls else {
            return Ok(connection);
        };
        let connection = connection.secured(tls).await?;
        phases.set(Phase::Tls, time.now().saturating_sub(connected));
        Ok(connection)
    }

    /// Opens a socket for datagrams to and from the first of the server's addresses. Nothing is sent.
    pub(crate) fn datagrams(route: &Route) -> io::Result<Self> {
        let address = *route.addresses.first().ok_or(io::ErrorKind::NotFound)?;
        let socket = Datagrams::open(address, route.sources.next(address.ip()))?;
        Ok(Self {
            stream: Stream::Datagrams(socket),
            other: None,
            idle_since: None,
        })
    }

    /// Returns true if it transports datagrams: one without bytes is no end.
    pub(crate) fn has_datagrams(&self) -> bool {
        matches!(self.stream, Stream::Datagrams(_))
    }

    /// Reads available bytes into `space`; 0 bytes mean the end.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut space = ReadBuf::new(space);
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, &mut space),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, &mut space),
            Stream::Datagrams(socket) => socket.poll_read(cx, &mut space),
        };
        ready!(read)?;
        Poll::Ready(Ok(space.filled().len()))
    }

    /// Writes the next turn of `message[*written..]` and increases `written`.
    #[inline]
    pub(crate) fn poll_write_turn(
        &mut self,
        cx: &mut Context<'_>,
        message: &[u8],
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        let turn_ends = message.len().min(*written + TURN_BYTES);
        while *written < turn_ends {
            let rest = &message[*written..turn_ends];
            let count = match &mut self.stream {
                Stream::Plain(stream) => ready!(Pin::new(stream).poll_write(cx, rest))?,
                Stream::Tls(stream) => ready!(Pin::new(&mut **stream).poll_write(cx, rest))?,
                Stream::Datagrams(socket) => ready!(socket.poll_send(cx, rest))?,
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
        }
        self.poll_flush(cx)
    }

    /// Writes as much of the slices as the system takes, if there are any, and increases `written`.
    pub(crate) fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        if !slices.is_empty() {
            let stream = Pin::new(&mut self.stream);
            let count = ready!(stream.poll_write_vectored(cx, slices))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
        }
        self.poll_flush(cx)
    }

    /// Upgrades the connection to TLS, to a server of this name.
    pub(crate) async fn secured(self, tls: &Secure) -> io::Result<Self> {
        let Stream::Plain(stream) = self.stream else {
            return Ok(self);
        };
        let (config, name) = tls;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name.clone(), stream).await?;
        Ok(Self {
            stream: Stream::Tls(Box::new(stream)),
            ..self
        })
    }

    #[inline]
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(_) | Stream::Datagrams(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    /// Returns true if the server chose HTTP/2 by ALPN.
    pub(crate) fn chose_two(&self) -> bool {
        match &self.stream {
            Stream::Plain(_) | Stream::Datagrams(_) => false,
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    /// Returns true if the connection uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Returns the stream, and the server if it is not the base server.
    pub(crate) fn into_parts(self) -> (Stream, Option<Box<BaseUrl>>) {
        (self.stream, self.other)
    }

    /// Returns true if the server has closed the connection, or sent unrequested bytes, while it was idle. Needs no
    /// system call while nothing has arrived.
    pub(crate) async fn is_stale(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.poll_read(cx, &mut [0; 1]).is_ready())).await
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, space),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, space),
            Self::Datagrams(socket) => socket.poll_read(cx, space),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
            Self::Datagrams(socket) => socket.poll_send(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match (self.get_mut(), slices) {
            // A plain write is cheaper for a single slice.
            (Self::Plain(stream), [only]) => Pin::new(stream).poll_write(cx, only),
            (Self::Plain(stream), _) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Self::Tls(stream), _) => Pin::new(&mut **stream).poll_write_vectored(cx, slices),
            (Self::Datagrams(socket), [first, ..]) => socket.poll_send(cx, first),
            (Self::Datagrams(_), []) => Poll::Ready(Ok(0)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Datagrams(_) => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Self::Datagrams(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Self::Datagrams(_) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::tokios::TokioTime;
    use nix::sys::socket::getsockopt;
    use socket2::{Domain, Socket, Type};

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"].map(address);
        let turns = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(address);
        assert_eq!(alternating(&all), turns);
        assert_eq!(alternating(&[]), []);
    }

    fn connected(addresses: &[SocketAddr]) -> io::Result<SocketAddr> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let sources = Sources::default();
        let from = (addresses, &sources);
        runtime.block_on(async { connect(from, &TokioTime::start()).await?.peer_addr() })
    }

    #[test]
    fn connections_come_from_the_addresses_that_are_said() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let said = ["127.0.0.7", "127.0.0.8"].map(|text| text.parse::<std::net::IpAddr>().unwrap());
        let sources = Sources::new(&said);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let from = || {
            let stream = runtime.block_on(reach(at, &sources)).unwrap();
            assert!(getsockopt(&stream, IpBindAddressNoPort).unwrap());
            stream.local_addr().unwrap().ip()
        };
        let from: Vec<_> = (0..4).map(|_| from()).collect();
        assert_eq!(from, [said[0], said[1], said[0], said[1]]);
        // A documentation address (RFC 5737), which no machine has.
        let nobodys = Sources::new(&["192.0.2.1".parse().unwrap()]);
        let refused = runtime.block_on(reach(at, &nobodys)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn an_address_that_refuses_or_says_nothing_holds_nobody_up() {
        let good = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let good_at = good.local_addr().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed_at = closed.local_addr().unwrap();
        drop(closed);
        // Nothing accepts and the queue is full: the kernel leaves further connections unanswered.
        let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        silent.bind(&address("127.0.0.1:0").into()).unwrap();
        silent.listen(0).unwrap();
        let silent_at = silent.local_addr().unwrap().as_socket().unwrap();
        let filling: Vec<Socket> = (0..4)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.set_nonblocking(true).unwrap();
                let _in_progress = socket.connect(&silent_at.into());
                socket
            })
            .collect();
        assert_eq!(connected(&[closed_at, good_at]).unwrap(), good_at);
        assert_eq!(
            connected(&[silent_at, closed_at, good_at]).unwrap(),
            good_at
        );
        assert_eq!(connected(&[good_at, silent_at]).unwrap(), good_at);
        let refused = connected(&[closed_at, closed_at]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        drop(filling);
    }
}
