//! Tests of upload requests, to one server and to several over one store of records and one object store.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use groupware_content::ContentStore;
use groupware_documents::HeldUpload;
use groupware_store::{Store, StoreOptions};

use super::*;
use crate::stage::{Bucket, begin, begin_as, front, new_upload, owner};

#[tokio::test]
async fn uploads_that_are_made_up_take_no_place() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let front = front(&store, ContentStore::scratch().unwrap());
    let owner = owner();
    let id = UploadId::from_bits(7);
    assert!(claim(&front, &owner, &id).await.is_err());
    assert!(!front.uploads.is_at_hand(&key(owner.mailbox(), &id)));
}

/// The state that all servers share.
struct Site {
    store: Store,
    bucket: Arc<Bucket>,
}

impl Site {
    fn new() -> Self {
        Self {
            store: Store::memory(StoreOptions::default()).unwrap(),
            bucket: Arc::default(),
        }
    }

    /// Returns a server with a folder of its own.
    fn server(&self) -> Tus {
        let content = ContentStore::scratch().unwrap();
        let content = content.with_objects(Arc::clone(&self.bucket) as _);
        front(
            &self.store,
            content.with_segments(Arc::clone(&self.bucket) as _),
        )
    }

    fn begin(&self, bits: u128, length: usize, concat: Option<&str>) -> UploadId {
        begin_as(&self.store, bits, |new| {
            new.length = length as u64;
            new.concat = concat.map(str::to_owned);
            new.is_segmented = true;
        })
    }

    fn held(&self, id: &UploadId) -> HeldUpload {
        let held =
            |snapshot: &dyn groupware_store::Snapshot| documents::held_upload(snapshot, "ada", id);
        self.store.read(held).unwrap()
    }

    /// Makes the object store unavailable after so many segment reads.
    fn away_from(&self, reads: Option<u32>) {
        *self.bucket.away_from.lock().unwrap() = reads;
    }

    fn reads(&self) -> u32 {
        self.bucket.reads.load(Relaxed)
    }

    fn content(&self) -> Vec<Vec<u8>> {
        self.bucket.content.lock().unwrap().clone()
    }

    /// Waits until the object store has only recorded segments.
    async fn is_swept(&self, listed: usize) {
        let swept = async {
            while self.bucket.names().len() > listed {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, swept).await.unwrap();
    }
}

async fn ask(server: &Tus, id: &UploadId, request: Request) -> Response {
    let asked = UploadRequest {
        owner: owner(),
        id: id.clone(),
        request,
    };
    let front = State(server.clone());
    let reply = match *request_method(&asked) {
        Method::HEAD => head(front, asked).await,
        Method::DELETE => remove(front, asked).await,
        _ => append(front, asked).await,
    };
    reply.unwrap_or_else(axum::response::IntoResponse::into_response)
}

fn request_method(asked: &UploadRequest) -> &Method {
    asked.request.method()
}

fn request(method: Method) -> http::request::Builder {
    Request::builder()
        .method(method)
        .header(RESUMABLE, tus::VERSION)
        .header(CONTENT_TYPE, tus::CHUNK_TYPE)
}

async fn send(server: &Tus, id: &UploadId, at: usize, chunk: &[u8]) -> u16 {
    let request = request(Method::PATCH).header(OFFSET, at);
    let request = request.body(Body::from(chunk.to_vec())).unwrap();
    ask(server, id, request).await.status().as_u16()
}

/// The offset that a server returns, or its status.
async fn asked(server: &Tus, id: &UploadId) -> Result<usize, u16> {
    let request = request(Method::HEAD).body(Body::empty()).unwrap();
    let answer = ask(server, id, request).await;
    let offset = answer.headers().get(OFFSET);
    match offset {
        Some(offset) => Ok(offset.to_str().unwrap().parse().unwrap()),
        None => Err(answer.status().as_u16()),
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 % 251) as u8).collect()
}

