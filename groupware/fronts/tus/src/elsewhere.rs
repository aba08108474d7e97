//! Requests for uploads that another server has, where each has a data folder of its own: passed on to that one, and its
//! answer passed back.
//!
//! The other server does with them what it does with requests of its own: it finds out who asks, and counts. Each
//! request has a connection of its own, since few come this way: all the others' uploads are where they began.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use groupware_documents::UploadId;
use groupware_http::{ApiError, Fault, Owner, Params};
use groupware_service::{Caller, Folders, Holder};
use groupware_store::StoreError;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version};
use http_body_util::combinators::MapFrame;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::failure::UploadFailure;
use crate::front::Tus;

/// On a request that was passed on: it goes no further.
const PASSED_ON: HeaderName = HeaderName::from_static("plimsoll-passed-on");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// What is said of one connection, and not of what comes over it.
const OF_CONNECTIONS: [HeaderName; 7] = [
    CONNECTION,
    KEEP_ALIVE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];
/// Longest wait for a connection to another server.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Longest time in which it takes nothing of a body, and doesn't answer. A large attachment is put into the object store
/// in it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest answer to a request about an upload.
const ANSWER_BYTES: usize = 64 << 10;
/// When whoever found a server away may try again.
const RETRY_AFTER_S: u32 = 5;

/// A request of an upload's owner, for an upload that this server has. One for another's is answered by that one.
pub(crate) struct Here {
    pub(crate) owner: Owner,
    pub(crate) id: UploadId,
    pub(crate) request: Request,
}

impl FromRequest<Tus> for Here {
    type Rejection = Response;

    async fn from_request(request: Request, front: &Tus) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let owner = Owner::from_request_parts(&mut parts, front).await;
        let owner = owner.map_err(IntoResponse::into_response)?;
        let params = Params::from_request_parts(&mut parts, front).await;
        let params = params.map_err(IntoResponse::into_response)?;
        let id = UploadId::parse(params.get("upload"));
        let id = id.map_err(|error| UploadFailure::from(error).into_response())?;
        let request = Request::from_parts(parts, body);
        let holder = |folders: &Folders, now| folders.holder(&id, now);
        let request = here(front, &owner, request, holder).await?;
        Ok(Self { owner, id, request })
    }
}

/// The request, if it is for this server; the answer of the one that it is for otherwise.
pub(crate) async fn here(
    front: &Tus,
    owner: &Owner,
    request: Request,
    holder: impl FnOnce(&Folders, i64) -> Result<Holder, StoreError>,
) -> Result<Request, Response> {
    let Some(folders) = &front.folders else {
        return Ok(request);
    };
    let answered = match holder(folders, front.service.now_s()) {
        Ok(Holder::Here) => return Ok(request),
        Ok(Holder::At(_)) if request.headers().contains_key(PASSED_ON) => Err(ApiError::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server that has this upload is reached elsewhere now: try again.",
            RETRY_AFTER_S,
        )),
        Ok(Holder::At(address)) => pass_on(front, owner, &address, request).await,
        Ok(Holder::Gone) => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "The server that had this upload is gone: begin it anew.",
        )),
        Err(error) => Err(error.into()),
    };
    Err(answered.unwrap_or_else(IntoResponse::into_response))
}

async fn pass_on(
    front: &Tus,
    owner: &Owner,
    address: &str,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = owner.caller();
    // Places of their own: servers that pass on to each other must not wait for each other's.
    let _place = front.passing.slot(caller, owner.who().user).await?;
    let taken = Arc::new(AtomicU64::new(0));
    let request = outgoing(request, (address, caller), Arc::clone(&taken));
    let answered = caller.give_way(ask(address, request, &taken)).await;
    answered.map_err(|error| {
        let message = "The server that has this upload can't be reached now: try again.";
        ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, RETRY_AFTER_S)
            .because(Fault::of(&error))
    })
}

/// A body that counts what is taken of it.
type Counted<F> = MapFrame<Body, F>;

/// The same request for another server.
fn outgoing(
    request: Request,
    (address, caller): (&str, &Caller),
    taken: Arc<AtomicU64>,
) -> Request<Counted<impl FnMut(Frame<Bytes>) -> Frame<Bytes> + Send + use<>>> {
    let (mut parts, body) = request.into_parts();
    if let Some(path) = parts.uri.path_and_query() {
        parts.uri = Uri::from(path.clone());
    }
    parts.version = Version::HTTP_11;
    strip(&mut parts.headers);
    let for_whom = HeaderValue::try_from(caller.peer().to_canonical().to_string());
    if let Ok(for_whom) = for_whom {
        parts.headers.insert(X_FORWARDED_FOR, for_whom);
    }
    if let (false, Ok(host)) = (parts.headers.contains_key(HOST), address.parse()) {
        parts.headers.insert(HOST, host);
    }
    parts
        .headers
        .insert(PASSED_ON, HeaderValue::from_static("1"));
    let body = body.map_frame(move |frame: Frame<Bytes>| {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        taken.fetch_add(bytes as u64, Relaxed);
        frame
    });
    Request::from_parts(parts, body)
}

fn strip(headers: &mut HeaderMap) {
    for name in OF_CONNECTIONS {
        headers.remove(name);
    }
}

async fn ask<F>(
    address: &str,
    request: Request<Counted<F>>,
    taken: &AtomicU64,
) -> io::Result<Response>
where
    F: FnMut(Frame<Bytes>) -> Frame<Bytes> + Send + 'static,
{
    let connected = timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // What it is for comes at once; that it could come sooner is no failure.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    // Ends with this, whether there was an answer or nobody waits for it any more.
    let mut connections = JoinSet::new();
    connections.spawn(async move { drop(connection.await) });
    let answer = async {
        let answer = sender.send_request(request).await;
        received(answer.map_err(io::Error::other)?).await
    };
    let answered = with_patience(answer, taken).await;
    answered.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}

async fn received(answer: http::Response<Incoming>) -> io::Result<Response> {
    let (mut parts, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES).collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    strip(&mut parts.headers);
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// What comes, unless nothing goes on for long.
async fn with_patience<T>(answer: impl Future<Output = T>, taken: &AtomicU64) -> Option<T> {
    let mut answer = pin!(answer);
    let mut seen = taken.load(Relaxed);
    loop {
        if let Ok(answer) = timeout(PATIENCE, answer.as_mut()).await {
            return Some(answer);
        }
        let now = taken.load(Relaxed);
        if now == seen {
            return None;
        }
        seen = now;
    }
}
