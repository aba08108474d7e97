//! A connection to a server: opened, written, read. It knows nothing of HTTP.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::clock::Nanos;
use crate::drive::BaseUrl;

/// What one user writes before the others have a turn: some 50 us of work. A server that reads as fast
/// as it is written to would let a large message hold the worker until its end.
const TURN_BYTES: usize = 64 * 1024;

/// An open connection, with nothing buffered of its own.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// The server, where it is another than the drive's.
    pub(crate) other: Option<Box<BaseUrl>>,
    /// When its last response was complete; `None` before its first.
    pub(crate) idle_since: Option<Nanos>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Tried in order.
    pub(crate) addresses: Arc<[SocketAddr]>,
    /// Its name, if it speaks TLS.
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// The addresses of a server that only the workload names.
pub(crate) async fn look_up(server: &BaseUrl) -> io::Result<Arc<[SocketAddr]>> {
    let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await?;
    Ok(found.collect())
}

/// The name that the server's certificate must hold.
pub(crate) fn server_name(server: &BaseUrl) -> io::Result<ServerName<'static>> {
    ServerName::try_from(server.host.clone())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

impl Connection {
    /// Opens a connection to the first address that takes it.
    pub(crate) async fn open(route: &Route, other: Option<Box<BaseUrl>>) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in route.addresses.iter() {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let stream = match &route.tls {
                        None => Stream::Plain(stream),
                        Some((config, name)) => {
                            let connector = TlsConnector::from(Arc::clone(config));
                            let stream = connector.connect(name.clone(), stream).await?;
                            Stream::Tls(Box::new(stream))
                        }
                    };
                    return Ok(Self {
                        stream,
                        other,
                        idle_since: None,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Reads what is there into `space`; 0 bytes mean the end.
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
        };
        ready!(read)?;
        Poll::Ready(Ok(space.filled().len()))
    }

    /// Writes the next turn of `message[*written..]` and counts `written` up.
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
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
        }
        match &mut self.stream {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    /// Whether the server has closed it, or said something unasked, while it was idle. Costs no
    /// system call while nothing has come.
    pub(crate) async fn is_stale(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.poll_read(cx, &mut [0; 1]).is_ready())).await
    }
}
