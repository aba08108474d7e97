//! The routes under `/tus/{mailbox}`.

use std::time::SystemTime;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{MethodRouter, delete, options, patch, post};
use groupware_documents::{
    self as documents, Context, DatabaseName, DocumentError, FileName, ItemName, NewUpload, Place,
    Unid, UploadId, http_date, tus,
};
use groupware_http::reply::{status, with};
use groupware_http::{ApiError, Gate, MethodOverride, Owner, Params, header_text as text};
use groupware_service::documents::room;
use groupware_store::Snapshot;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::headers::{CONCAT, DEFER_LENGTH, EXPIRES, LENGTH, METADATA, OFFSET, RESUMABLE};
use crate::open::{Claimed, key};
use crate::receive::{Outcome, finish, receive};

type Reply = Result<Response, UploadFailure>;

/// The routes under `/tus/{mailbox}`, behind the gate. Chunks are streamed, within the bounds and at
/// the pace that are kept where they are received.
pub fn routes(front: &Tus, gate: &Gate) -> Router {
    let usual = |routes: MethodRouter<Tus>| routes.layer(map_response(speak)).layer(gate.usual());
    let chunk =
        |routes: MethodRouter<Tus>| routes.layer(map_response(speak)).layer(gate.streamed());
    let new = chunk(post(create)).merge(usual(options(capabilities)));
    let old = usual(options(capabilities).head(head))
        .merge(chunk(patch(append)))
        .merge(usual(delete(remove)))
        .merge(chunk(post(overridden)));
    Router::new()
        .route("/tus/{mailbox}/{database}/{unid}/{item}", new)
        .route("/tus/{mailbox}/{upload}", old)
        .with_state(front.clone())
}

/// Every answer says which version it speaks.
async fn speak(mut response: Response) -> Response {
    let version = HeaderValue::from_static(tus::VERSION);
    response.headers_mut().insert(RESUMABLE, version);
    response
}

/// What this server can do, for whoever asks: no secret.
async fn capabilities(State(front): State<Tus>) -> Response {
    let response = status(StatusCode::NO_CONTENT);
    let most = front.attachment_bytes.to_string();
    [
        ("tus-version", tus::VERSION),
        ("tus-extension", tus::EXTENSIONS),
        ("tus-checksum-algorithm", tus::ALGORITHMS),
        ("tus-max-size", &*most),
    ]
    .into_iter()
    .fold(response, |response, (name, value)| {
        with(response, HeaderName::from_static(name), value)
    })
}

async fn create(State(front): State<Tus>, owner: Owner, params: Params, request: Request) -> Reply {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    check_version(headers)?;
    let bits = front.service.random_bits();
    let id = UploadId::from_bits(bits);
    let new = new_upload(&front, headers, (&params, &id))?;
    let has_chunk = text(headers, CONTENT_TYPE).is_some();
    if has_chunk {
        check_chunk_type(headers)?;
    }
    let length = new.length;
    let mut claimed = front
        .uploads
        .claim(owner.caller(), &key(owner.mailbox(), &id))
        .await?;
    make(&front, &owner, &mut claimed, (&id, bits, &new)).await?;
    let outcome = match has_chunk || length == 0 {
        true => receive(&front, &owner, &id, claimed, (headers, body)).await?,
        false => Outcome { offset: 0 },
    };
    let path = format!("/tus/{}/{id}", owner.mailbox());
    let response = with(status(StatusCode::CREATED), LOCATION, &path);
    Ok(progress(
        &front,
        response,
        (outcome.offset, length),
        front.service.now_s(),
    ))
}

/// The file first, so that a full disk is told at once, then the record: a file without one is
/// swept.
async fn make(
    front: &Tus,
    owner: &Owner,
    claimed: &mut Claimed,
    (id, bits, new): (&UploadId, u128, &NewUpload),
) -> Result<(), UploadFailure> {
    // Who has no room, or no such document, is told before the disk has any work.
    front.service.store().read(|snapshot| {
        let place = (&new.place.database, &new.place.unid);
        documents::document(snapshot, owner.who(), place, Some(&[])).map(drop)
    })?;
    let (content, name, length) = (front.content.clone(), id.to_string(), new.length);
    let room = room(&front.service, owner.caller(), owner.mailbox())?;
    if room < length {
        let message = "This would take more than your share of the disk.";
        return Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message).into());
    }
    let create = move || content.create_upload(&name, length);
    let upload = front.streams.disk.work(create).await??;
    let begin = |context: &Context<'_>| documents::begin(context, new);
    let begun = groupware_service::documents::change(
        &front.service,
        owner.caller(),
        (owner.who(), bits),
        begin,
    );
    if let Err(error) = begun.await {
        let (content, name) = (front.content.clone(), id.to_string());
        let removed = front
            .streams
            .disk
            .work(move || content.remove_upload(&name));
        // The sweep gets what this doesn't.
        let _ = removed.await;
        return Err(error.into());
    }
    claimed.put(upload);
    Ok(())
}

