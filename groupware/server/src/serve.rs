//! What every request goes through around its route: body, turn, time, counting.

use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use tokio::sync::SemaphorePermit;
use tower::Service;

use crate::AppState;
use crate::access_log::Line;
use crate::admin::Admin;
use crate::error::ApiError;
use crate::lookup;
use crate::room::{RESPONSE_ROOM_BYTES, Room, SMALL_BYTES};
use crate::stream::Streamed;
use crate::turn::{self, Turns};
use crate::{documents, mail, pages, sign_in};

/// The way from a connection to the routes.
pub(crate) struct Front {
    state: AppState,
    router: Router,
    turns: Turns,
    room: Room,
}

impl Front {
    pub(crate) fn new(state: AppState, router: Router, requests_at_once: usize) -> Self {
        Self {
            state,
            router,
            turns: Turns::new(requests_at_once),
            room: Room::new(RESPONSE_ROOM_BYTES),
        }
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    /// Answers a request from this address, whatever becomes of it.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: IpAddr) -> Response {
        let start = self.state.clock.now();
        let method = request.method().clone();
        let path = self
            .state
            .access_log
            .is_some()
            .then(|| request.uri().path().to_owned());
        let is_admin = request.uri().path().starts_with("/admin/");
        let wants_page = pages::are_asked_for(&request);
        let (mut response, route) = turn::on_behalf_of(peer, async {
            let response = match self.receive(request, is_admin).await {
                // The room of the body is taken until the response is ready.
                Ok((request, _room)) => {
                    self.hold(self.work(request, is_admin).await, is_admin)
                        .await
                }
                Err(error) => error.into_response(),
            };
            (response, turn::take_route())
        })
        .await;
        if wants_page {
            response = pages::dressed(response);
        }
        let took = self.state.clock.now().saturating_sub(start);
        let status = response.status();
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

    /// Reads the body, before the request counts as being worked on, so that a client that sends
    /// slowly holds up nobody.
    async fn receive(
        &self,
        request: Request<Incoming>,
        is_admin: bool,
    ) -> Result<(Request<Body>, Option<SemaphorePermit<'_>>), ApiError> {
        let (parts, body) = request.into_parts();
        if documents::is_streamed(&parts.method, parts.uri.path()) {
            return Ok((Request::from_parts(parts, Body::new(body)), None));
        }
        if body.is_end_stream() {
            return Ok((Request::from_parts(parts, Body::empty()), None));
        }
        let announced = content_length(&parts.headers);
        let (limit, timeout) = self.body_limits(&parts, announced, is_admin).await?;
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let read = async {
            let room = self.room.for_request(announced.unwrap_or(limit)).await;
            match Limited::new(body, limit).collect().await {
                Ok(collected) => Ok((collected.to_bytes(), room)),
                Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
                Err(_) => Err(ApiError::bad_request("The body could not be read.")),
            }
        };
        let Ok(read) = tokio::time::timeout(timeout, read).await else {
            let message = "The body took too long to arrive.";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, message));
        };
        let (body, room) = read?;
        Ok((Request::from_parts(parts, Body::from(body)), room))
    }

    /// The largest body and its longest time. Only who is signed in sends more than a small body.
    async fn body_limits(
        &self,
        parts: &Parts,
        announced: Option<usize>,
        is_admin: bool,
    ) -> Result<(usize, Duration), ApiError> {
        let settings = &self.state.settings;
        if is_admin {
            Admin::check(&self.state, &parts.headers)?;
            return Ok((settings.admin_body_bytes, settings.admin_timeout));
        }
        let small = settings.body_bytes.min(SMALL_BYTES);
        if announced.is_some_and(|length| length <= small) || parts.uri.path() == "/login" {
            return Ok((small, settings.body_timeout));
        }
        if let Some(limit) = lookup::body_limit(&self.state, parts).await? {
            return Ok((limit, settings.body_timeout));
        }
        sign_in::authenticate(&self.state, &parts.headers).await?;
        if mail::is_mail(parts.uri.path()) || pages::takes_files(parts.uri.path()) {
            return Ok((
                groupware_mail::limits::BODY_BYTES,
                settings.mail_body_timeout,
            ));
        }
        Ok((settings.body_bytes, settings.body_timeout))
    }

    async fn work(&self, request: Request<Body>, is_admin: bool) -> Response {
        let settings = &self.state.settings;
        let timeout = match is_admin {
            true => settings.admin_timeout,
            // Its body takes as long as its length asks for; its pace is bounded.
            false if documents::is_streamed(request.method(), request.uri().path()) => {
                return self.route(request).await;
            }
            false => settings.request_timeout,
        };
        match tokio::time::timeout(timeout, self.route(request)).await {
            Ok(response) => response,
            Err(_) => {
                let message = "The request took too long.";
                ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1).into_response()
            }
        }
    }

    /// Refuses to hold more than there is room for; but what the admin interface answers, such as
    /// passwords just made, can't be had again.
    async fn hold(&self, response: Response, is_admin: bool) -> Response {
        if is_admin || response.extensions().get::<Streamed>().is_some() {
            return response;
        }
        match self.room.for_response(response).await {
            Some(response) => response,
            None => {
                let message = "Too many large responses wait to be received.";
                ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 1).into_response()
            }
        }
    }

    async fn route(&self, request: Request<Body>) -> Response {
        let mut router = self.router.clone();
        match self.turns.work(router.call(request)).await {
            Some(Ok(response)) => response,
            Some(Err(never)) => match never {},
            None => {
                let message = "The server is stopping.";
                ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5).into_response()
            }
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
