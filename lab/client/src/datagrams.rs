//! A socket for datagrams to and from one server. Its reads report refusals by the server's host.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{Interest, ReadBuf, Ready};
use tokio::net::UdpSocket;

/// A wait for an error of a socket.
type Failure = Pin<Box<dyn Future<Output = io::Result<Ready>> + Send>>;

/// A socket for datagrams to and from one server.
pub(crate) struct Datagrams {
    socket: Arc<UdpSocket>,
    /// An error (an ICMP message) doesn't make the socket readable, so that it needs a wait of its own. `None` after
    /// the first one.
    failure: Option<Failure>,
}

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl Datagrams {
    /// Opens a socket to a server, from this address or from any. Nothing is sent.
    pub(crate) fn open(server: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let source = source.unwrap_or(match server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        });
        let socket = std::net::UdpSocket::bind((source, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let waiting = Arc::clone(&socket);
        let failure = async move { waiting.ready(Interest::ERROR).await };
        Ok(Self {
            socket,
            failure: Some(Box::pin(failure)),
        })
    }

    /// Reads one datagram, or an error that a message of the server's host reports.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.socket.poll_recv(cx, space);
        if read.is_pending()
            && let Some(failure) = &mut self.failure
            && failure.as_mut().poll(cx).is_ready()
        {
            self.failure = None;
            if let Some(error) = self.socket.take_error()? {
                return Poll::Ready(Err(error));
            }
        }
        read
    }

    /// Sends one datagram.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_send(cx, bytes)
    }
}