#[tokio::test]
async fn any_server_continues_an_upload() {
    let site = Site::new();
    let servers = [site.server(), site.server(), site.server()];
    let whole = bytes(250_000);
    let id = site.begin(7, whole.len(), None);
    let mut at = 0;
    for (turn, chunk) in whole.chunks(40_000).enumerate() {
        let server = &servers[turn % 3];
        assert_eq!(asked(server, &id).await, Ok(at));
        assert_eq!(send(server, &id, at + 1, chunk).await, 409);
        assert_eq!(send(server, &id, at, chunk).await, 204);
        at += chunk.len();
    }
    for server in &servers {
        assert_eq!(asked(server, &id).await, Ok(whole.len()));
        // A client that missed the answer repeats nothing.
        assert_eq!(send(server, &id, whole.len(), b"").await, 204);
        let files = server.content.upload_files().unwrap();
        assert!(files.is_empty(), "{files:?}");
    }
    assert!(site.content() == [whole]);
    site.is_swept(0).await;
}

#[tokio::test]
async fn an_upload_outlives_the_server_that_took_its_chunks() {
    let site = Site::new();
    let whole = bytes(90_000);
    let id = site.begin(7, whole.len(), None);
    let first = site.server();
    assert_eq!(send(&first, &id, 0, &whole[..30_000]).await, 204);
    // The server dies when a segment is in the object store, and not yet in the record.
    let revision = site.held(&id).revision;
    let lost = documents::segment_name(&id, revision, 1);
    groupware_content::Segments::put(&*site.bucket, &lost, &|| Ok(whole[30_000..].to_vec()))
        .unwrap();
    drop(first);
    let second = site.server();
    assert_eq!(asked(&second, &id).await, Ok(30_000));
    assert_eq!(send(&second, &id, 30_000, &whole[30_000..]).await, 204);
    assert!(site.content() == [whole]);
    // The sweep finds it.
    site.is_swept(1).await;
    assert_eq!(site.bucket.names(), [lost]);
}

#[tokio::test]
async fn a_chunk_that_was_cut_off_goes_on_elsewhere() {
    let site = Site::new();
    let (one, other) = (site.server(), site.server());
    let whole = bytes(50_000);
    let id = site.begin(7, whole.len(), None);
    let pieces = [
        Ok(axum::body::Bytes::copy_from_slice(&whole[..20_000])),
        Err(std::io::Error::other("the client has gone")),
    ];
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    let cut = request(Method::PATCH).header(OFFSET, 0).body(body).unwrap();
    assert_eq!(ask(&one, &id, cut).await.status(), 400);
    assert_eq!(asked(&other, &id).await, Ok(20_000));
    assert_eq!(send(&other, &id, 20_000, &whole[20_000..]).await, 204);
    assert!(site.content() == [whole]);
}

/// Sends two chunks such that both servers read the upload's record before one of them changes it.
async fn at_once(site: &Site, id: &UploadId, chunks: [&[u8]; 2]) -> [u16; 2] {
    let servers = [site.server(), site.server()];
    *site.bucket.together.lock().unwrap() = Some(Arc::new(Barrier::new(2)));
    let sent = tokio::join!(
        send(&servers[0], id, 0, chunks[0]),
        send(&servers[1], id, 0, chunks[1])
    );
    *site.bucket.together.lock().unwrap() = None;
    sent.into()
}

#[tokio::test]
async fn of_two_chunks_at_once_one_is_taken() {
    for _ in 0..3 {
        let site = Site::new();
        let id = site.begin(7, 3000, None);
        let chunks = [&[1; 1000][..], &[2; 2000]];
        let statuses = at_once(&site, &id, chunks).await;
        let won = statuses.iter().position(|status| *status == 204).unwrap();
        assert_eq!(statuses[1 - won], 409, "{statuses:?}");
        site.is_swept(1).await;
        let server = site.server();
        let taken = chunks[won];
        assert_eq!(asked(&server, &id).await, Ok(taken.len()));
        let rest = vec![3; 3000 - taken.len()];
        assert_eq!(send(&server, &id, taken.len(), &rest).await, 204);
        assert!(site.content() == [[taken, &rest].concat()]);
    }
}

#[tokio::test]
async fn of_two_last_chunks_at_once_one_is_taken() {
    for _ in 0..3 {
        let site = Site::new();
        let id = site.begin(7, 1000, None);
        let statuses = at_once(&site, &id, [&[1; 1000], &[2; 1000]]).await;
        let mut sorted = statuses;
        sorted.sort_unstable();
        assert_eq!(sorted, [204, 409]);
        let server = site.server();
        assert_eq!(asked(&server, &id).await, Ok(1000));
    }
}

