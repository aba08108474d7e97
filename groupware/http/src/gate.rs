//! The steps of every request around its route: body, permit, timeout, metrics.
//!
//! A route is put behind the gate where it is declared, by a layer that states the bounds on bodies
//! and time. Nothing is guessed from a path.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use groupware_runtime::{Caller, Permits};
use groupware_service::Service;
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tower::{Layer, Service as Tower};

use crate::admin::Admin;
use crate::answers::Answers;
use crate::budget::{BodyBudget, BodyPermit, SMALL_BYTES};
use crate::client::caller_of;
use crate::error::ApiError;
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::origin::is_forged;
use crate::panic::caught;
use crate::request_log::{LoggedRequest, RequestLog};
use crate::sign_in::{authenticate, recognise};
use crate::stream::{Streamed, Streams};

/// The default bounds of requests to a route.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Largest body.
    pub most: usize,
    /// Longest time until the body is received.
    pub within: Duration,
    /// Longest time from the end of the body to the response, waiting included.
    pub work_within: Duration,
}

/// The gate in front of all routes of a server.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Service,
    limits: BodyLimits,
    permits: Permits,
    budget: BodyBudget,
    answers: Answers,
    metrics: Arc<Metrics>,
    log: Arc<RequestLog>,
    hosts: Hosts,
}

/// How a request's body is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The body is read before the request counts as being worked on.
    Whole {
        /// Its largest size.
        most: usize,
        /// Longest time until it is received.
        within: Duration,
    },
    /// The route receives the body as a stream: it may be larger than the memory bounds. The route
    /// bounds its pace.
    Streamed,
}

/// The rules for requests to a route.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How the body is received.
    pub body: Body,
    /// Longest time from the end of the body to the response; `None` for a streamed body, which
    /// takes as long as its length needs.
    pub work_within: Option<Duration>,
    /// Whether a large response is refused while many wait to be received.
    pub refuses_large_answers: bool,
}

impl Rules {
    /// Returns the rules with another bound on the body.
    #[must_use]
    pub fn with_largest_body(self, most: usize) -> Self {
        let body = match self.body {
            Body::Whole { within, .. } => Body::Whole { most, within },
            Body::Streamed => Body::Streamed,
        };
        Self { body, ..self }
    }
}

/// Decides which requests may send more than a small body. Called before the body is read.
pub trait Guard: Clone + Send + Sync + 'static {
    /// Whether small bodies are guarded too.
    const GUARDS_SMALL: bool = false;

    /// Admits the sender.
    ///
    /// # Errors
    /// Why the sender is rejected.
    fn admit(&self, parts: &Parts) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// No client may send more than a small body.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

/// Signed-in users may send larger bodies.
#[derive(Debug, Clone)]
pub struct SignedIn(pub Service);

/// Only the administrator may send a body.
#[derive(Debug, Clone)]
pub struct AdminOnly(pub Service);

impl Guard for Nobody {
    async fn admit(&self, _: &Parts) -> Result<(), ApiError> {
        Ok(())
    }
}

impl Guard for SignedIn {
    async fn admit(&self, parts: &Parts) -> Result<(), ApiError> {
        let caller = caller_of(&parts.extensions);
        authenticate(&self.0, &caller, &parts.headers)
            .await
            .map(drop)
    }
}

impl Guard for AdminOnly {
    const GUARDS_SMALL: bool = true;

    async fn admit(&self, parts: &Parts) -> Result<(), ApiError> {
        Admin::check(&self.0, &parts.headers).map(drop)
    }
}

impl Gate {
    /// Permits so many requests to be worked on at once. Large answers that wait for their clients
    /// are stored in files of this directory.
    pub fn new(
        service: Service,
        limits: BodyLimits,
        requests_at_once: usize,
        (streams, folder): (Arc<Streams>, PathBuf),
        (metrics, log): (Arc<Metrics>, Arc<RequestLog>),
        hosts: Hosts,
    ) -> Self {
        let (permits, budget) = (Permits::new(requests_at_once), BodyBudget::new());
        let [slots, exports] = streams.gauges();
        let answers = Answers::new(streams, folder);
        let [small, large] = budget.gauges();
        let [held, filed, filing] = answers.gauges();
        for (name, gauge) in [
            ("requests", permits.gauge()),
            ("small_bodies_kib", small),
            ("large_bodies_kib", large),
            ("answers_kib", held),
            ("answer_files_kib", filed),
            ("answer_writes_kib", filing),
            ("streams", slots),
            ("archives", exports),
            ("reading_kib", service.memory_gauge()),
            ("long_reads", service.aside_gauge()),
            ("long_removals", service.clearing_gauge()),
        ] {
            metrics.shares.pool(name, gauge);
        }
        Self(Arc::new(Inner {
            service,
            limits,
            permits,
            budget,
            answers,
            metrics,
            log,
            hosts,
        }))
    }

    /// The default rules of routes.
    pub fn rules(&self) -> Rules {
        let limits = self.0.limits;
        Rules {
            body: Body::Whole {
                most: limits.most,
                within: limits.within,
            },
            work_within: Some(limits.work_within),
            refuses_large_answers: true,
        }
    }

