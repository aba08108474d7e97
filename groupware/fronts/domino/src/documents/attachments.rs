//! Attached files: uploaded directly or in a form, read in full or in part, streamed both ways.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{self as method, get};
use groupware_content::{Content, Pin, ReadAt, Whole};
use groupware_documents::{self as documents, Attachment, FileName, ItemPath, NewAttachment, Seen};
use groupware_http::reply::{nothing, status, with};
use groupware_http::{
    ApiError, Buffer, FileBody, Flow, Gate, Inflow, Pieces, StreamSlot, Streamed,
    header_text as text,
};
use groupware_proto_http::{ByteRange, Event, Multipart, PartHead, Ranged, boundary};
use groupware_service::documents::room;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, IF_RANGE, LOCATION, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};

use super::params::{self, DocumentParams};
use super::reply;
use super::user::{DatabaseUser, change};
use crate::failure::{DominoFailure, Reply};
use crate::front::Domino;
use crate::reservations::Share;

const BYTES: &str = "application/octet-stream";
/// Most bytes of a form's fields other than files.
const OF_NO_FILE_BYTES: usize = 1 << 20;

/// Two of these routes receive files of any size: their bodies are streamed, within the bounds and
/// at the pace that this module enforces.
pub(crate) fn routes(gate: &Gate) -> Router<Domino> {
    let at = |rest: &str| {
        format!("/docs/{{mailbox}}/{{database}}/api/data/documents/unid/{{unid}}/{{item}}{rest}")
    };
    let file = get(read)
        .patch(rename)
        .layer(gate.usual())
        .merge(method::put(put).layer(gate.streamed()))
        .merge(method::delete(remove).layer(gate.usual()));
    Router::new()
        .route(&at(""), method::post(attach_form).layer(gate.streamed()))
        .route(&at("/{file}"), file)
}

/// Receives a whole file as it is.
async fn put(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    request: Request,
) -> Reply {
    let (place, name) = (params.place()?, params.file()?);
    let (parts, body) = request.into_parts();
    let mut inbox = Inbox::open(&domino, &user, &place, (&parts.headers, body)).await?;
    let media_type = text(&parts.headers, CONTENT_TYPE)
        .unwrap_or(BYTES)
        .to_owned();
    let length = inbox.announced;
    inbox.begin(name, media_type, length).await?;
    loop {
        let flow = inbox.body.fill().await;
        if let Some(buffer) = inbox.body.take() {
            let count = buffer.bytes().len();
            inbox.append(buffer, count).await?;
        }
        match flow {
            Flow::More => {}
            Flow::Ended => break,
            Flow::Slow | Flow::Broken => return Err(broken(flow).into()),
        }
    }
    inbox.end_file().await?;
    let seen = params::seen(&parts.headers)?;
    let (path, all_new) = inbox.attach_all(&user, &place, &seen).await?;
    Ok(match all_new {
        true => reply::created(&path),
        false => nothing(),
    })
}

/// Receives the files of a form, all or none.
async fn attach_form(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    request: Request,
) -> Reply {
    let place = params.place()?;
    let at = (&place.database, &place.unid);
    domino
        .service
        .store()
        .read(|snapshot| documents::check_change(snapshot, user.who(), at))?;
    let (parts, body) = request.into_parts();
    let boundary = text(&parts.headers, CONTENT_TYPE).and_then(boundary);
    let boundary = boundary.ok_or_else(|| {
        ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Files are sent as multipart/form-data.",
        )
    })?;
    let mut inbox = Inbox::open(&domino, &user, &place, (&parts.headers, body)).await?;
    inbox.read_form(Multipart::new(&boundary)).await?;
    if inbox.files.is_empty() {
        return Err(ApiError::bad_request("The form has no file.").into());
    }
    let seen = Seen::default();
    let (path, _) = inbox.attach_all(&user, &place, &seen).await?;
    Ok(reply::created(&path))
}

/// The properties of an attachment that can be changed without its content.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Renaming {
    name: String,
}

/// Renames an attachment: `{"name": "report.pdf"}`. The answer has its new path.
async fn rename(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let (place, name) = (params.place()?, params.file()?);
    let seen = params::seen(&headers)?;
    let Renaming { name: to } = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("The body can't be read: {error}.")))?;
    let to = FileName::parse(&to)?;
    change(&domino, &user, |context| {
        documents::rename(context, &place, (&name, &to), &seen)
    })
    .await?;
    let path = documents::attachment_path(user.mailbox(), &place, Some(&to));
    Ok(with(nothing(), LOCATION, &path))
}

/// Files that are being received.
struct Inbox {
    domino: Domino,
    body: Inflow,
    /// The announced length of the body, if any.
    announced: Option<u64>,
    /// Bytes that may still be received.
    room: u64,
    /// Reserved of the owner's space: all announced bytes, else those received.
    share: Share,
    /// The owner's free space at the start of the body; checked again at its end.
    owner_room: u64,
    open: Option<(FileName, String, Whole)>,
    files: Vec<(NewAttachment, Pin)>,
    place: ItemPath,
    _stream: StreamSlot,
}