#[tokio::test]
async fn a_chunk_that_does_not_fit_its_checksum_is_nowhere() {
    let site = Site::new();
    let (one, other) = (site.server(), site.server());
    let whole = bytes(5000);
    let id = site.begin(7, whole.len(), None);
    assert_eq!(send(&one, &id, 0, &whole[..1000]).await, 204);
    let with = |of: &[u8]| {
        let digest = BASE64_STANDARD.encode(blake3::hash(of).as_bytes());
        let request = request(Method::PATCH).header(OFFSET, 1000);
        let request = request.header("upload-checksum", format!("blake3 {digest}"));
        request
            .body(Body::from(whole[1000..2000].to_vec()))
            .unwrap()
    };
    let answer = ask(&other, &id, with(b"another")).await;
    assert_eq!(answer.status().as_u16(), 460);
    assert_eq!(site.bucket.names().len(), 1);
    assert_eq!(asked(&one, &id).await, Ok(1000));
    let answer = ask(&other, &id, with(&whole[1000..2000])).await;
    assert_eq!(answer.status().as_u16(), 204);
    assert_eq!(send(&one, &id, 2000, &whole[2000..]).await, 204);
    assert!(site.content() == [whole]);
}

#[tokio::test]
async fn an_upload_in_many_small_chunks_has_few_segments() {
    let site = Site::new();
    let servers = [site.server(), site.server()];
    let whole = bytes(2000);
    let id = site.begin(7, whole.len() + 1, None);
    for (turn, chunk) in whole.chunks(10).enumerate() {
        let server = &servers[turn / 50 % 2];
        assert_eq!(send(server, &id, turn * 10, chunk).await, 204);
    }
    let held = site.held(&id);
    let listed = held.upload.segments.unwrap();
    assert!(listed.len() < 66, "{}", listed.len());
    site.is_swept(listed.len()).await;
    assert_eq!(send(&site.server(), &id, 2000, b"x").await, 204);
    assert!(site.content() == [[&whole[..], b"x"].concat()]);
    site.is_swept(0).await;
}

/// Joins parts at a server; returns the length, or the status of the failure.
async fn joined(site: &Site, server: &Tus, bits: u128, parts: &[UploadId]) -> Result<u64, u16> {
    let id = UploadId::from_bits(bits);
    let new = NewUpload {
        is_segmented: true,
        concat: Some("final;".to_owned()),
        ..new_upload(&site.store, bits + 100)
    };
    let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let joined = join(server, &owner(), (&id, bits, new), &names).await;
    joined.map_err(|error| {
        let answer = axum::response::IntoResponse::into_response(error);
        answer.status().as_u16()
    })
}

#[tokio::test]
async fn parts_are_joined_whichever_servers_took_them() {
    let site = Site::new();
    let servers = [site.server(), site.server()];
    let parts = [1, 2, 3].map(|bits| site.begin(bits, 1000, Some("partial")));
    for (which, part) in parts.iter().enumerate() {
        let (one, other) = (&servers[which % 2], &servers[1 - which % 2]);
        let half = [which as u8; 500];
        assert_eq!(send(one, part, 0, &half).await, 204);
        let early = joined(&site, one, 10 + which as u128, &parts).await;
        assert_eq!(early, Err(400));
        assert_eq!(send(other, part, 500, &half).await, 204);
    }
    let whole = joined(&site, &site.server(), 20, &parts).await;
    assert_eq!(whole, Ok(3000));
    assert!(site.content() == [[[0; 1000], [1; 1000], [2; 1000]].concat()]);
    site.is_swept(0).await;
    assert_eq!(asked(&servers[0], &parts[0]).await, Err(404));
}

#[tokio::test]
async fn parts_stay_until_what_they_make_is_in_the_object_store() {
    let site = Site::new();
    let server = site.server();
    let parts = [1, 2].map(|bits| site.begin(bits, 1000, Some("partial")));
    for part in &parts {
        assert_eq!(send(&server, part, 0, &[7; 1000]).await, 204);
    }
    // Before the first read, before the second, and before the content is put.
    for (bits, reads) in [(10, 0), (11, 1), (12, 2)] {
        site.away_from(Some(site.reads() + reads));
        let away = joined(&site, &server, bits, &parts).await;
        assert_eq!(away, Err(503));
        for part in &parts {
            assert_eq!(asked(&server, part).await, Ok(1000));
        }
    }
    site.away_from(None);
    assert_eq!(joined(&site, &server, 20, &parts).await, Ok(2000));
    assert!(site.content() == [[7; 2000]]);
    site.is_swept(0).await;
}

