//! Uploads in chunks by tus 1.0 (core, creation, creation-with-upload, termination, checksum,
//! expiration), see <https://tus.io/protocols/resumable-upload>.
//!
//! An upload is created at `/tus/{mailbox}/{database}/{unid}/{item}`, where it becomes an attachment
//! once it is whole; then it goes on at `/tus/{mailbox}/{upload}`. Its file's name is `filename` in
//! `Upload-Metadata`, its media type `filetype`. A chunk is acknowledged once it is durable.

mod open;
mod receive;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{options, post};
use groupware_documents::{
    self as documents, DocumentError, FileName, NewUpload, UploadId, http_date, tus,
};
use groupware_store::Snapshot;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use self::open::Claimed;
pub(crate) use self::open::{AT_HAND, OpenUploads, key};
use self::receive::{Outcome, receive};
use crate::documents::{MethodOverride, Params, change, change_with};
use crate::error::ApiError;
use crate::{AppState, Owner};

const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
const METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
const EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");

type Reply = Result<Response, ApiError>;

/// The routes under `/tus/{mailbox}`.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route(
            "/tus/{mailbox}/{database}/{unid}/{item}",
            post(create).options(capabilities),
        )
        .route(
            "/tus/{mailbox}/{upload}",
            options(capabilities)
                .head(head)
                .patch(append)
                .delete(remove)
                .post(overridden),
        )
        .layer(axum::middleware::map_response(speak))
}

/// Every answer says which version it speaks.
async fn speak(mut response: Response) -> Response {
    let version = HeaderValue::from_static(tus::VERSION);
    response.headers_mut().insert(RESUMABLE, version);
    response
}

/// What this server can do, for whoever asks: no secret.
async fn capabilities(State(state): State<AppState>) -> Response {
    let response = status(StatusCode::NO_CONTENT);
    let most = state.settings.attachment_bytes.to_string();
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

async fn create(
    State(state): State<AppState>,
    owner: Owner,
    params: Params,
    request: Request,
) -> Reply {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    check_version(headers)?;
    let new = new_upload(&state, headers, &params)?;
    let has_chunk = text(headers, CONTENT_TYPE).is_some();
    if has_chunk {
        check_chunk_type(headers)?;
    }
    let (bits, length) = (state.random_bits(), new.length);
    let id = UploadId::from_bits(bits);
    let mut claimed = state.uploads.claim(&key(owner.mailbox(), &id)).await?;
    make(&state, &owner, &mut claimed, (&id, bits, &new)).await?;
    let outcome = match has_chunk || length == 0 {
        true => receive(&state, &owner, &id, claimed, (headers, body)).await?,
        false => Outcome { offset: 0 },
    };
    let path = format!("/tus/{}/{id}", owner.mailbox());
    let response = with(status(StatusCode::CREATED), LOCATION, &path);
    Ok(progress(&state, response, (outcome.offset, length)))
}

/// The file first, so that a full disk is told at once, then the record: a file without one is
/// swept.
async fn make(
    state: &AppState,
    owner: &Owner,
    claimed: &mut Claimed,
    (id, bits, new): (&UploadId, u128, &NewUpload),
) -> Result<(), ApiError> {
    // Who has no room, or no such document, is told before the disk has any work.
    state.store().read(|snapshot| {
        let place = (&new.place.database, &new.place.unid);
        documents::document(snapshot, owner.who(), place, Some(&[])).map(drop)
    })?;
    let (content, name, length) = (state.content.clone(), id.to_string(), new.length);
    let room = state
        .store()
        .read(|snapshot| documents::room(snapshot, owner.mailbox(), state.settings.quota_bytes))?;
    if room < length {
        let message = "This would take more than your share of the disk.";
        return Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message));
    }
    let create = move || content.create_upload(&name, length);
    let upload = state.streams.disk.work(create).await??;
    let begun = change_with(state, owner.who(), bits, |context| {
        documents::begin(context, new)
    });
    if let Err(error) = begun.await {
        let (content, name) = (state.content.clone(), id.to_string());
        let removed = state
            .streams
            .disk
            .work(move || content.remove_upload(&name));
        // The sweep gets what this doesn't.
        let _ = removed.await;
        return Err(error);
    }
    claimed.put(upload);
    Ok(())
}

