//! Imports and exports the mail of a user: message by message, as it is.
//!
//! ```text
//! GET  /admin/users/{name}/mail                    the folders
//! POST /admin/users/{name}/mail?folder=Work&…      imports a message, as if it had been received earlier
//! GET  /admin/users/{name}/mail/{folder}           its messages, the newest first, a page at a time
//! GET  /admin/users/{name}/mail/{folder}/{id}      a message
//! ```
//! `received` is the time of receipt, in microseconds since 1970; `flags` has letters of Maildir (`S`
//! read, `R` answered, `F` flagged, `P` passed on); `keywords` are separated by blanks; `copy`
//! distinguishes equal messages of one moment. The same message of the same moment is imported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use groupware_http::reply::mime;
use groupware_http::{Admin, ApiError, Query};
use groupware_mail::{self as mail, Folder, MailError, Marks, Stored, Unid, folders, limits};
use groupware_runtime::Caller;
use groupware_service::ChangeError;
use groupware_service::mail::{change_in, change_with_message};
use http::StatusCode;
use serde::Serialize;

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::request::to_the_end;

/// Most messages in one answer.
const MESSAGES: usize = 1000;

pub(crate) fn routes() -> Router<AdminFront> {
    let at = |rest: &str| format!("/admin/users/{{name}}/mail{rest}");
    Router::new()
        .route(&at(""), get(list_folders).post(take))
        .route(&at("/{folder}"), get(list))
        .route(&at("/{folder}/{id}"), get(read))
}

#[derive(Serialize)]
struct FolderList {
    folders: Vec<FolderLine>,
}

#[derive(Serialize)]
struct FolderLine {
    /// Its id in paths.
    id: String,
    /// Its displayed name.
    name: String,
    messages: u64,
}

#[derive(Serialize)]
struct MessageList {
    messages: Vec<MessageLine>,
    /// The start of the next page, for `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct MessageLine {
    id: String,
    received: i64,
    flags: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keywords: Vec<String>,
    bytes: u64,
}

#[derive(Serialize)]
struct Taken {
    id: String,
    /// Whether it was missing before.
    new: bool,
}

fn mailbox(front: &AdminFront, name: &str) -> Result<Arc<str>, AdminFailure> {
    let account = front.service.auth.find(name)?;
    let key = account.map(|account| Arc::clone(account.name.key()));
    key.ok_or_else(|| ApiError::with_status(404, format!("There is no user {name}.")).into())
}

async fn list_folders(
    State(front): State<AdminFront>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    let mailbox = mailbox(&front, &name)?;
    let read: Result<_, MailError> = front.service.store().read(|snapshot| {
        let built_in = Folder::BUILT_IN.into_iter().map(|folder| {
            let title = folder.title().unwrap_or_default();
            (folder, title.to_owned())
        });
        let own = folders::own(snapshot, &mailbox)?.into_iter();
        let own = own.map(|folder| (Folder::Own(folder.unid), folder.name));
        let line = |(folder, name): (Folder, String)| {
            let messages = mail::counts(snapshot, &mailbox, folder)?.messages;
            let id = folder.to_string();
            Ok(FolderLine { id, name, messages })
        };
        built_in.chain(own).map(line).collect()
    });
    Ok(Json(FolderList { folders: read? }).into_response())
}

fn folder(text: &str) -> Result<Folder, ApiError> {
    Folder::parse(text).ok_or_else(|| ApiError::with_status(404, "There is no such folder."))
}

async fn list(
    State(front): State<AdminFront>,
    _: Admin,
    Path((name, of)): Path<(String, String)>,
    query: Query,
) -> Reply {
    let (mailbox, folder) = (mailbox(&front, &name)?, folder(&of)?);
    let bad = || ApiError::bad_request("after is the id of a message.");
    let after = query
        .last("after")
        .map(|id| Unid::parse(id).ok_or_else(bad));
    let after = after.transpose()?;
    let store = front.service.store();
    let read: Result<_, MailError> = store.read(|snapshot| {
        let found = mail::page(snapshot, &mailbox, (folder, after), MESSAGES)?;
        let unids: Vec<Unid> = found.iter().map(|held| held.unid).collect();
        let keywords = mail::keywords_of(snapshot, &mailbox, &unids)?;
        Ok((found, keywords))
    });
    let (found, mut keywords) = read?;
    let next = found.last().filter(|_| found.len() == MESSAGES);
    let next = next.map(|held| held.unid.to_string());
    let line = |held: &Stored| MessageLine {
        id: held.unid.to_string(),
        received: held.unid.received_us(),
        flags: letters(held),
        keywords: keywords.remove(&held.unid).unwrap_or_default(),
        bytes: held.entry.size,
    };
    let messages = found.iter().map(line).collect();
    Ok(Json(MessageList { messages, next }).into_response())
}