fn new_upload(
    front: &Tus,
    headers: &HeaderMap,
    (params, id): (&Params, &UploadId),
) -> Result<NewUpload, UploadFailure> {
    // Parts that are never joined would each become an attachment.
    if headers.contains_key(CONCAT) {
        return Err(ApiError::bad_request("Uploads in parts are not joined here.").into());
    }
    if headers.contains_key(DEFER_LENGTH) {
        return Err(ApiError::bad_request("Upload-Length must be known.").into());
    }
    let length = text(headers, LENGTH)
        .ok_or_else(|| ApiError::bad_request("An upload needs an Upload-Length."))?;
    let length = tus::number("Upload-Length", length).map_err(DocumentError::from)?;
    if length > front.attachment_bytes {
        let message = format!(
            "An attachment has at most {} bytes.",
            front.attachment_bytes
        );
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message).into());
    }
    let written = text(headers, METADATA).unwrap_or_default();
    let metadata = tus::metadata(written).map_err(DocumentError::from)?;
    // tus asks for no name, and some clients send none.
    let name = match metadata.file_name.filter(|name| !name.is_empty()) {
        Some(name) => FileName::parse(&name)?,
        None => FileName::of_upload(id),
    };
    Ok(NewUpload {
        place: place(params)?,
        name,
        media_type: metadata.media_type.unwrap_or_default(),
        length,
        metadata: written.to_owned(),
    })
}

fn place(params: &Params) -> Result<Place, DocumentError> {
    Ok(Place {
        database: DatabaseName::parse(params.get("database"))?,
        unid: Unid::parse(params.get("unid"))?,
        item: ItemName::parse(params.get("item"))?,
    })
}

async fn head(State(front): State<Tus>, owner: Owner, params: Params, headers: HeaderMap) -> Reply {
    check_version(&headers)?;
    let id = UploadId::parse(params.get("upload"))?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let record = front
        .service
        .store()
        .read(|snapshot| documents::upload(snapshot, owner.mailbox(), &id))?;
    let offset = match record.finished {
        Some(_) => record.length,
        None => {
            let offset = claimed
                .resume(front.disk(), &id, record.length)
                .await?
                .offset();
            if offset == record.length {
                // All of it is there: a crash, or a full disk, came before the attachment.
                finish(&front, &owner, &id, claimed, false).await?;
            }
            offset
        }
    };
    let response = with(status(StatusCode::OK), CACHE_CONTROL, "no-store");
    let response = with(response, LENGTH, &record.length.to_string());
    let response = match record.metadata.is_empty() {
        true => response,
        false => with(response, METADATA, &record.metadata),
    };
    // To ask is no activity: it says what the last chunk said.
    let last = front.content.upload_modified(id.as_str()).map(unix_seconds);
    let active = last.unwrap_or_default().max(record.created);
    Ok(progress(&front, response, (offset, record.length), active))
}

async fn append(State(front): State<Tus>, owner: Owner, params: Params, request: Request) -> Reply {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    check_version(headers)?;
    check_chunk_type(headers)?;
    let offset = text(headers, OFFSET)
        .ok_or_else(|| ApiError::bad_request("A chunk needs an Upload-Offset."))?;
    let offset = tus::number("Upload-Offset", offset).map_err(DocumentError::from)?;
    let id = UploadId::parse(params.get("upload"))?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let record = front
        .service
        .store()
        .read(|snapshot| documents::upload(snapshot, owner.mailbox(), &id))?;
    let length = record.length;
    let at = match record.finished {
        Some(_) => length,
        None => claimed.resume(front.disk(), &id, length).await?.offset(),
    };
    if offset != at {
        let message = format!("The upload is at offset {at}.");
        return Err(ApiError::new(StatusCode::CONFLICT, message).into());
    }
    let outcome = match record.finished {
        Some(_) => Outcome { offset: at },
        None => receive(&front, &owner, &id, claimed, (headers, body)).await?,
    };
    let response = status(StatusCode::NO_CONTENT);
    Ok(progress(
        &front,
        response,
        (outcome.offset, length),
        front.service.now_s(),
    ))
}