    /// For routes with the default rules, to which users may send larger bodies than others.
    pub fn usual(&self) -> GateLayer<SignedIn> {
        self.layer(self.rules(), SignedIn(self.0.service.clone()))
    }

    /// For routes that accept small bodies only.
    pub fn small(&self) -> GateLayer<Nobody> {
        let body = Body::Whole {
            most: SMALL_BYTES.min(self.0.limits.most),
            within: self.0.limits.within,
        };
        let rules = Rules {
            body,
            ..self.rules()
        };
        self.layer(rules, Nobody)
    }

    /// For routes to which users may send bodies of up to this size, within this time.
    pub fn large(&self, most: usize, within: Duration) -> GateLayer<SignedIn> {
        let rules = Rules {
            body: Body::Whole { most, within },
            ..self.rules()
        };
        self.layer(rules, SignedIn(self.0.service.clone()))
    }

    /// For routes that receive bodies as a stream.
    pub fn streamed(&self) -> GateLayer<Nobody> {
        let rules = Rules {
            body: Body::Streamed,
            work_within: None,
            refuses_large_answers: true,
        };
        self.layer(rules, Nobody)
    }

    /// For routes with these rules.
    pub fn layer<G: Guard>(&self, rules: Rules, guard: G) -> GateLayer<G> {
        GateLayer(Arc::new(Shared {
            gate: self.clone(),
            rules,
            guard,
        }))
    }
}

#[derive(Debug)]
struct Shared<G> {
    gate: Gate,
    rules: Rules,
    guard: G,
}

/// Puts routes behind the gate.
#[derive(Debug)]
pub struct GateLayer<G>(Arc<Shared<G>>);

impl<G> Clone for GateLayer<G> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<G, S> Layer<S> for GateLayer<G> {
    type Service = Gated<G, S>;

    fn layer(&self, route: S) -> Gated<G, S> {
        Gated {
            shared: Arc::clone(&self.0),
            route,
        }
    }
}

/// A route behind the gate.
#[derive(Debug)]
pub struct Gated<G, S> {
    shared: Arc<Shared<G>>,
    route: S,
}

impl<G, S: Clone> Clone for Gated<G, S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            route: self.route.clone(),
        }
    }
}

impl<G, S> Tower<Request> for Gated<G, S>
where
    G: Guard,
    S: Tower<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.route.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        // Calls the clone that is ready, and leaves a new one in its place.
        let next = self.route.clone();
        let route = std::mem::replace(&mut self.route, next);
        Box::pin(async move { Ok(shared.answer(request, route).await) })
    }
}

