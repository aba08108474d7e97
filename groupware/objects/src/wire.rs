//! HTTP to an object store: pooled connections, and TLS by rustls with the same provider as everywhere here. The client
//! of `object_store` would add a second TLS library and about twenty crates.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use http::Uri;
use http::header::SERVER;
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::Service;

/// The maximum time to connect, TLS included.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// The maximum time to the head of a response, which follows when all sent data is durable.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The bytes sent for which the limit grows by one second.
const BYTES_A_SECOND: u64 = 512 << 10;
/// The time after which an idle connection is closed.
const KEEP: Duration = Duration::from_secs(20);
/// The maximum number of idle connections.
const KEPT: usize = 32;
/// The maximum length of the store's own name.
const NAME_CHARS: usize = 100;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Dial {
    tls: Option<TlsConnector>,
    /// The store's own name.
    server: Arc<OnceLock<String>>,
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial").finish_non_exhaustive()
    }
}

impl Dial {
    /// Trusts this machine's certificate authorities, if TLS is used.
    pub(crate) fn new(speaks_tls: bool) -> io::Result<Self> {
        let server = Arc::default();
        if !speaks_tls {
            return Ok(Self { tls: None, server });
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            tls: Some(TlsConnector::from(Arc::new(config))),
            server,
        })
    }

    /// The store's own name, from its first response.
    pub(crate) fn server(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.server)
    }

    async fn connect(self, to: Uri) -> io::Result<TokioIo<Line>> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
        let host = to.host().ok_or_else(wrong)?;
        let bare = host.trim_matches(['[', ']']);
        let is_https = to.scheme_str() == Some("https");
        let port = to.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let stream = TcpStream::connect((bare, port)).await?;
        stream.set_nodelay(true)?;
        let line = match (&self.tls, is_https) {
            (Some(tls), true) => {
                let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
                Line(Box::new(tls.connect(name, stream).await?))
            }
            (_, false) => Line(Box::new(stream)),
            // Rejects HTTPS if the settings use plain HTTP.
            (None, true) => return Err(wrong()),
        };
        Ok(TokioIo::new(line))
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Line>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connected = self.clone().connect(to);
        Box::pin(async move {
            let late = || io::Error::from(io::ErrorKind::TimedOut);
            timeout(CONNECT_WITHIN, connected)
                .await
                .map_err(|_| late())?
        })
    }
}

/// A bidirectional byte stream.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection, with or without TLS.
pub(crate) struct Line(Box<dyn Duplex>);

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl HttpConnector for Dial {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(KEEP)
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(KEPT)
            .build(self.clone());
        Ok(HttpClient::new(Wire {
            client,
            server: self.server(),
        }))
    }
}

#[derive(Debug)]
struct Wire {
    client: Client<Dial, HttpRequestBody>,
    server: Arc<OnceLock<String>>,
}

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let bytes = request.body().content_length() as u64;
        let limit = ANSWER_WITHIN + Duration::from_secs(bytes / BYTES_A_SECOND);
        let answer = timeout(limit, self.client.request(request)).await;
        let late = |_| {
            HttpError::new(
                HttpErrorKind::Timeout,
                io::Error::from(io::ErrorKind::TimedOut),
            )
        };
        let answer = answer.map_err(late)?.map_err(broken)?;
        if self.server.get().is_none()
            && let Some(name) = answer.headers().get(SERVER)
        {
            let name = String::from_utf8_lossy(name.as_bytes());
            let _another_was_faster = self.server.set(name.chars().take(NAME_CHARS).collect());
        }
        Ok(answer.map(|body| {
            let cut = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
            HttpResponseBody::new(cut)
        }))
    }
}

/// The request decides whether a retry is safe: all requests of this crate are.
fn broken(error: ClientError) -> HttpError {
    let kind = match error.is_connect() {
        true => HttpErrorKind::Connect,
        false => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}
