//! The responses: the page and its files, its parts as they change, the metrics, and control requests for the run.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use tokio::sync::OwnedSemaphorePermit;

use super::gate::{self, Token};
use super::shared::{Shared, looked};
use crate::metrics::{self, metrics};
use crate::page::{self, Part};
use crate::state::Mode;
use crate::watch::Watch;

/// Interval between two checks of parts.
const TICK: Duration = Duration::from_secs(1);
/// Largest control request, which is a word.
const MOST_ASKED: usize = 256;

/// The page loads its own two files, and connects to no other server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(answer).with_state(shared)
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let response = match admitted(&shared.token, &request) {
        Ok(rest) => routed(&shared, request, &rest).await,
        Err(refused) => *refused,
    };
    guarded(response, POLICY)
}

/// Adds security headers to a response, with a policy for its page.
pub(super) fn guarded(mut response: Response, policy: &'static str) -> Response {
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(CONTENT_SECURITY_POLICY, policy);
    put(X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(REFERRER_POLICY, "no-referrer");
    put(CACHE_CONTROL, "no-store");
    response
}

/// The path after the token's address, if the client is authorized.
pub(super) fn admitted(ours: &Token, request: &Request) -> Result<String, Box<Response>> {
    if !gate::is_our_host(request.headers()) {
        let why = "this server answers to addresses and to localhost, not to this name";
        return Err(Box::new(text(StatusCode::FORBIDDEN, why)));
    }
    let path = request.uri().path();
    let (token, rest) = path[1..].split_once('/').unwrap_or((&path[1..], "?"));
    if !ours.is(token) {
        let why = "no such page: the whole address is on the terminal where this was started";
        return Err(Box::new(text(StatusCode::NOT_FOUND, why)));
    }
    match (request.method(), rest) {
        // Without its last slash the page would request its files from a wrong path.
        (&Method::GET, "?") => Err(Box::new(see(&format!("/{token}/")))),
        _ => Ok(rest.to_owned()),
    }
}

async fn routed(shared: &Arc<Shared>, request: Request, rest: &str) -> Response {
    match (request.method(), rest) {
        (&Method::GET, "") => whole(shared).await,
        (&Method::GET, "live.css") => of(StatusCode::OK, "text/css; charset=utf-8", page::style()),
        (&Method::GET, "live.js") => of(
            StatusCode::OK,
            "text/javascript; charset=utf-8",
            page::script(),
        ),
        (&Method::GET, "events") => events(shared),
        (&Method::GET, "metrics") => measured(shared).await,
        (&Method::POST, "control") => control(shared, request).await,
        (_, "" | "live.css" | "live.js" | "events" | "metrics" | "control") => {
            text(StatusCode::METHOD_NOT_ALLOWED, "this is not asked so")
        }
        _ => text(StatusCode::NOT_FOUND, "no such page"),
    }
}

async fn whole(shared: &Arc<Shared>) -> Response {
    match looked(shared, |watch, _| watch.map(page::page)).await {
        Ok(Some(page)) => of(StatusCode::OK, HTML, page),
        Ok(None) => {
            let wait = "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=1>\
                        <title>Plimsoll</title><p>The run has no archive yet; this page looks again.";
            of(StatusCode::OK, HTML, wait.to_owned())
        }
        Err(why) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

async fn measured(shared: &Arc<Shared>) -> Response {
    match looked(shared, |watch, _| watch.map(metrics)).await {
        Ok(text) => of(
            StatusCode::OK,
            metrics::CONTENT_TYPE,
            text.unwrap_or("# EOF\n".to_owned()),
        ),
        Err(why) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

/// The changed parts of the page, every second, until the run ends.
fn events(shared: &Arc<Shared>) -> Response {
    let Ok(permit) = Arc::clone(&shared.readers).try_acquire_owned() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
    };
    let reader = Reader {
        shared: Arc::clone(shared),
        sent: HashMap::new(),
        stage: Stage::First,
        _permit: permit,
    };
    Sse::new(stream(reader))
        .keep_alive(KeepAlive::default())
        .into_response()
}

struct Reader {
    shared: Arc<Shared>,
    sent: HashMap<&'static str, String>,
    stage: Stage,
    _permit: OwnedSemaphorePermit,
}

enum Stage {
    /// Nothing was sent yet.
    First,
    /// The run is in progress.
    On,
    /// All parts were sent; the end is to be sent.
    Last,
    /// The end was sent.
    Over,
}

fn stream(reader: Reader) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(reader, |mut reader| async move {
        loop {
            match reader.stage {
                Stage::First => reader.stage = Stage::On,
                Stage::On => {
                    let mut ended = reader.shared.ended.clone();
                    let _ = tokio::time::timeout(TICK, ended.wait_for(|over| *over)).await;
                }
                Stage::Last => {
                    reader.stage = Stage::Over;
                    let end = Event::default().event("end").data("over");
                    return Some((Ok(end), reader));
                }
                Stage::Over => return None,
            }
            let was_ended = *reader.shared.ended.borrow();
            let seen = looked(&reader.shared, |watch, parts| {
                (watch.is_some_and(is_over), Arc::clone(parts))
            });
            // The page reports an unreadable archive when it is reloaded.
            let Ok((over, parts)) = seen.await else {
                return None;
            };
            if over || was_ended {
                reader.stage = Stage::Last;
            }
            if let Some(changed) = reader.changed(&parts) {
                return Some((Ok(Event::default().event("parts").data(changed)), reader));
            }
        }
    })
}

/// Returns true if no more data follows.
fn is_over(watch: &Watch) -> bool {
    matches!(watch.state().mode, Mode::Ended | Mode::Interrupted)
}

impl Reader {
    /// The parts that are new or changed for this page; `None` if there are none.
    fn changed(&mut self, parts: &[Part]) -> Option<String> {
        let mut changed = serde_json::Map::new();
        for part in parts {
            if self.sent.get(part.id) != Some(&part.html) {
                self.sent.insert(part.id, part.html.clone());
                changed.insert(part.id.to_owned(), part.html.clone().into());
            }
        }
        (!changed.is_empty()).then(|| serde_json::Value::Object(changed).to_string())
    }
}

/// Handles a control request for the run.
async fn control(shared: &Arc<Shared>, request: Request) -> Response {
    if !gate::is_own_page(request.headers()) {
        return text(
            StatusCode::FORBIDDEN,
            "only the page itself may ask for this",
        );
    }
    let wants_page = asks_for_a_page(request.headers());
    let Ok(body) = to_bytes(request.into_body(), MOST_ASKED).await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "what is asked is a word");
    };
    let asked = body.strip_prefix(b"do=").unwrap_or_default().to_vec();
    let done = looked(shared, move |watch, _| {
        let controls = watch.and_then(Watch::controls)?;
        let (flag, value) = match &*asked {
            b"stop" => (&controls.stop, true),
            b"pause" => (&controls.pause, true),
            b"resume" => (&controls.pause, false),
            b"skip" if controls.may_skip => (&controls.skip, true),
            _ => return Some(false),
        };
        flag.store(value, Ordering::Relaxed);
        Some(true)
    });
    match done.await {
        Ok(Some(true)) if wants_page => see("./"),
        Ok(Some(true)) => StatusCode::NO_CONTENT.into_response(),
        Ok(Some(false)) => text(
            StatusCode::BAD_REQUEST,
            "do is stop, pause, resume, or skip",
        ),
        Ok(None) => text(
            StatusCode::CONFLICT,
            "this run isn't steered from here, or is over",
        ),
        Err(why) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
    }
}

fn asks_for_a_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn see(place: &str) -> Response {
    let place = HeaderValue::from_str(place);
    let place = place.unwrap_or(HeaderValue::from_static("./"));
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

fn text(status: StatusCode, words: &str) -> Response {
    of(status, TEXT, format!("{words}\n"))
}

pub(super) fn of(status: StatusCode, kind: &'static str, body: String) -> Response {
    (
        status,
        [(CONTENT_TYPE, HeaderValue::from_static(kind))],
        body,
    )
        .into_response()
}
