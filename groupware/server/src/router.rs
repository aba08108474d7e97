//! All routes, each behind the gate, and what is said where there is none.

use std::sync::Arc;

use axum::extract::State;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use groupware_http::{Admin, ApiError, Gate, Metrics, is_forwarded};
use groupware_service::Service;
use groupware_store::StoreError;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};

use crate::config::Config;
use crate::parts::Parts;

pub(crate) fn router(parts: &Parts, config: &Config, gate: &Gate) -> Router {
    Router::new()
        .merge(own_routes(parts, config, gate))
        .merge(groupware_front_admin::routes(&parts.admin(config), gate))
        .merge(groupware_front_lookup::routes(&parts.lookup(config), gate))
        .merge(groupware_front_pages::routes(&parts.pages(config), gate))
        .merge(groupware_front_domino::routes(&parts.domino(config), gate))
        .merge(groupware_front_tus::routes(&parts.tus(config), gate))
        .fallback(nothing_here.layer(gate.usual()))
        .method_not_allowed_fallback(not_allowed.layer(gate.usual()))
}

async fn nothing_here() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "There is nothing here.")
}

/// Whichever it is, the router adds which methods there are.
async fn not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let message = "This can't be done with this method.";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message).into_response()
}

/// What the routes of the server itself use.
#[derive(Clone)]
struct Watched {
    service: Service,
    metrics: Arc<Metrics>,
    /// Others than this machine can reach the server.
    is_exposed: bool,
}

fn own_routes(parts: &Parts, config: &Config, gate: &Gate) -> Router {
    let watched = Watched {
        service: parts.service.clone(),
        metrics: Arc::clone(&parts.metrics),
        is_exposed: !config.listen.ip().is_loopback(),
    };
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .layer(gate.usual())
        .with_state(watched)
}

#[derive(serde::Serialize)]
struct Health {
    status: &'static str,
}

/// Healthy is a server whose store can be read.
async fn health(State(watched): State<Watched>) -> Result<Json<Health>, ApiError> {
    let store = watched.service.store();
    store
        .read(|snapshot| snapshot.get("$health", b"").map(drop))
        .map_err(|_: StoreError| {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The store can't be read.")
        })?;
    Ok(Json(Health { status: "ok" }))
}

/// Open to whoever is on this machine; where others can reach the server, itself or through a
/// proxy, it needs the admin token.
async fn metrics(State(watched): State<Watched>, headers: HeaderMap) -> Result<Response, ApiError> {
    if watched.is_exposed || is_forwarded(&headers) {
        Admin::check(&watched.service, &headers)?;
    }
    let sessions = watched.service.sessions.count();
    let text = watched.metrics.encode(sessions).map_err(|_| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The metrics can't be written.",
        )
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, media_type)], text).into_response())
}