async fn remove(
    State(front): State<Tus>,
    owner: Owner,
    params: Params,
    headers: HeaderMap,
) -> Reply {
    check_version(&headers)?;
    let id = UploadId::parse(params.get("upload"))?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let bits = front.service.random_bits();
    let give_up = |context: &Context<'_>| documents::give_up(context, &id);
    groupware_service::documents::change(
        &front.service,
        owner.caller(),
        (owner.who(), bits),
        give_up,
    )
    .await?;
    drop(claimed.take());
    let content = front.content.clone();
    let removed = move || content.remove_upload(id.as_str());
    front.streams.disk.work(removed).await??;
    Ok(status(StatusCode::NO_CONTENT))
}

/// For clients, or proxies, that know no other methods than GET and POST.
async fn overridden(
    front: State<Tus>,
    owner: Owner,
    params: Params,
    MethodOverride(method): MethodOverride,
    request: Request,
) -> Reply {
    match method {
        Some(Method::PATCH) => append(front, owner, params, request).await,
        Some(Method::DELETE) => {
            let headers = request.headers().clone();
            remove(front, owner, params, headers).await
        }
        Some(Method::HEAD) => {
            let headers = request.headers().clone();
            head(front, owner, params, headers).await
        }
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "X-HTTP-Method-Override is PATCH, DELETE, or HEAD here.",
        )
        .into()),
    }
}

/// Claims an upload that there is a record of: names that were made up shall take no place of uploads
/// that are at hand. The record is to be read again once nobody else changes it.
async fn claim(front: &Tus, owner: &Owner, id: &UploadId) -> Result<Claimed, UploadFailure> {
    let key = key(owner.mailbox(), id);
    if !front.uploads.is_at_hand(&key) {
        let find = |snapshot: &dyn Snapshot| documents::upload(snapshot, owner.mailbox(), id);
        front.service.store().read(find)?;
    }
    Ok(front.uploads.claim(owner.caller(), &key).await?)
}

fn check_version(headers: &HeaderMap) -> Result<(), UploadFailure> {
    match text(headers, RESUMABLE) {
        Some(tus::VERSION) => Ok(()),
        _ => {
            let message = "Tus-Resumable must be 1.0.0.";
            let error = ApiError::new(StatusCode::PRECONDITION_FAILED, message);
            let version = HeaderName::from_static("tus-version");
            Err(error.header(version, tus::VERSION).into())
        }
    }
}

fn check_chunk_type(headers: &HeaderMap) -> Result<(), UploadFailure> {
    match text(headers, CONTENT_TYPE) {
        Some(media_type) if media_type.trim().eq_ignore_ascii_case(tus::CHUNK_TYPE) => Ok(()),
        _ => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "A chunk is application/offset+octet-stream.",
        )
        .into()),
    }
}

/// Says how far the upload is, and until when it may go on if nothing comes after the last activity,
/// in seconds since 1970.
fn progress(
    front: &Tus,
    response: Response,
    (offset, length): (u64, u64),
    active: i64,
) -> Response {
    let response = with(response, OFFSET, &offset.to_string());
    if offset == length {
        return response;
    }
    let expires = active.saturating_add(front.lifetime_s);
    with(response, EXPIRES, &http_date(expires))
}

/// A file's time as records have it.
fn unix_seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use groupware_content::ContentStore;
    use groupware_http::Streams;
    use groupware_people::{Account, Credentials, UserName};
    use groupware_service::{Caller, Service, Settings};
    use groupware_store::{Store, StoreOptions};

    use super::*;

    #[tokio::test]
    async fn uploads_that_are_made_up_take_no_place() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let front = Tus {
            service: Service::start(store, Settings::default()).unwrap(),
            content: ContentStore::scratch().unwrap(),
            streams: Arc::new(Streams::new()),
            uploads: Arc::default(),
            attachment_bytes: 1,
            body_within: Duration::ZERO,
            lifetime_s: 1,
        };
        let name = UserName::parse("ada").unwrap();
        let account = Account::new(name, 0, Credentials::default());
        let owner = Owner::of(&account, Caller::internal());
        let id = UploadId::from_bits(7);
        assert!(claim(&front, &owner, &id).await.is_err());
        assert!(!front.uploads.is_at_hand(&key(owner.mailbox(), &id)));
    }
}
