//! The routes under `/tus/{mailbox}`.

use std::time::SystemTime;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{MethodRouter, delete, options, patch, post};
use groupware_documents::{
    self as documents, Context, DatabaseName, DocumentError, FileName, ItemName, ItemPath,
    NewUpload, Unid, Upload, UploadId,
};
use groupware_http::reply::{status, with};
use groupware_http::{ApiError, Gate, MethodOverride, Owner, Params, header_text as text};
use groupware_proto_http::http_date;
use groupware_proto_http::tus::{self, Concat};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::failure::UploadFailure;
use crate::front::Tus;
use crate::headers::{CONCAT, DEFER_LENGTH, EXPIRES, LENGTH, METADATA, OFFSET, RESUMABLE};
use crate::join::join;
use crate::length::{STEP_BYTES, make_room, settle_length};
use crate::open::{Claimed, key};
use crate::receive::{Ends, Outcome, finish, receive};
use crate::segments::{check_there, remove_later};
use crate::upload_request::UploadRequest;
use crate::work::{
    change, check_length, check_place, check_room, claim, create_file, offset, record, remove_file,
    resume,
};

type Reply = Result<Response, UploadFailure>;

/// The routes under `/tus/{mailbox}`, behind the gate. Chunks are streamed, within the bounds and
/// at the pace that the receiver enforces.
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

/// Adds the protocol version to every answer.
async fn speak(mut response: Response) -> Response {
    let version = HeaderValue::from_static(tus::VERSION);
    response.headers_mut().insert(RESUMABLE, version);
    response
}

/// Returns the server's capabilities, for any client: they are no secret.
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
    check_version(request.headers())?;
    let concat = text(request.headers(), CONCAT).map(tus::concat).transpose();
    let concat = concat.map_err(ApiError::from)?;
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let bits = front.service.random_bits();
    let id = UploadId::from_bits(bits);
    let path = format!("/tus/{}/{id}", owner.mailbox());
    let response = with(status(StatusCode::CREATED), LOCATION, &path);
    if let Some(Concat::Final(names)) = concat {
        if headers.contains_key(LENGTH) || headers.contains_key(DEFER_LENGTH) {
            // tus 1.0.0, Concatenation: a final upload has the length of its parts.
            let message =
                "A final upload has the length of its parts: it is sent without Upload-Length.";
            return Err(ApiError::bad_request(message).into());
        }
        let whole = asked_for(&front, headers, (&params, &id), (0, None))?;
        let length = join(&front, &owner, (&id, bits, whole), &names).await?;
        return Ok(progress(&front, response, (length, Some(length)), 0));
    }
    let lengths = lengths(&front, headers)?;
    let new = asked_for(&front, headers, (&params, &id), lengths)?;
    let has_chunk = text(headers, CONTENT_TYPE).is_some();
    if has_chunk {
        check_chunk_type(headers)?;
    }
    let mut claimed = front
        .uploads
        .claim(owner.caller(), &key(owner.mailbox(), &id))
        .await?;
    make(&front, &owner, &mut claimed, (&id, bits, &new)).await?;
    let is_empty = new.deferred.is_none() && new.length == 0;
    let ends = match new.deferred.is_some() || new.concat.is_some() {
        true => Ends::Open,
        false => Ends::AsFile,
    };
    let outcome = match has_chunk || is_empty {
        true => {
            if new.deferred.is_some() {
                make_room(&front, &owner, &id, (&mut claimed, new.length), headers).await?;
            }
            receive(&front, &owner, (&id, ends), claimed, (headers, body)).await?
        }
        false => Outcome { offset: 0 },
    };
    let known = new.deferred.is_none().then_some(new.length);
    let now = front.service.now_s();
    Ok(progress(&front, response, (outcome.offset, known), now))
}