impl Inbox {
    /// Rejects requests that are known to fail before any byte is received.
    async fn open(
        domino: &Domino,
        user: &DatabaseUser,
        place: &ItemPath,
        (headers, body): (&HeaderMap, Body),
    ) -> Result<Self, DominoFailure> {
        let announced = text(headers, CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let at = (&place.database, &place.unid);
        let store = domino.service.store();
        store.read(|snapshot| documents::check_change(snapshot, user.who(), at))?;
        if announced.is_some_and(|length: u64| length > domino.attachment_bytes) {
            return Err(too_large(domino.attachment_bytes).into());
        }
        let owner_room = room(&domino.service, user.mailbox())?;
        let mut share = domino.set_aside.share(user.mailbox());
        if !share.grow(announced.unwrap_or_default(), owner_room) {
            return Err(no_room().into());
        }
        let buffers = &domino.streams.incoming;
        Ok(Self {
            domino: domino.clone(),
            body: Inflow::new(body, buffers, domino.body_within, user.caller()),
            announced,
            room: domino.attachment_bytes,
            share,
            owner_room,
            open: None,
            files: Vec::new(),
            place: place.clone(),
            _stream: domino.streams.slot(user.caller(), user.who().user).await?,
        })
    }

    async fn read_form(&mut self, mut form: Multipart) -> Result<(), DominoFailure> {
        let (mut skipping, mut flow) = (false, Flow::More);
        let mut of_no_file = 0;
        let mut buffer: Option<Buffer> = None;
        loop {
            let bytes = buffer.as_ref().map_or(&[][..], Buffer::bytes);
            let taken = match form.next(bytes).map_err(ApiError::from)? {
                Event::More => {
                    if flow != Flow::More {
                        return Err(broken(flow).into());
                    }
                    if let Some(buffer) = buffer.take() {
                        self.body.put_back(buffer);
                    }
                    flow = self.body.fill().await;
                    buffer = self.body.take();
                    continue;
                }
                Event::Skip { taken } => taken,
                Event::Part { taken, head } => {
                    skipping = head.file_name.is_none();
                    if let Some(name) = &head.file_name {
                        let name = FileName::parse(name)?;
                        self.begin(name, media_type(&head), None).await?;
                    }
                    taken
                }
                Event::Content { taken } => {
                    if skipping {
                        of_no_file += taken;
                    } else if let Some(filled) = buffer.take() {
                        buffer = Some(self.append(filled, taken).await?);
                    }
                    taken
                }
                Event::PartEnd { taken } => {
                    self.end_file().await?;
                    taken
                }
                Event::End => return Ok(()),
            };
            if of_no_file > OF_NO_FILE_BYTES {
                let message = "The form has too much in it that is no file.";
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message).into());
            }
            if let Some(buffer) = &mut buffer {
                buffer.drop_front(taken);
            }
        }
    }

    async fn begin(
        &mut self,
        name: FileName,
        media_type: String,
        length: Option<u64>,
    ) -> Result<(), DominoFailure> {
        let (content, id) = (
            self.domino.content.clone(),
            self.domino.service.random_bits(),
        );
        let create = move || content.create_whole(&format!("w-{id:032x}"), length);
        let whole = self.domino.streams.disk.work(create).await??;
        self.open = Some((name, media_type, whole));
        Ok(())
    }

    /// Appends the first bytes of a buffer to the file.
    async fn append(&mut self, buffer: Buffer, count: usize) -> Result<Buffer, DominoFailure> {
        let left = self.room.checked_sub(count as u64);
        self.room = left.ok_or_else(|| too_large(self.domino.attachment_bytes))?;
        if self.announced.is_none() {
            let has_room = self.share.grow(count as u64, self.owner_room);
            has_room.then_some(()).ok_or_else(no_room)?;
        }
        let Some((name, media_type, mut whole)) = self.open.take() else {
            return Ok(buffer);
        };
        let append = move || {
            whole.append(&buffer.bytes()[..count])?;
            Ok::<_, groupware_content::ContentError>((whole, buffer))
        };
        let (whole, buffer) = self.domino.streams.disk.work(append).await??;
        self.open = Some((name, media_type, whole));
        Ok(buffer)
    }

    async fn end_file(&mut self) -> Result<(), DominoFailure> {
        let Some((name, media_type, whole)) = self.open.take() else {
            return Ok(());
        };
        let finish = move || {
            let bytes = whole.written();
            whole.finish().map(|pin| (bytes, pin))
        };
        let (bytes, pin) = self.domino.streams.disk.work(finish).await??;
        let file = NewAttachment {
            item: self.place.item.clone(),
            name,
            media_type,
            bytes,
            hash: pin.hash(),
            placed: pin.placed(),
        };
        self.files.push((file, pin));
        Ok(())
    }

    /// Commits the attachments; returns the path of the first one, and whether all are new.
    async fn attach_all(
        self,
        user: &DatabaseUser,
        place: &ItemPath,
        seen: &Seen,
    ) -> Result<(String, bool), DominoFailure> {
        // The pins are held until the commit has completed.
        let (files, _pins): (Vec<_>, Vec<_>) = self.files.into_iter().unzip();
        let at = (&place.database, &place.unid);
        let all_new = change(&self.domino, user, |context| {
            documents::attach(context, at, &files, seen)
        })
        .await?;
        let first = files.first().map(|file| &file.name);
        Ok((
            documents::attachment_path(user.mailbox(), place, first),
            all_new,
        ))
    }
}