#[tokio::test]
async fn what_a_server_has_read_stays_while_the_object_store_is_away() {
    let site = Site::new();
    let (one, other) = (site.server(), site.server());
    let whole = bytes(4000);
    let id = site.begin(7, whole.len(), None);
    for (turn, chunk) in whole[..3000].chunks(1000).enumerate() {
        assert_eq!(send(&one, &id, turn * 1000, chunk).await, 204);
    }
    site.away_from(Some(2));
    assert_eq!(send(&other, &id, 3000, &whole[3000..]).await, 503);
    site.away_from(None);
    assert_eq!(send(&other, &id, 3000, &whole[3000..]).await, 204);
    assert_eq!(site.reads(), 3);
    assert!(site.content() == [whole]);
}

#[tokio::test]
async fn what_nobody_waits_for_is_read_to_its_end() {
    let site = Site::new();
    let (one, other) = (site.server(), site.server());
    let whole = bytes(2000);
    let id = site.begin(7, whole.len(), None);
    assert_eq!(send(&one, &id, 0, &whole[..1000]).await, 204);
    let barrier = Arc::new(Barrier::new(2));
    *site.bucket.together.lock().unwrap() = Some(Arc::clone(&barrier));
    let begun = async {
        while site.reads() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = send(&other, &id, 1000, &whole[1000..]) => panic!("the read takes its time"),
        () = begun => {}
    }
    *site.bucket.together.lock().unwrap() = None;
    tokio::task::spawn_blocking(move || barrier.wait())
        .await
        .unwrap();
    assert_eq!(send(&other, &id, 1000, &whole[1000..]).await, 204);
    assert_eq!(site.reads(), 1);
    assert!(site.content() == [whole]);
}

#[tokio::test]
async fn a_chunk_that_cannot_be_put_is_forgotten_alone() {
    let site = Site::new();
    let server = site.server();
    let whole = bytes(3000);
    let id = site.begin(7, whole.len(), None);
    for (turn, chunk) in whole.chunks(1000).enumerate() {
        site.away_from(Some(0));
        assert_eq!(send(&server, &id, turn * 1000, &[9; 1000]).await, 503);
        assert_eq!(asked(&server, &id).await, Ok(turn * 1000));
        site.away_from(None);
        assert_eq!(send(&server, &id, turn * 1000, chunk).await, 204);
    }
    assert_eq!(site.reads(), 0);
    assert!(site.content() == [whole]);
}

#[tokio::test]
async fn an_upload_whose_bytes_are_gone_is_to_begin_anew() {
    let site = Site::new();
    let id = site.begin(7, 100, None);
    let part = site.begin(8, 100, Some("partial"));
    assert_eq!(send(&site.server(), &id, 0, &[1; 50]).await, 204);
    assert_eq!(send(&site.server(), &part, 0, &[1; 100]).await, 204);
    let (reads, looks) = (site.reads(), &site.bucket.looks);
    for id in [&id, &part] {
        assert!(asked(&site.server(), id).await.is_ok());
    }
    assert_eq!((site.reads(), looks.load(Relaxed)), (reads, 2));
    // A segment that can't be checked now isn't missing.
    site.bucket.segments.lock().unwrap().clear();
    site.away_from(Some(0));
    assert_eq!(asked(&site.server(), &id).await, Ok(50));
    site.away_from(None);
    for id in [&id, &part] {
        assert_eq!(asked(&site.server(), id).await, Err(410));
    }
    assert_eq!(send(&site.server(), &id, 50, &[1; 50]).await, 410);
    assert_eq!(joined(&site, &site.server(), 9, &[part]).await, Err(410));
}