/// Creates the file first, so that a full disk is reported at once, then the record: the sweep
/// removes a file without one.
async fn make(
    front: &Tus,
    owner: &Owner,
    claimed: &mut Claimed,
    (id, bits, new): (&UploadId, u128, &NewUpload),
) -> Result<(), UploadFailure> {
    // Missing room, or a missing document, is reported before any disk work.
    check_place(front, owner, new)?;
    check_room(front, owner, new.length)?;
    let laid_out = new.deferred.unwrap_or(new.length);
    let upload = create_file(front, owner, id, (laid_out, new.length)).await?;
    let begin = |context: &Context<'_>| documents::begin(context, new);
    if let Err(error) = change(front, owner, bits, begin).await {
        // The sweep removes what this can't.
        let _ = remove_file(front, id).await;
        return Err(error.into());
    }
    claimed.put(upload);
    Ok(())
}

/// Returns the requested length of an upload; for an unknown length, the initial reservation and
/// the maximum.
fn lengths(front: &Tus, headers: &HeaderMap) -> Result<(u64, Option<u64>), UploadFailure> {
    let is_deferred = match text(headers, DEFER_LENGTH).map(str::trim) {
        None => false,
        Some("1") => true,
        Some(_) => return Err(ApiError::bad_request("Upload-Defer-Length is 1.").into()),
    };
    match text(headers, LENGTH) {
        None if is_deferred => {
            let quota_bytes = front.service.quota_bytes();
            let most = front.attachment_bytes.min(quota_bytes);
            Ok((STEP_BYTES.min(most), Some(most)))
        }
        Some(length) if !is_deferred => {
            let length = tus::number("Upload-Length", length).map_err(ApiError::from)?;
            check_length(front, length)?;
            Ok((length, None))
        }
        _ => {
            let message = "An upload needs an Upload-Length, or Upload-Defer-Length: 1.";
            Err(ApiError::bad_request(message).into())
        }
    }
}

fn asked_for(
    front: &Tus,
    headers: &HeaderMap,
    (params, id): (&Params, &UploadId),
    (length, deferred): (u64, Option<u64>),
) -> Result<NewUpload, UploadFailure> {
    let written = text(headers, METADATA).unwrap_or_default();
    let metadata = tus::metadata(written).map_err(ApiError::from)?;
    // tus requires no name, and some clients send none.
    let name = match metadata.file_name.filter(|name| !name.is_empty()) {
        Some(name) => FileName::parse(&name)?,
        None => FileName::of_upload(id),
    };
    Ok(NewUpload {
        place: place(params)?,
        name,
        media_type: metadata.media_type.unwrap_or_default(),
        length,
        deferred,
        concat: text(headers, CONCAT).map(|text| text.trim().to_owned()),
        is_segmented: front.content.segments().is_some(),
        metadata: written.to_owned(),
    })
}

fn place(params: &Params) -> Result<ItemPath, DocumentError> {
    Ok(ItemPath {
        database: DatabaseName::parse(params.get("database"))?,
        unid: Unid::parse(params.get("unid"))?,
        item: ItemName::parse(params.get("item"))?,
    })
}

async fn head(State(front): State<Tus>, asked: UploadRequest) -> Reply {
    let UploadRequest { owner, id, request } = asked;
    check_version(request.headers())?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let record = record(&front, &owner, &id)?;
    let offset = match record.finished {
        Some(_) => record.length,
        None => {
            let offset = offset(&front, &id, (&mut claimed, &record)).await?;
            if offset == record.length && ends(&record) == Ends::AsFile {
                // It is complete: a crash, or a full disk, prevented the attachment.
                claimed = resume(&front, &owner, &id, (claimed, &record)).await?;
                finish(&front, &owner, &id, (claimed, None), false).await?;
            } else if let Some(segments) = front.content.segments() {
                check_there(&front, &owner, &id, (&mut claimed, &record), segments).await?;
            }
            offset
        }
    };
    let mut response = with(status(StatusCode::OK), CACHE_CONTROL, "no-store");
    let known = record.deferred.is_none().then_some(record.length);
    response = match known {
        Some(length) => with(response, LENGTH, &length.to_string()),
        None => with(response, DEFER_LENGTH, "1"),
    };
    if let Some(concat) = &record.concat {
        response = with(response, CONCAT, concat);
    }
    if !record.metadata.is_empty() {
        response = with(response, METADATA, &record.metadata);
    }
    // A query is no activity: the expiry is that of the last chunk.
    let last = front.content.upload_modified(id.as_str()).map(unix_seconds);
    let last = record.written.or(last).unwrap_or_default();
    let active = last.max(record.created);
    Ok(progress(&front, response, (offset, known), active))
}