fn media_type(head: &PartHead) -> String {
    head.media_type.clone().unwrap_or_else(|| BYTES.to_owned())
}

async fn remove(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
) -> Reply {
    let (place, name) = (params.place()?, params.file()?);
    let seen = params::seen(&headers)?;
    change(&domino, &user, |context| {
        documents::detach(context, &place, &name, &seen)
    })
    .await?;
    Ok(nothing())
}

/// Sends a file, or a range of it. A browser never shows it as a page of this server: its sender
/// chose the content.
async fn read(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
) -> Reply {
    let (place, name) = (params.place()?, params.file()?);
    let attachment = domino
        .service
        .store()
        .read(|snapshot| documents::attachment(snapshot, user.who(), &place, &name))?;
    let (tag, at) = (
        attachment.tag(),
        (attachment.modified, domino.service.now_s()),
    );
    if params::seen(&headers)?.has(&tag) {
        let response = status(StatusCode::NOT_MODIFIED);
        return Ok(reply::versioned(response, &tag, at));
    }
    // A range is useful only to a client with the rest of the same content.
    let is_same = text(&headers, IF_RANGE).is_none_or(|it| it.trim() == tag);
    let range = match text(&headers, RANGE).filter(|_| is_same) {
        Some(range) => Ranged::parse(range, attachment.bytes),
        None => Ranged::All,
    };
    let part = match range {
        Ranged::Unsatisfiable => {
            let error = ApiError::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "The attachment has no such bytes.",
            );
            let response = axum::response::IntoResponse::into_response(error);
            let range = format!("bytes */{}", attachment.bytes);
            return Ok(with(response, CONTENT_RANGE, &range));
        }
        Ranged::Part(part) => Some(part),
        Ranged::All => None,
    };
    let body = open(&domino, &user, &attachment, part).await?;
    Ok(reply::versioned(
        describe(body, &attachment, part),
        &tag,
        at,
    ))
}

async fn open(
    domino: &Domino,
    user: &DatabaseUser,
    attachment: &Attachment,
    part: Option<ByteRange>,
) -> Result<FileBody, DominoFailure> {
    let slot = domino.streams.slot(user.caller(), user.who().user).await?;
    let (content, hash) = (domino.content.clone(), attachment.hash);
    let span = part.map_or((0, attachment.bytes), |part| (part.first, part.length()));
    let content = domino
        .streams
        .disk
        .work(move || content.content(hash, span))
        .await??;
    let content = Opened(content);
    Ok(FileBody::new(
        Arc::clone(&domino.streams),
        content,
        span,
        slot,
    ))
}

/// Content to be sent, from any storage.
struct Opened(Content);

impl Pieces for Opened {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        ReadAt::read_exact_at(&self.0, buffer, at)
    }
}

fn describe(body: FileBody, attachment: &Attachment, part: Option<ByteRange>) -> Response {
    let mut response = Response::new(Body::new(body));
    response.extensions_mut().insert(Streamed);
    if let Some(part) = part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {}-{}/{}", part.first, part.last, attachment.bytes);
        response = with(response, CONTENT_RANGE, &range);
    }
    let name = groupware_text::encoded(&attachment.name);
    let disposition = format!("attachment; filename*=UTF-8''{name}");
    for (header, value) in [
        (CONTENT_TYPE, &*attachment.media_type),
        (CONTENT_DISPOSITION, &*disposition),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "sandbox"),
        (ACCEPT_RANGES, "bytes"),
    ] {
        response = with(response, header, value);
    }
    response
}

fn broken(flow: Flow) -> ApiError {
    match flow {
        Flow::Slow => ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "The body took too long to arrive.",
        ),
        _ => ApiError::bad_request("The body could not be read."),
    }
}

fn too_large(most: u64) -> ApiError {
    let message = format!("An attachment has at most {most} bytes.");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn no_room() -> ApiError {
    ApiError::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "This would take more than your share of the disk.",
    )
}