fn new_upload(
    state: &AppState,
    headers: &HeaderMap,
    params: &Params,
) -> Result<NewUpload, ApiError> {
    if headers.contains_key(DEFER_LENGTH) {
        return Err(ApiError::bad_request("Upload-Length must be known."));
    }
    let length = text(headers, LENGTH)
        .ok_or_else(|| ApiError::bad_request("An upload needs an Upload-Length."))?;
    let length = tus::number("Upload-Length", length).map_err(DocumentError::from)?;
    if length > state.settings.attachment_bytes {
        let message = format!(
            "An attachment has at most {} bytes.",
            state.settings.attachment_bytes
        );
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let written = text(headers, METADATA).unwrap_or_default();
    let metadata = tus::metadata(written).map_err(DocumentError::from)?;
    let name = metadata.file_name.ok_or_else(|| {
        ApiError::bad_request("Upload-Metadata has no filename to attach the upload under.")
    })?;
    Ok(NewUpload {
        place: params.place()?,
        name: FileName::parse(&name)?,
        media_type: metadata.media_type.unwrap_or_default(),
        length,
        metadata: written.to_owned(),
    })
}

async fn head(
    State(state): State<AppState>,
    owner: Owner,
    params: Params,
    headers: HeaderMap,
) -> Reply {
    check_version(&headers)?;
    let id = params.upload()?;
    let mut claimed = claim(&state, &owner, &id).await?;
    let record = state
        .store()
        .read(|snapshot| documents::upload(snapshot, owner.mailbox(), &id))?;
    let offset = match record.finished {
        Some(_) => record.length,
        None => {
            let offset = claimed.resume(&state, &id, record.length).await?.offset();
            if offset == record.length {
                // All of it is there: a crash, or a full disk, came before the attachment.
                receive::finish(&state, &owner, &id, claimed, false).await?;
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
    Ok(progress(&state, response, (offset, record.length)))
}

async fn append(
    State(state): State<AppState>,
    owner: Owner,
    params: Params,
    request: Request,
) -> Reply {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    check_version(headers)?;
    check_chunk_type(headers)?;
    let offset = text(headers, OFFSET)
        .ok_or_else(|| ApiError::bad_request("A chunk needs an Upload-Offset."))?;
    let offset = tus::number("Upload-Offset", offset).map_err(DocumentError::from)?;
    let id = params.upload()?;
    let mut claimed = claim(&state, &owner, &id).await?;
    let record = state
        .store()
        .read(|snapshot| documents::upload(snapshot, owner.mailbox(), &id))?;
    let length = record.length;
    let at = match record.finished {
        Some(_) => length,
        None => claimed.resume(&state, &id, length).await?.offset(),
    };
    if offset != at {
        let message = format!("The upload is at offset {at}.");
        return Err(ApiError::new(StatusCode::CONFLICT, message));
    }
    let outcome = match record.finished {
        Some(_) => Outcome { offset: at },
        None => receive(&state, &owner, &id, claimed, (headers, body)).await?,
    };
    let response = status(StatusCode::NO_CONTENT);
    Ok(progress(&state, response, (outcome.offset, length)))
}

async fn remove(
    State(state): State<AppState>,
    owner: Owner,
    params: Params,
    headers: HeaderMap,
) -> Reply {
    check_version(&headers)?;
    let id = params.upload()?;
    let mut claimed = claim(&state, &owner, &id).await?;
    change(&state, owner.who(), |context| {
        documents::give_up(context, &id)
    })
    .await?;
    drop(claimed.take());
    let content = state.content.clone();
    let removed = move || content.remove_upload(id.as_str());
    state.streams.disk.work(removed).await??;
    Ok(status(StatusCode::NO_CONTENT))
}

/// For clients, or proxies, that know no other methods than GET and POST.
async fn overridden(
    state: State<AppState>,
    owner: Owner,
    params: Params,
    MethodOverride(method): MethodOverride,
    request: Request,
) -> Reply {
    match method {
        Some(Method::PATCH) => append(state, owner, params, request).await,
        Some(Method::DELETE) => {
            let headers = request.headers().clone();
            remove(state, owner, params, headers).await
        }
        Some(Method::HEAD) => {
            let headers = request.headers().clone();
            head(state, owner, params, headers).await
        }
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "X-HTTP-Method-Override is PATCH, DELETE, or HEAD here.",
        )),
    }
}

/// Claims an upload that there is a record of: names that were made up shall take no place of uploads
/// that are at hand. The record is to be read again once nobody else changes it.
async fn claim(state: &AppState, owner: &Owner, id: &UploadId) -> Result<Claimed, ApiError> {
    let key = key(owner.mailbox(), id);
    if !state.uploads.is_at_hand(&key) {
        let find = |snapshot: &dyn Snapshot| documents::upload(snapshot, owner.mailbox(), id);
        state.store().read(find)?;
    }
    state.uploads.claim(&key).await
}

fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    match text(headers, RESUMABLE) {
        Some(tus::VERSION) => Ok(()),
        _ => {
            let message = "Tus-Resumable must be 1.0.0.";
            let error = ApiError::new(StatusCode::PRECONDITION_FAILED, message);
            Err(error.header(HeaderName::from_static("tus-version"), tus::VERSION))
        }
    }
}

fn check_chunk_type(headers: &HeaderMap) -> Result<(), ApiError> {
    match text(headers, CONTENT_TYPE) {
        Some(media_type) if media_type.trim().eq_ignore_ascii_case(tus::CHUNK_TYPE) => Ok(()),
        _ => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "A chunk is application/offset+octet-stream.",
        )),
    }
}

/// Says how far the upload is, and until when it may go on.
fn progress(state: &AppState, response: Response, (offset, length): (u64, u64)) -> Response {
    let response = with(response, OFFSET, &offset.to_string());
    if offset == length {
        return response;
    }
    let expires = state.now_s() + state.settings.upload_lifetime_s;
    with(response, EXPIRES, &http_date(expires))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = status;
    response
}

fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use groupware_store::{Store, StoreOptions};

    use super::*;
    use crate::accounts::{Account, Credentials, UserName};

    #[tokio::test]
    async fn uploads_that_are_made_up_take_no_place() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let state = crate::server::state_for_tests(store);
        let name = UserName::parse("ada").unwrap();
        let owner = Owner::of(&Account::new(name, 0, Credentials::default()));
        let id = UploadId::from_bits(7);
        assert!(claim(&state, &owner, &id).await.is_err());
        assert!(!state.uploads.is_at_hand(&key(owner.mailbox(), &id)));
    }
}