#[tokio::test]
async fn an_upload_whose_bytes_are_at_hand_needs_no_segments() {
    let site = Site::new();
    let id = site.begin(7, 100, None);
    let (one, other) = (site.server(), site.server());
    assert_eq!(send(&one, &id, 0, &[1; 50]).await, 204);
    assert_eq!(send(&other, &id, 50, &[1; 20]).await, 204);
    let listed = site.held(&id).upload.segments.unwrap();
    assert_eq!(listed.len(), 2);
    site.bucket.segments.lock().unwrap().remove(&listed[0].name);
    // The first server has the first bytes, the second one all of them.
    for (server, expected) in [(&one, Ok(70)), (&other, Ok(70)), (&site.server(), Err(410))] {
        assert_eq!(asked(server, &id).await, expected);
    }
    site.bucket.segments.lock().unwrap().clear();
    for (server, expected) in [(&one, Err(410)), (&other, Ok(70))] {
        assert_eq!(asked(server, &id).await, expected);
    }
    assert_eq!(send(&other, &id, 70, &[1; 30]).await, 204);
}

#[tokio::test]
async fn a_late_length_and_a_chunk_at_another_server_leave_no_upload_beyond_its_length() {
    let site = Site::new();
    let id = begin_as(&site.store, 7, |new| {
        new.length = STEP_BYTES;
        new.deferred = Some(1 << 30);
        new.is_segmented = true;
    });
    let server = site.server();
    let lengths = (1 << 30, STEP_BYTES);
    let mut copy = create_file(&server, &owner(), &id, lengths).await.unwrap();
    assert_eq!(send(&server, &id, 0, &[1; 4000]).await, 204);
    let extend = async |length| {
        let extend = |context: &Context<'_>| documents::extend(context, &id, length, true);
        let extended = change(&server, &owner(), 0, extend).await;
        extended.map_err(|error| {
            let failure = UploadFailure::from(error);
            axum::response::IntoResponse::into_response(failure).status()
        })
    };
    assert_eq!(extend(3999).await, Err(StatusCode::CONFLICT));
    assert_eq!(extend(5000).await, Ok(()));
    // Another server has read the record before.
    copy.take_over(&[1; 4000]).unwrap();
    copy.append(&[1; 1001]).unwrap();
    let put = tokio::task::spawn_blocking(move || copy.settle());
    let put = put.await.unwrap();
    assert!(matches!(put, Err(groupware_content::ContentError::Taken)));
    assert_eq!(asked(&server, &id).await, Ok(4000));
    assert_eq!(send(&server, &id, 4000, &[1; 1000]).await, 204);
    assert!(site.content() == [[1; 5000]]);
}

#[tokio::test]
async fn a_length_that_is_told_late_may_be_told_to_another_server() {
    let site = Site::new();
    let servers = [site.server(), site.server()];
    let id = begin_as(&site.store, 7, |new| {
        new.length = STEP_BYTES;
        new.deferred = Some(1 << 30);
        new.is_segmented = true;
    });
    let whole = bytes(9000);
    assert_eq!(send(&servers[0], &id, 0, &whole[..4000]).await, 204);
    assert_eq!(send(&servers[1], &id, 4000, &whole[4000..6000]).await, 204);
    let last = request(Method::PATCH).header(OFFSET, 6000);
    let last = last.header(LENGTH, 9000);
    let last = last.body(Body::from(whole[6000..].to_vec())).unwrap();
    assert_eq!(ask(&servers[0], &id, last).await.status(), 204);
    assert!(site.content() == [whole]);
}

#[tokio::test]
async fn an_upload_that_is_given_up_leaves_nothing() {
    let site = Site::new();
    let servers = [site.server(), site.server()];
    let id = site.begin(7, 100, None);
    assert_eq!(send(&servers[0], &id, 0, &[1; 50]).await, 204);
    let delete = request(Method::DELETE).body(Body::empty()).unwrap();
    assert_eq!(ask(&servers[1], &id, delete).await.status(), 204);
    for server in &servers {
        assert_eq!(asked(server, &id).await, Err(404));
        assert_eq!(send(server, &id, 50, &[1; 50]).await, 404);
    }
    site.is_swept(0).await;
}

#[tokio::test]
async fn an_upload_that_lies_in_a_file_somewhere_begins_anew() {
    let site = Site::new();
    let id = begin(&site.store, 7);
    assert_eq!(asked(&site.server(), &id).await, Err(404));
    // And the other way round.
    let id = site.begin(8, 100, None);
    let alone = front(&site.store, ContentStore::scratch().unwrap());
    assert_eq!(asked(&alone, &id).await, Err(404));
}