impl<G: Guard> Shared<G> {
    /// Answers a request, also if it fails.
    async fn answer<S>(&self, request: Request, route: S) -> Response
    where
        S: Tower<Request, Response = Response, Error = Infallible>,
    {
        let gate = &*self.gate.0;
        let start = gate.service.uptime();
        let asked = LoggedRequest {
            caller: caller_of(request.extensions()),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        };
        let mut response = match caught(self.pass(&asked.caller, request, route)).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        };
        let took = gate.service.uptime().saturating_sub(start);
        let (route, status) = (asked.route.as_ref(), response.status());
        gate.metrics.answered(&asked.method, route, status, took);
        gate.log.answered(&asked, &mut response, took);
        response
    }

    async fn pass<S>(
        &self,
        caller: &Caller,
        request: Request,
        route: S,
    ) -> Result<Response, ApiError>
    where
        S: Tower<Request, Response = Response, Error = Infallible>,
    {
        let (uri, headers) = (request.uri(), request.headers());
        if headers.get_all(HOST).iter().nth(1).is_some() {
            let message = "A request has one Host field.";
            return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
        }
        if let Some(name) = self.gate.0.hosts.foreign(uri, headers) {
            return Err(misdirected(name));
        }
        if is_forged(request.method(), headers) {
            let message = "This comes from a page of another site, and nothing was changed. If you \
                           sent a form of this server, go back, reload the page, and send it again.";
            return Err(ApiError::new(StatusCode::FORBIDDEN, message));
        }
        recognise(&self.gate.0.service, caller, request.headers());
        // The body's budget is held until the response is ready.
        let (request, _budget) = match self.rules.body {
            Body::Streamed => (request, None),
            Body::Whole { most, within } => self.receive(caller, request, (most, within)).await?,
        };
        let response = self.work(caller, request, route).await?;
        let is_streamed = response.extensions().get::<Streamed>().is_some();
        if is_streamed || !self.rules.refuses_large_answers {
            return Ok(response);
        }
        let sent = self.gate.0.answers.send(caller, response).await;
        // The request's resources are released.
        caller.keep(None);
        sent
    }

    /// Reads the body, before the request counts as being worked on, so that a slow client delays
    /// no other.
    async fn receive(
        &self,
        caller: &Caller,
        request: Request,
        (most, within): (usize, Duration),
    ) -> Result<(Request, Option<BodyPermit>), ApiError> {
        if request.body().is_end_stream() {
            return Ok((request, None));
        }
        let (parts, body) = request.into_parts();
        let read = self.read(caller, &parts, body, most);
        let Ok(read) = tokio::time::timeout(within, read).await else {
            let message = "The body took too long to arrive.";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, message));
        };
        let (body, permit) = read?;
        let mut request = Request::from_parts(parts, body.into());
        // The body is no larger than the route allows.
        DefaultBodyLimit::disable().apply(&mut request);
        Ok((request, Some(permit)))
    }

    /// Reads a body of up to `most` bytes. Only senders that the guard admits may send more than a
    /// small one. A body of unannounced length counts as small until it exceeds that size.
    async fn read(
        &self,
        caller: &Caller,
        parts: &Parts,
        body: axum::body::Body,
        most: usize,
    ) -> Result<(Bytes, BodyPermit), ApiError> {
        let (gate, announced) = (&*self.gate.0, content_length(&parts.headers));
        let small = gate.limits.most.min(SMALL_BYTES).min(most);
        let mut gathered = Gathered::new(body);
        if !G::GUARDS_SMALL && announced.is_none_or(|length| length <= small) {
            let expected = announced.unwrap_or(small);
            let mut permit = gate.budget.for_request(caller, expected).await;
            if gathered.is_whole_within(small, &mut permit).await? {
                return Ok((gathered.into_bytes(), permit));
            }
            if small == most {
                return Err(too_large(small));
            }
            // The received bytes stay counted until the whole body is.
            let large = self.admitted(caller, parts, (announced, most)).await?;
            drop(permit);
            return gathered.whole_within(most, large).await;
        }
        let permit = self.admitted(caller, parts, (announced, most)).await?;
        if announced.is_some_and(|length| length > SMALL_BYTES) {
            // The budget covers all of it, and a large body isn't copied as it grows.
            gathered.joined.reserve(announced.unwrap_or_default());
        }
        gathered.whole_within(most, permit).await
    }

    /// Takes the budget of a body whose sender the guard admits.
    async fn admitted(
        &self,
        caller: &Caller,
        parts: &Parts,
        (announced, most): (Option<usize>, usize),
    ) -> Result<BodyPermit, ApiError> {
        self.guard.admit(parts).await?;
        if announced.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let budget = &self.gate.0.budget;
        Ok(budget.for_request(caller, announced.unwrap_or(most)).await)
    }

    async fn work<S>(
        &self,
        caller: &Caller,
        request: Request,
        mut route: S,
    ) -> Result<Response, ApiError>
    where
        S: Tower<Request, Response = Response, Error = Infallible>,
    {
        let work = self.gate.0.permits.work(caller, route.call(request));
        let worked = match self.rules.work_within {
            Some(within) => tokio::time::timeout(within, work).await,
            None => Ok(work.await),
        };
        match worked {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(never)) => match never {},
            Err(_) => {
                let message = "The request took too long.";
                Err(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1))
            }
        }
    }
}

/// The received part of a body.
struct Gathered {
    body: axum::body::Body,
    /// Most bodies arrive in one piece, which is passed on as it is.
    whole: Bytes,
    joined: BytesMut,
}

impl Gathered {
    fn new(body: axum::body::Body) -> Self {
        Self {
            body,
            whole: Bytes::new(),
            joined: BytesMut::new(),
        }
    }

    /// Reads the body to its end, or beyond so many bytes; returns true if it has ended.
    async fn is_whole_within(
        &mut self,
        limit: usize,
        permit: &mut BodyPermit,
    ) -> Result<bool, ApiError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|_| ApiError::bad_request("The body could not be read."))?;
            // Trailers are ignored.
            if let Ok(data) = frame.into_data() {
                permit
                    .grow_to(self.whole.len() + self.joined.len() + data.len())
                    .await;
                self.add(data);
            }
            if self.whole.len() + self.joined.len() > limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads all bytes of the body.
    async fn whole_within(
        mut self,
        limit: usize,
        mut permit: BodyPermit,
    ) -> Result<(Bytes, BodyPermit), ApiError> {
        let fits = self.whole.len() + self.joined.len() <= limit;
        match fits && self.is_whole_within(limit, &mut permit).await? {
            true => Ok((self.into_bytes(), permit)),
            false => Err(too_large(limit)),
        }
    }

    fn add(&mut self, data: Bytes) {
        if self.whole.is_empty() && self.joined.capacity() == 0 {
            self.whole = data;
        } else {
            self.joined
                .extend_from_slice(&std::mem::take(&mut self.whole));
            self.joined.extend_from_slice(&data);
        }
    }

    fn into_bytes(self) -> Bytes {
        match self.joined.is_empty() {
            true => self.whole,
            false => self.joined.freeze(),
        }
    }
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The error names the client's host name, as much of it as a name can have.
fn misdirected(name: &str) -> ApiError {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || ".-_[]:".contains(*letter);
    let name: String = name.chars().filter(is_plain).take(253).collect();
    let message = format!(
        "This server is not known by the name “{name}”. If it is to be, start it with --host {name}."
    );
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, message)
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("The body is larger than {limit} bytes."),
    )
}
