//! Serves HTTP/1.1 on connections, with the answers of a router.

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use groupware_net::{
    Connection, ConnectionActivity, IdleTimeout, Pace, PacedStream, Phase, Serve, TrustedNetworks,
};
use groupware_runtime::Caller;
use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower::Service as _;

use crate::abandoned::Watchful;
use crate::client::forwarding;
use crate::metrics::Metrics;
use crate::path::without_final_slash;
use crate::polled_on_wake::PolledOnWake;

/// RFC 6797; for this host's name alone.
const HTTPS_FOR_A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Bounds on the head of a request: its first line and headers.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// Largest head.
    pub bytes: usize,
    /// Most headers.
    pub headers: usize,
}

/// How failures are shown to people, on every route.
#[derive(Clone, Copy)]
pub struct Dress {
    /// Returns true if the client shows the answer to a person.
    pub is_asked_for: fn(&Request<Incoming>) -> bool,
    /// Converts an answer for a person.
    pub dressed: fn(Response) -> Response,
}

impl fmt::Debug for Dress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dress").finish_non_exhaustive()
    }
}

/// Serves connections that speak HTTP.
#[derive(Debug)]
pub struct HttpServer {
    /// All routes, each behind the gate.
    pub router: Router,
    /// How failures are shown to people.
    pub dress: Dress,
    /// Bounds on heads.
    pub head: HeadLimits,
    /// Bounds on how long a client may keep the server waiting.
    pub pace: Pace,
    /// Whether browsers must use HTTPS only.
    pub is_https_only: bool,
    /// The proxies whose client headers are accepted.
    pub known: TrustedNetworks,
    /// Counts connections.
    pub metrics: Arc<Metrics>,
}

impl HttpServer {
    async fn answer(
        &self,
        mut request: Request<Incoming>,
        connection: Arc<Connection>,
        pulse: Arc<ConnectionActivity>,
    ) -> Response {
        if let Some(bare) = without_final_slash(request.uri()) {
            *request.uri_mut() = bare;
        }
        let is_for_a_person = (self.dress.is_asked_for)(&request);
        let via = forwarding(&connection, &self.known, request.headers());
        let caller = Caller::of(connection, via);
        request.extensions_mut().insert(caller);
        let request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(Watchful::new(body, pulse)),
        });
        let response = match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let mut response = match is_for_a_person {
            true => (self.dress.dressed)(response),
            false => response,
        };
        if self.is_https_only {
            let headers = response.headers_mut();
            headers.insert(STRICT_TRANSPORT_SECURITY, HTTPS_FOR_A_YEAR);
        }
        response
    }

    /// Waits until a connection must be closed, whatever its phase: it keeps the server waiting, or
    /// frees room for others.
    async fn ends(&self, connection: &Connection, pulse: &ConnectionActivity) {
        let mut patience = IdleTimeout::new(&self.pace);
        let mut ticks = tokio::time::interval(patience.tick());
        let impatient = async {
            loop {
                ticks.tick().await;
                if patience.ends_at_this_tick(pulse) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = connection.slot.ticket().displaced() => {}
            () = impatient => {}
        }
    }
}

impl Serve for HttpServer {
    async fn serve<S>(
        &self,
        stream: S,
        connection: Arc<Connection>,
        mut stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pulse = Arc::new(ConnectionActivity::default());
        let service = service_fn(|request| {
            let (pulse, connection) = (Arc::clone(&pulse), Arc::clone(&connection));
            async move {
                pulse.begin();
                let response = self.answer(request, connection, Arc::clone(&pulse)).await;
                pulse.enter(Phase::Idle);
                Ok::<_, Infallible>(response)
            }
        });
        let mut served = pin!(
            http1::Builder::new()
                .max_headers(self.head.headers)
                .max_header_size(self.head.bytes)
                .max_buf_size(self.head.bytes.max(8192))
                // `IdleTimeout` replaces hyper's timeout, which also runs while a connection is idle.
                .header_read_timeout(None)
                .serve_connection(PacedStream::new(stream, Arc::clone(&pulse)), service)
        );
        let mut ends = pin!(self.ends(&connection, &pulse));
        let mut ends = PolledOnWake::new(ends.as_mut());
        let mut stops = pin!(stopping.changed());
        let mut stops = PolledOnWake::new(stops.as_mut());
        tokio::select! {
            biased;
            _ = served.as_mut() => return,
            () = &mut ends => return,
            _ = &mut stops => served.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            biased;
            _ = served => {}
            () = ends => {}
        }
    }

    fn opened(&self) {
        self.metrics.connections.inc();
    }

    fn closed(&self) {
        self.metrics.connections.dec();
    }

    fn refused(&self) {
        self.metrics.connections_refused.inc();
    }
}
