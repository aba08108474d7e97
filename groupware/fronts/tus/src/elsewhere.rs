//! Requests for uploads that another server has, where each has a data folder of its own: passed on to that one, and its
//! answer passed back.
//!
//! How long that takes is the other server's to bound, which may have a large attachment to put into the object store.
//! Whoever waits for it only looks, as long as nothing is seen to go on, whether it is still there.
//!
//! The other server does with them what it does with requests of its own: it finds out who asks, and counts. Each
//! request has a connection of its own, since few come this way: all the others' uploads are where they began.
//!
//! Who is reached at an address may be another by now. So each request says by its mark which folder's server is meant;
//! that one alone looks at it, and says the mark in its answer. What comes without is no answer.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use groupware_documents::{DocumentError, Reason, UploadId};
use groupware_http::{ApiError, Fault, Owner, Params};
use groupware_runtime::Caller;
use groupware_service::{Folders, Holder};
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use http_body_util::combinators::MapFrame;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::work::record;

/// On a request that was passed on, which goes no further, the mark of the folder whose server is meant; on its answer,
/// the mark of the one that answers.
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
/// Time in which it takes nothing of a body, and doesn't answer, after which it is asked whether it is there.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for the answer to that.
const SIGN_WITHIN: Duration = Duration::from_secs(30);
/// A connection on which nothing is said for so long is tried, and so often until it is given up: the other machine may
/// have been started anew, and know nothing of it.
const TRIED_EACH: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(10)];
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
        let holder = |folders: &Folders, now| holder(front, &owner, &id, (folders, now));
        let request = here(front, &owner, request, holder).await?;
        Ok(Self { owner, id, request })
    }
}

/// Keeps away what was passed on to another server than this one, before anybody looks at whose it is.
pub(crate) async fn meant(State(front): State<Tus>, request: Request, next: Next) -> Response {
    let Some(mark) = request.headers().get(PASSED_ON).cloned() else {
        return next.run(request).await;
    };
    if !is_own(front.folders.as_ref(), &mark) {
        return ApiError::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server that has this upload is not the one that is reached here: try again.",
            RETRY_AFTER_S,
        )
        .into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(PASSED_ON, mark);
    response
}

fn is_own(folders: Option<&Folders>, mark: &HeaderValue) -> bool {
    folders.is_some_and(|folders| folders.mark().as_bytes() == mark.as_bytes())
}

/// Who answers for an upload: who has it. One that has become an attachment is nothing but a record, which each server
/// has; one whose name says nothing to anybody is where its file is. A file is never begun for either: it would say that
/// nothing of it was acknowledged.
pub(crate) fn holder(
    front: &Tus,
    owner: &Owner,
    id: &UploadId,
    (folders, now): (&Folders, i64),
) -> Result<Holder, UploadFailure> {
    let has_file = || front.content.upload_modified(id.as_str()).is_some();
    Ok(match folders.holder(id, now)? {
        Holder::Here => Holder::Here,
        Holder::Unknown if has_file() => Holder::Here,
        _ if is_finished(front, owner, id)? => Holder::Here,
        Holder::Unknown => Holder::Gone,
        elsewhere => elsewhere,
    })
}

fn is_finished(front: &Tus, owner: &Owner, id: &UploadId) -> Result<bool, DocumentError> {
    match record(front, owner, id) {
        Ok(upload) => Ok(upload.finished.is_some()),
        Err(error) if error.reason() == Some(Reason::NotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The request, if it is for this server; the answer of the one that it is for otherwise.
pub(crate) async fn here(
    front: &Tus,
    owner: &Owner,
    request: Request,
    holder: impl FnOnce(&Folders, i64) -> Result<Holder, UploadFailure>,
) -> Result<Request, Response> {
    let Some(folders) = &front.folders else {
        return Ok(request);
    };
    let answered = match holder(folders, front.service.now_s()) {
        Ok(Holder::Here) => return Ok(request),
        Ok(Holder::At { .. }) if request.headers().contains_key(PASSED_ON) => Err(ApiError::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server that has this upload is reached elsewhere now: try again.",
            RETRY_AFTER_S,
        )),
        Ok(Holder::At { address, mark }) => pass_on(front, owner, (&address, &mark), request).await,
        Ok(Holder::Gone | Holder::Unknown) => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "The server that had this upload is gone: begin it anew.",
        )),
        Err(error) => return Err(error.into_response()),
    };
    Err(answered.unwrap_or_else(IntoResponse::into_response))
}

