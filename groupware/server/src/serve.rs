//! What every request goes through around its route: body, admission, time, counting.

use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use tokio::sync::Semaphore;
use tower::Service;

use crate::AppState;
use crate::access_log::Line;
use crate::error::ApiError;

/// Bodies beyond this, or of unknown length, are read a few at a time.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// Large bodies read at once: with the largest of them, 256 MiB.
const LARGE_BODIES: usize = 16;

/// The way from a connection to the routes.
pub(crate) struct Front {
    state: AppState,
    router: Router,
    /// As many permits as requests may be worked on at once.
    admission: Semaphore,
    large_bodies: Semaphore,
}

impl Front {
    pub(crate) fn new(state: AppState, router: Router, requests_at_once: usize) -> Self {
        Self {
            state,
            router,
            admission: Semaphore::new(requests_at_once.min(Semaphore::MAX_PERMITS)),
            large_bodies: Semaphore::new(LARGE_BODIES),
        }
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    /// Answers a request, whatever becomes of it.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response {
        let start = self.state.clock.now();
        let method = request.method().clone();
        let path = self
            .state
            .access_log
            .is_some()
            .then(|| request.uri().path().to_owned());
        let timeout = self.state.settings.request_timeout;
        let mut response = match tokio::time::timeout(timeout, self.work(request)).await {
            Ok(response) => response,
            Err(_) => {
                let message = "The request took too long.";
                ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1).into_response()
            }
        };
        let took = self.state.clock.now().saturating_sub(start);
        let status = response.status();
        let route = response.extensions_mut().remove::<MatchedPath>();
        self.state.metrics.answered(&method, route, status, took);
        if let (Some(log), Some(path)) = (&self.state.access_log, path) {
            log.note(Line {
                unix_s: self.state.now_s(),
                method,
                path,
                status,
                took,
            });
        }
        response
    }

    /// The body is read before the request counts as being worked on, so that a client that sends
    /// slowly holds up nobody.
    async fn work(&self, request: Request<Incoming>) -> Response {
        let (parts, body) = request.into_parts();
        let body = match self.read_body(&parts, body).await {
            Ok(body) => body,
            Err(error) => return error.into_response(),
        };
        let Ok(_permit) = self.admission.acquire().await else {
            let message = "The server is stopping.";
            return ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5).into_response();
        };
        let request = Request::from_parts(parts, Body::from(body));
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn read_body(&self, parts: &Parts, body: Incoming) -> Result<Bytes, ApiError> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let settings = &self.state.settings;
        let limit = match parts.uri.path().starts_with("/admin/") {
            true => settings.admin_body_bytes,
            false => settings.body_bytes,
        };
        let announced = content_length(&parts.headers);
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let _permit = match announced {
            Some(length) if length <= SMALL_BODY_BYTES => None,
            _ => self.large_bodies.acquire().await.ok(),
        };
        match Limited::new(body, limit).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
            Err(_) => Err(ApiError::bad_request("The body could not be read.")),
        }
    }
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("The body is larger than {limit} bytes."),
    )
}