fn letters(held: &Stored) -> String {
    let marks = held.entry.marks;
    let letters = [
        (marks.flagged, 'F'),
        (marks.forwarded, 'P'),
        (marks.answered, 'R'),
        (held.entry.read, 'S'),
    ];
    letters
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, letter)| *letter)
        .collect()
}

async fn read(
    State(front): State<AdminFront>,
    _: Admin,
    Path((name, of, id)): Path<(String, String, String)>,
) -> Reply {
    let (mailbox, folder) = (mailbox(&front, &name)?, folder(&of)?);
    let gone = || MailError::not_found("Message", &id);
    let unid = Unid::parse(&id).ok_or_else(gone)?;
    let bytes = front.service.store().read(|snapshot| {
        let held = mail::require(snapshot, &mailbox, unid)?;
        match held.folder == folder {
            true => mail::bytes(snapshot, &mailbox, &held),
            false => Err(gone()),
        }
    })?;
    Ok(mime(bytes))
}

/// The destination and the properties of an imported message.
struct Coming {
    folder: String,
    received_us: i64,
    copy: u64,
    read: bool,
    marks: Marks,
    keywords: Vec<String>,
}

fn coming(query: &Query) -> Result<Coming, AdminFailure> {
    let number = |name: &'static str| {
        let text = query.last(name).unwrap_or("0");
        let bad =
            || ApiError::bad_request(format!("{name} is a whole number that is not negative."));
        text.parse::<u64>().map_err(|_| bad())
    };
    let flags = query.last("flags").unwrap_or_default();
    let has = |letter| flags.contains(letter);
    Ok(Coming {
        folder: query.last("folder").unwrap_or("Inbox").to_owned(),
        received_us: i64::try_from(number("received")?)
            .map_err(|_| ApiError::bad_request("received is too late."))?,
        copy: number("copy")?,
        read: has('S'),
        marks: Marks {
            answered: has('R'),
            flagged: has('F'),
            forwarded: has('P'),
        },
        keywords: mail::parse_keywords(query.last("keywords").unwrap_or_default())?,
    })
}

async fn take(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
    query: Query,
    body: Bytes,
) -> Reply {
    let (mailbox, coming) = (mailbox(&front, &name)?, coming(&query)?);
    if body.len() > limits::MESSAGE_BYTES {
        let message = format!("A message has at most {} bytes.", limits::MESSAGE_BYTES);
        return Err(ApiError::with_status(413, message).into());
    }
    let worker = caller.clone();
    to_the_end(&caller, async move {
        let at = (&worker, &*mailbox);
        let folder = find_or_make(&front, at, &coming.folder).await?;
        let (is_new, bytes) = (Arc::new(AtomicBool::new(false)), body.len());
        let is_new_there = Arc::clone(&is_new);
        let made = change_with_message(&front.service, at, bytes, move |context| {
            let what = (&body, coming.received_us, coming.copy);
            let marks = (coming.read, coming.marks, &coming.keywords[..]);
            let (decision, new) = mail::import_once(context, folder, what, marks)?;
            is_new_there.store(new, Relaxed);
            Ok(decision)
        });
        let id = made.await.map_err(failed)?;
        let new = is_new.load(Relaxed);
        let id = id.map(|unid| unid.to_string()).unwrap_or_default();
        let status = match new {
            true => StatusCode::CREATED,
            false => StatusCode::OK,
        };
        Ok((status, Json(Taken { id, new })).into_response())
    })
    .await
}

async fn find_or_make(
    front: &AdminFront,
    at: (&Caller, &str),
    name: &str,
) -> Result<Folder, AdminFailure> {
    let service = &front.service;
    let found = service
        .store()
        .read(|snapshot| mail::folder_called(snapshot, at.1, name))?;
    if let Some(folder) = found {
        return Ok(folder);
    }
    let made = change_in(service, at, |context| folders::create(context, name));
    let made = made.await.map_err(failed)?;
    let gone = || ApiError::with_status(500, "The folder can't be made.");
    Ok(Folder::Own(made.ok_or_else(gone)?))
}

fn failed(error: ChangeError<MailError>) -> AdminFailure {
    match error {
        ChangeError::Decided(error) => error.into(),
        ChangeError::Commit(error) => error.into(),
        ChangeError::Contended => {
            let message = "The mailbox is being changed by others: try again.";
            ApiError::with_status(409, message).into()
        }
    }
}
