//! All routes, and what is said where there is none.

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use groupware_store::StoreError;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use crate::admin::Admin;
use crate::client::is_forwarded;
use crate::error::ApiError;
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
        .layer(middleware::from_fn(note_route))
        .with_state(state)
}

/// Leaves the pattern that matched with the response, for the metrics.
async fn note_route(mut request: Request, next: Next) -> Response {
    let route = request.extensions_mut().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
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
