//! All routes, each behind the gate, and the responses for unknown ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use groupware_http::{Admin, ApiError, Fault, Gate, Metrics};
use groupware_objects::ObjectStorage;
use groupware_service::Service;
use groupware_store::{Batch, StoreError};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::sync::{Semaphore, oneshot};

use crate::config::Config;
use crate::parts::Parts;

/// The partition of a record that is read and written to check the store.
const HEALTH: &str = "$health";
/// A commit that takes longer will probably never end.
const STUCK: Duration = Duration::from_secs(10);
/// A read that takes longer waits for a disk that hardly responds.
const UNREADABLE: Duration = Duration::from_secs(2);

pub(crate) fn router(parts: &Parts, config: &Config, gate: &Gate) -> Router {
    Router::new()
        .merge(own_routes(parts, gate))
        .merge(groupware_front_admin::routes(&parts.admin(config), gate))
        .merge(groupware_front_lookup::routes(&parts.lookup(config), gate))
        .merge(groupware_front_pages::routes(&parts.pages(config), gate))
        .merge(groupware_front_domino::routes(&parts.domino(config), gate))
        .merge(groupware_front_tus::routes(&parts.tus(config), gate))
        .fallback(nothing_here.layer(gate.usual()))
        .method_not_allowed_fallback(not_allowed.layer(gate.usual()))
}

/// Returns the patterns of a router's routes, which are only in its debug output.
pub(crate) fn patterns(router: &Router) -> BTreeSet<String> {
    let text = format!("{router:?}");
    let quoted = text.split('"').skip(1).step_by(2);
    let patterns = quoted.filter(|text| text.starts_with('/') && !text.contains("__private__"));
    patterns.map(str::to_owned).collect()
}

/// `OPTIONS *` asks for the server's general capabilities (RFC 9110, 9.3.7).
async fn nothing_here(method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS && uri.path() == "*" {
        return StatusCode::NO_CONTENT.into_response();
    }
    ApiError::new(StatusCode::NOT_FOUND, "There is nothing here.").into_response()
}

/// In both cases the router adds the allowed methods.
async fn not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let message = "This can't be done with this method.";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message).into_response()
}

/// The state of the server's own routes.
#[derive(Clone)]
struct RouteState {
    service: Service,
    metrics: Arc<Metrics>,
    /// Only one check at a time reads the store.
    reads: Arc<Semaphore>,
    /// The object store of the attachments, if they are not in the folder.
    objects: Option<Arc<ObjectStorage>>,
}

fn own_routes(parts: &Parts, gate: &Gate) -> Router {
    let watched = RouteState {
        service: parts.service.clone(),
        metrics: Arc::clone(&parts.metrics),
        reads: Arc::new(Semaphore::new(1)),
        objects: parts.objects.clone(),
    };
    Router::new()
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .layer(gate.usual())
        .with_state(watched)
}

#[derive(serde::Serialize)]
struct Health {
    status: &'static str,
    /// Whether the object store responds, if attachments are in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<&'static str>,
}

impl Health {
    fn new(status: &'static str) -> Self {
        Self {
            status,
            attachments: None,
        }
    }
}

/// A server is healthy if its writer is alive and its store can be read. An unhealthy one needs a restart.
async fn health(State(watched): State<RouteState>) -> Result<Json<Health>, ApiError> {
    let store = watched.service.store();
    if store.condition().is_dead {
        return Err(unavailable("The store's writer is dead."));
    }
    match tokio::time::timeout(UNREADABLE, read_apart(&watched)).await {
        Ok(Some(Ok(()))) => Ok(Json(Health::new("ok"))),
        Ok(Some(Err(error))) => {
            Err(unavailable("The store can't be read.").because(Fault::of(&error)))
        }
        Ok(None) | Err(_) => Err(unavailable("The store can't be read in time.")),
    }
}

/// Reads a record on a thread of its own: a thread that serves connections would hang with the disk. The
/// account cache must be valid, too, or requests of users fail. `None` if no thread can be started.
async fn read_apart(watched: &RouteState) -> Option<Result<(), StoreError>> {
    let turn = Arc::clone(&watched.reads).acquire_owned().await.ok()?;
    let service = watched.service.clone();
    let (tell, told) = oneshot::channel();
    let read = move || {
        let read = service
            .store()
            .read(|snapshot| snapshot.get(HEALTH, b"").map(drop))
            .and_then(|()| service.auth.ensure_ready());
        drop(turn);
        // The request may have been cancelled.
        let _ = tell.send(read);
    };
    std::thread::Builder::new()
        .name("health".to_owned())
        .spawn(read)
        .ok()?;
    told.await.ok()
}

/// A server is ready if it is healthy and accepts writes. If the last write failed, this tries one
/// more: no other request may arrive as long as the server isn't ready.
///
/// Without the object store, everything but attachments works, on every server: the server is
/// ready, and reports that the object store is down.
async fn ready(State(watched): State<RouteState>) -> Result<Json<Health>, ApiError> {
    let _healthy = health(State(watched.clone())).await?;
    let store = watched.service.store();
    let condition = store.condition();
    if condition.busy_for.is_some_and(|time| time > STUCK) {
        return Err(unavailable("The store is stuck in a commit."));
    }
    if condition.refusal.is_some() {
        let mut batch = Batch::new();
        batch.put(HEALTH, "", "");
        let tried = store.commit(batch).await;
        tried.map_err(|_| unavailable("The store takes no writes."))?;
    }
    let mut health = Health::new("ready");
    if let Some(shelf) = watched.objects {
        let asked = tokio::task::spawn_blocking(move || shelf.is_there());
        let is_there = tokio::time::timeout(UNREADABLE, asked).await;
        health.attachments = Some(match is_there {
            Ok(Ok(true)) => "ok",
            _ => "away",
        });
    }
    Ok(Json(health))
}

fn unavailable(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

/// Requires the admin token: the address proves nothing, since any program may forward connections.
async fn metrics(
    State(watched): State<RouteState>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Admin::check(&watched.service, &headers)?;
    let sessions = watched.service.auth.sessions.count();
    let text = watched.metrics.encode(sessions).map_err(|_| {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The metrics can't be written.",
        )
    })?;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, media_type)], text).into_response())
}