async fn pass_on(
    front: &Tus,
    owner: &Owner,
    (address, mark): (&str, &str),
    request: Request,
) -> Result<Response, ApiError> {
    let caller = owner.caller();
    // Places of their own: servers that pass on to each other must not wait for each other's.
    let _place = front.passing.slot(caller, owner.who().user).await?;
    let taken = Arc::new(AtomicU64::new(0));
    let request = outgoing(request, (address, mark), caller, Arc::clone(&taken));
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
    (address, mark): (&str, &str),
    caller: &Caller,
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
    // Marks are digits; what is none is no server's.
    let mark = HeaderValue::try_from(mark);
    let mark = mark.unwrap_or_else(|_| HeaderValue::from_static("none"));
    parts.headers.insert(PASSED_ON, mark);
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
    let sign = Sign::of(address, &request);
    let (mut sender, _connection) = connect(address).await?;
    let meant = request.headers().get(PASSED_ON).cloned();
    let answer = async {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(io::Error::other)?;
        if answer.headers().get(PASSED_ON) != meant.as_ref() {
            return Err(io::Error::other("another server is reached there"));
        }
        received(answer).await
    };
    let answered = with_patience(answer, taken, (PATIENCE, || sign.is_given())).await;
    answered.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}

/// A connection, which ends with the other value, whether there was an answer or nobody waits for it any more.
async fn connect<B>(address: &str) -> io::Result<(http1::SendRequest<B>, JoinSet<()>)>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let connected = timeout(CONNECT_WITHIN, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // What it is for comes at once; that it could come sooner is no failure.
    let _ = stream.set_nodelay(true);
    let [idle, again] = TRIED_EACH;
    let tried = TcpKeepalive::new().with_time(idle).with_interval(again);
    SockRef::from(&stream).set_tcp_keepalive(&tried)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let mut connections = JoinSet::new();
    connections.spawn(async move { drop(connection.await) });
    Ok((sender, connections))
}

/// What another server is asked for on the way, to see that it is the one that is meant, and alive.
struct Sign<'a> {
    address: &'a str,
    uri: Uri,
    headers: HeaderMap,
}

impl<'a> Sign<'a> {
    /// Of the server that this request is for.
    fn of<B>(address: &'a str, request: &Request<B>) -> Self {
        let said = |name: HeaderName| Some((name.clone(), request.headers().get(name)?.clone()));
        let headers = [HOST, X_FORWARDED_FOR, PASSED_ON].into_iter();
        Self {
            address,
            uri: request.uri().clone(),
            headers: headers.filter_map(said).collect(),
        }
    }

    async fn is_given(&self) -> bool {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::OPTIONS;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let answered = async {
            let (mut sender, _connection) = connect(self.address).await?;
            let answer = sender.send_request(request).await;
            answer.map_err(io::Error::other)
        };
        let answered = timeout(SIGN_WITHIN, answered).await;
        let meant = self.headers.get(PASSED_ON);
        matches!(answered, Ok(Ok(answer)) if answer.headers().get(PASSED_ON) == meant)
    }
}

