//! All routes, and what is said where there is none.

use std::task::{Context, Poll};

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use groupware_store::StoreError;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use tower::Service;
use tower::layer::layer_fn;

use crate::admin::Admin;
use crate::client::is_forwarded;
use crate::error::ApiError;
use crate::turn;
use crate::{AppState, admin, calendar, documents, lookup, mail, pages, sign_in, tus};

pub(crate) fn router(state: AppState) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .merge(sign_in::routes())
        .merge(admin::routes())
        .merge(calendar::routes())
        .merge(lookup::routes(&state))
        .merge(mail::routes())
        .merge(pages::routes())
        .merge(documents::routes())
        .merge(tus::routes())
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "There is nothing here."))
        .method_not_allowed_fallback(async || {
            let message = "This can't be done with this method.";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
        })
        // Bodies arrive here already read, within the server's limits, or are streamed, within those
        // of their routes.
        .layer(DefaultBodyLimit::disable())
        .layer(layer_fn(NoteRoute))
        .with_state(state)
}

/// Notes the pattern that matched, for the metrics. A service of its own rather than a function
/// around the others: those copy and box what they call, for every request.
#[derive(Clone)]
struct NoteRoute<S>(S);

impl<S: Service<Request>> Service<Request> for NoteRoute<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        if let Some(route) = request.extensions().get::<MatchedPath>() {
            turn::note_route(route.clone());
        }
        self.0.call(request)
    }
}

#[derive(serde::Serialize)]
struct Health {
    status: &'static str,
}

/// Healthy is a server whose store can be read.
async fn health(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    state
        .store()
        .read(|snapshot| snapshot.get("$health", b"").map(drop))
        .map_err(|_: StoreError| {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The store can't be read.")
        })?;
    Ok(Json(Health { status: "ok" }))
}

/// Open to whoever is on this machine; where others can reach the server, itself or through a
/// proxy, it needs the admin token.
async fn metrics(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    if state.settings.exposed || is_forwarded(&headers) {
        Admin::check(&state, &headers)?;
    }
    let text = state.metrics.encode(state.sessions.count()).map_err(|_| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The metrics can't be written.",
        )
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, media_type)], text).into_response())
}