async fn append(State(front): State<Tus>, asked: UploadRequest) -> Reply {
    let UploadRequest { owner, id, request } = asked;
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    check_version(headers)?;
    check_chunk_type(headers)?;
    let offset = text(headers, OFFSET)
        .ok_or_else(|| ApiError::bad_request("A chunk needs an Upload-Offset."))?;
    let offset = tus::number("Upload-Offset", offset).map_err(ApiError::from)?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let mut record = record(&front, &owner, &id)?;
    if record.is_joined() {
        let message = "This upload is made of parts, and takes no more.";
        return Err(ApiError::new(StatusCode::FORBIDDEN, message).into());
    }
    let at = match record.finished {
        Some(_) => record.length,
        None => self::offset(&front, &id, (&mut claimed, &record)).await?,
    };
    if offset != at {
        let message = format!("The upload is at offset {at}.");
        return Err(ApiError::new(StatusCode::CONFLICT, message).into());
    }
    if record.finished.is_none() {
        claimed = resume(&front, &owner, &id, (claimed, &record)).await?;
    }
    let told = text(headers, LENGTH).map(|length| tus::number("Upload-Length", length));
    if let Some(length) = told.transpose().map_err(ApiError::from)? {
        settle_length(&front, &owner, &id, (&mut claimed, &record), length).await?;
        (record.length, record.deferred) = (length, None);
    } else if record.deferred.is_some() {
        make_room(&front, &owner, &id, (&mut claimed, record.length), headers).await?;
    }
    let outcome = match record.finished {
        Some(_) => Outcome { offset: at },
        None => {
            let chunk = (headers, body);
            receive(&front, &owner, (&id, ends(&record)), claimed, chunk).await?
        }
    };
    let known = record.deferred.is_none().then_some(record.length);
    let (response, now) = (status(StatusCode::NO_CONTENT), front.service.now_s());
    Ok(progress(&front, response, (outcome.offset, known), now))
}

/// The result of an upload once it is complete.
fn ends(record: &Upload) -> Ends {
    match record.is_part() || record.deferred.is_some() {
        true => Ends::Open,
        false => Ends::AsFile,
    }
}

async fn remove(State(front): State<Tus>, asked: UploadRequest) -> Reply {
    let UploadRequest { owner, id, request } = asked;
    check_version(request.headers())?;
    let mut claimed = claim(&front, &owner, &id).await?;
    let bits = front.service.random_bits();
    let give_up = |context: &Context<'_>| documents::give_up(context, &id);
    let segments = change(&front, &owner, bits, give_up).await?;
    drop(claimed.take());
    if let Some(store) = front.content.segments() {
        remove_later(&front.streams, store, segments);
    }
    remove_file(&front, &id).await?;
    Ok(status(StatusCode::NO_CONTENT))
}

/// For clients, or proxies, that only support GET and POST.
async fn overridden(
    front: State<Tus>,
    MethodOverride(method): MethodOverride,
    asked: UploadRequest,
) -> Reply {
    match method {
        Some(Method::PATCH) => append(front, asked).await,
        Some(Method::DELETE) => remove(front, asked).await,
        Some(Method::HEAD) => head(front, asked).await,
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "X-HTTP-Method-Override is PATCH, DELETE, or HEAD here.",
        )
        .into()),
    }
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

/// Adds the upload's offset, its length if known, and its expiry after the last activity, in
/// seconds since 1970.
fn progress(
    front: &Tus,
    response: Response,
    (offset, length): (u64, Option<u64>),
    active: i64,
) -> Response {
    let response = with(response, OFFSET, &offset.to_string());
    if Some(offset) == length {
        return response;
    }
    let expires = active.saturating_add(front.lifetime_s);
    with(response, EXPIRES, &http_date(expires))
}

/// Converts a file's time to that of records.
fn unix_seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests;