async fn received(answer: http::Response<Incoming>) -> io::Result<Response> {
    let (mut parts, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES).collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    strip(&mut parts.headers);
    parts.headers.remove(PASSED_ON);
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// What comes, unless nothing goes on for long, and who it is waited for is not there any more.
async fn with_patience<T, L>(
    answer: impl Future<Output = T>,
    taken: &AtomicU64,
    (patience, is_there): (Duration, impl Fn() -> L),
) -> Option<T>
where
    L: Future<Output = bool>,
{
    let mut answer = pin!(answer);
    let mut seen = taken.load(Relaxed);
    loop {
        if let Ok(answer) = timeout(patience, answer.as_mut()).await {
            return Some(answer);
        }
        let before = std::mem::replace(&mut seen, taken.load(Relaxed));
        if before == seen {
            tokio::select! {
                answer = answer.as_mut() => return Some(answer),
                // Who takes more of the body meanwhile is there, too.
                is_there = is_there() => if !is_there && taken.load(Relaxed) == seen {
                    return None;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use groupware_content::ContentStore;
    use groupware_documents as documents;
    use groupware_service::Folders;
    use groupware_store::{Store, StoreOptions};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;
    use crate::stage::{NOW, begin, context, front, owner};

    /// Makes it an attachment, as any server may have done.
    fn finish(store: &Store, id: &UploadId) {
        let content = ContentStore::scratch().unwrap();
        let mut whole = content.create_whole("whole", None).unwrap();
        whole.append(b"x").unwrap();
        let pin = whole.finish().unwrap();
        let finished = store.read(|snapshot| {
            documents::finish(&context(snapshot, 0), id, (pin.hash(), pin.placed()))
        });
        store.commit_blocking(finished.unwrap().batch).unwrap();
    }

    #[test]
    fn an_upload_is_where_its_file_is_and_everywhere_once_it_is_finished() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let front = front(&store, ContentStore::scratch().unwrap());
        let folders = front.folders.as_ref().unwrap();
        let owner = owner();
        let who = |id: &UploadId| holder(&front, &owner, id, (folders, NOW)).unwrap();
        let other = Folders::new(store.clone(), "other");
        other.note("2:2", NOW).unwrap();
        let there = begin(&store, other.marked(1));
        assert!(matches!(who(&there), Holder::At { .. }));
        // From before names had marks, in another's folder, and in this one.
        let [old, here] = [u128::MAX / 3, u128::MAX / 5].map(|bits| begin(&store, bits));
        drop(front.content.create_upload(here.as_str(), 1).unwrap());
        assert_eq!(who(&old), Holder::Gone);
        assert_eq!(who(&here), Holder::Here);
        // Made up.
        assert_eq!(who(&UploadId::from_bits(7)), Holder::Gone);
        for id in [&there, &old] {
            finish(&store, id);
            assert_eq!(who(id), Holder::Here);
        }
    }

    #[test]
    fn a_request_is_for_the_server_whose_mark_it_has() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let [own, other] = ["own", "other"].map(|name| Folders::new(store.clone(), name));
        let [mark, others] = [&own, &other].map(|it| HeaderValue::try_from(it.mark()).unwrap());
        assert!(is_own(Some(&own), &mark));
        assert!(!is_own(Some(&own), &others));
        assert!(!is_own(None, &mark));
    }

    /// Answers one request with this line in the head, and gives the request's head.
    async fn answer(listener: &TcpListener, line: &str) -> (TcpStream, String) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let bytes = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..bytes]).into_owned();
        let answer = format!("HTTP/1.1 204 No Content\r\n{line}\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        (stream, head)
    }

    #[tokio::test]
    async fn an_answer_is_of_the_server_that_was_meant_or_none() {
        for (line, is_meant) in [
            ("plimsoll-passed-on: 0a0b0c0d\r\n", true),
            ("plimsoll-passed-on: 00000001\r\n", false),
            ("", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let request = http::Request::builder()
                .uri("/tus/ada/7")
                .body(Body::empty());
            let caller = Caller::internal();
            let taken = Arc::new(AtomicU64::new(0));
            let meant = (&*address, "0a0b0c0d");
            let request = outgoing(request.unwrap(), meant, &caller, Arc::clone(&taken));
            let other = answer(&listener, line);
            let (answer, (_stream, head)) = tokio::join!(ask(&address, request, &taken), other);
            assert!(head.contains("plimsoll-passed-on: 0a0b0c0d"), "{head}");
            assert_eq!(answer.is_ok(), is_meant, "{line}");
            if let Ok(answer) = answer {
                assert_eq!(answer.status(), StatusCode::NO_CONTENT);
                assert!(!answer.headers().contains_key(PASSED_ON));
            }
        }
    }

    #[tokio::test]
    async fn who_is_there_is_waited_for_however_long_it_takes() {
        let taken = AtomicU64::new(0);
        let short = Duration::from_millis(1);
        let looks = Cell::new(0);
        let (done, is_done) = oneshot::channel();
        let done = Cell::new(Some(done));
        let is_there = || {
            looks.set(looks.get() + 1);
            if looks.get() == 5 {
                done.take().unwrap().send("done").unwrap();
            }
            ready(true)
        };
        let answer = with_patience(is_done, &taken, (short, is_there)).await;
        assert_eq!(answer, Some(Ok("done")));
        // Who takes more of the body needs no other sign.
        let looks = Cell::new(0);
        let takes = async {
            for _ in 0..3 {
                tokio::time::sleep(2 * short).await;
                taken.fetch_add(1, Relaxed);
            }
            std::future::pending::<()>().await;
        };
        let is_there = || {
            looks.set(looks.get() + 1);
            ready(false)
        };
        let answer = with_patience(takes, &taken, (20 * short, is_there)).await;
        assert_eq!((answer, looks.get()), (None, 1));
        assert_eq!(taken.load(Relaxed), 3);
        // Nor who does so while the sign is waited for, which it has no time to give.
        let looks = Cell::new(0);
        let is_there = || {
            looks.set(looks.get() + 1);
            taken.fetch_add(u64::from(looks.get() < 3), Relaxed);
            ready(false)
        };
        let nothing = std::future::pending::<()>();
        let answer = with_patience(nothing, &taken, (short, is_there)).await;
        assert_eq!((answer, looks.get()), (None, 3));
    }

    #[tokio::test]
    async fn a_sign_is_given_by_who_is_meant_and_nobody_else() {
        for (line, is_meant) in [
            ("plimsoll-passed-on: 0a0b0c0d\r\n", true),
            ("plimsoll-passed-on: 00000001\r\n", false),
            ("", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let request = http::Request::builder().uri("/tus/ada/7");
            let request = request.header(HOST, "front").header("secret", "none's");
            let request = request.body(Body::empty()).unwrap();
            let taken = Arc::new(AtomicU64::new(0));
            let meant = (&*address, "0a0b0c0d");
            let request = outgoing(request, meant, &Caller::internal(), taken);
            let sign = Sign::of(&address, &request);
            let (is_given, (_stream, head)) =
                tokio::join!(sign.is_given(), answer(&listener, line));
            assert_eq!(is_given, is_meant, "{line}");
            assert!(head.starts_with("OPTIONS /tus/ada/7 "), "{head}");
            assert!(head.contains("host: front\r\n"), "{head}");
            assert!(!head.contains("secret"), "{head}");
            drop(listener);
            assert!(!sign.is_given().await, "nobody is there");
        }
    }
}
