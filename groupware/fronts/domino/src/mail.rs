//! The mail routes, in the shape of Domino's mail service: parse the request, let `groupware-mail`
//! decide, answer. Knows no rule of mailboxes.

mod reply;
mod request;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{delete, get, post};
use groupware_http::reply::{file, json as json_reply, nothing};
use groupware_http::{ApiError, Gate, Owner, Query};
use groupware_mail::{
    self as mail, Folder, ListQuery, MailError, Marking, Reason, RoutedMessage, Unid, drafts,
    folders, keys, limits,
};
use groupware_runtime::Caller;
use groupware_service::mail::{
    change, change_in_slices, change_with_message, deliver, note_read, read,
};
use groupware_service::{ChangeError, Service, fingerprint};
use serde::{Deserialize, Serialize};

use self::request::{FileName, InFolder, Making, MediaType, Message};
use crate::failure::{DominoFailure, Reply};
use crate::front::Domino;

/// Copies in memory at once: a message and the result made of it.
const COPIES: u64 = 2;

/// The mail routes under `/mail/{mailbox}/api/mail`, where bodies may be as large as messages.
pub(crate) fn routes(domino: &Domino, gate: &Gate) -> Router {
    let at = |rest: &str| format!("/mail/{{mailbox}}/api/mail{rest}");
    Router::new()
        .route(&at("/inbox"), get(list_inbox).put(change_inbox))
        .route(&at("/sent"), get(list_sent))
        .route(&at("/drafts"), get(list_drafts).post(save_draft))
        .route(&at("/trash"), get(list_trash).delete(empty_trash))
        .route(&at("/trash/{id}"), delete(delete_from_trash))
        .route(&at("/outbox"), post(send_message))
        .route(
            &at("/messages/{id}"),
            get(read_message).put(change_message).delete(delete_message),
        )
        .route(&at("/messages/{id}/attachments/{file}"), get(read_file))
        .route(&at("/quota"), get(read_quota))
        .route(&at("/folders"), get(list_folders).post(create_folder))
        .route(
            &at("/folders/{id}"),
            get(read_folder).put(rename_folder).delete(delete_folder),
        )
        .route(
            &at("/folders/{id}/messages"),
            get(list_folder).put(change_folder),
        )
        .layer(gate.large(limits::BODY_BYTES, domino.message_within))
        .with_state(domino.service.clone())
}

async fn list(service: &Service, owner: &Owner, folder: Folder, query: &Query) -> Reply {
    if let Some(since) = query.last("since") {
        return changes_since(service, owner, folder, since).await;
    }
    let query = ListQuery::parse(query.pairs())?;
    let is_long = read(service, |snapshot| {
        mail::is_long(snapshot, owner.mailbox(), folder, &query)
    })?;
    let (user, caller) = (owner.clone(), owner.caller());
    let page = service.read(caller, is_long, move |snapshot| {
        mail::list_json(snapshot, user.mailbox(), folder, &query)
    });
    Ok(reply::page(page.await?))
}

/// Returns the changes of a folder after a change that the client knows, in place of a list.
async fn changes_since(service: &Service, owner: &Owner, folder: Folder, since: &str) -> Reply {
    let since: u64 = since.parse().map_err(|_| {
        MailError::bad_request("The parameter since is the modseq of a folder or of a message.")
    })?;
    let is_long = read(service, |snapshot| {
        mail::is_long_since(snapshot, owner.mailbox(), since)
    })?;
    let user = owner.clone();
    let found = service.read(owner.caller(), is_long, move |snapshot| {
        mail::changes_since_json(snapshot, user.mailbox(), folder, since)
    });
    Ok(json_reply(found.await?))
}

async fn list_inbox(State(service): State<Service>, owner: Owner, query: Query) -> Reply {
    list(&service, &owner, Folder::Inbox, &query).await
}

async fn list_sent(State(service): State<Service>, owner: Owner, query: Query) -> Reply {
    list(&service, &owner, Folder::Sent, &query).await
}

async fn list_drafts(State(service): State<Service>, owner: Owner, query: Query) -> Reply {
    list(&service, &owner, Folder::Drafts, &query).await
}

async fn list_trash(State(service): State<Service>, owner: Owner, query: Query) -> Reply {
    list(&service, &owner, Folder::Trash, &query).await
}

async fn list_folder(
    State(service): State<Service>,
    owner: Owner,
    InFolder(folder): InFolder,
    query: Query,
) -> Reply {
    list(&service, &owner, folder, &query).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderChange {
    #[serde(default)]
    add: Vec<String>,
    #[serde(default)]
    remove: Vec<String>,
}

async fn change_inbox(State(service): State<Service>, owner: Owner, body: Bytes) -> Reply {
    add_and_remove(&service, &owner, Folder::Inbox, &body).await
}

async fn change_folder(
    State(service): State<Service>,
    owner: Owner,
    InFolder(folder): InFolder,
    body: Bytes,
) -> Reply {
    add_and_remove(&service, &owner, folder, &body).await
}

async fn add_and_remove(service: &Service, owner: &Owner, folder: Folder, body: &[u8]) -> Reply {
    let asked: FolderChange = json(body)?;
    let (add, remove) = (unids(&asked.add)?, unids(&asked.remove)?);
    change(service, owner, |context| {
        mail::add_and_remove(context, folder, &add, &remove)
    })
    .await?;
    Ok(nothing())
}

fn unids(texts: &[String]) -> Result<Vec<Unid>, MailError> {
    let unid =
        |text: &String| Unid::parse(text).ok_or_else(|| MailError::not_found("Message", text));
    texts.iter().map(unid).collect()
}

async fn send_message(
    State(service): State<Service>,
    owner: Owner,
    media: MediaType,
    body: Bytes,
) -> Reply {
    let (bytes, text) = (body.len(), body.clone());
    let sent = move || fingerprint([media.name().as_bytes(), &text]);
    let message = written(&service, &owner, media, body).await?;
    let made = deliver(&service, at(&owner), (bytes, sent), move |context| {
        mail::send(context, &message.parcel(context)?)
    })
    .await?;
    Ok(reply::created(&path(&owner, made)))
}

async fn save_draft(
    State(service): State<Service>,
    owner: Owner,
    media: MediaType,
    body: Bytes,
) -> Reply {
    let bytes = body.len();
    let message = written(&service, &owner, media, body).await?;
    let made = change_with_message(&service, at(&owner), bytes, move |context| {
        drafts::save(context, &message.message(context)?)
    })
    .await?;
    Ok(reply::created(&path(&owner, made)))
}

/// Parses the message that a body describes or contains.
async fn written(
    service: &Service,
    owner: &Owner,
    media: MediaType,
    body: Bytes,
) -> Result<Making, MailError> {
    let is_long = is_long(body.len() as u64);
    let read = service.work(owner.caller(), is_long, move || media.read(body));
    read.await.map(Making::from)
}

/// Returns true if processing this many bytes of a message takes so long that it must not delay other requests.
fn is_long(bytes: u64) -> bool {
    bytes > limits::LARGE_BYTES
}

/// The caller, and the mailbox that a message is sent from.
fn at(owner: &Owner) -> (&Caller, &str) {
    (owner.caller(), owner.mailbox())
}

/// The path of a new message.
fn path(owner: &Owner, made: Option<Unid>) -> String {
    made.map_or_else(String::new, |unid| {
        keys::message_path(owner.mailbox(), unid)
    })
}

/// Reads a message, and marks it as read unless the query disables this.
async fn read_message(
    State(service): State<Service>,
    owner: Owner,
    Message(unid): Message,
    query: Query,
) -> Reply {
    let (mark, links) = (query.flag("markread")?, query.flag("attachmentlinks")?);
    let mailbox = owner.mailbox();
    let held = read(&service, |snapshot| mail::require(snapshot, mailbox, unid))?;
    if mark.unwrap_or(true) && !held.entry.read {
        note_read(&service, &owner, unid).await?;
    }
    // Waits before the message is read into memory.
    service
        .make_room(owner.caller(), held.entry.size * COPIES)
        .await;
    let (bytes, keywords) = read(&service, |snapshot| {
        let keywords = mail::keywords(snapshot, mailbox, unid)?;
        Ok((mail::bytes(snapshot, mailbox, &held)?, keywords))
    })?;
    match query.last("format") {
        None => {}
        Some(format) if format.eq_ignore_ascii_case("json") => {}
        Some(format) if format.eq_ignore_ascii_case("mime") => return Ok(original(unid, bytes)),
        Some(_) => return Err(ApiError::bad_request("The format is json or mime.").into()),
    }
    let (links, caller) = (links.unwrap_or(false), owner.caller().clone());
    let is_long = is_long(held.entry.size);
    let made = service.work(&caller, is_long, move || {
        mail::message_json(owner.mailbox(), (&held, &keywords), &bytes, links)
    });
    Ok(json_reply(made.await))
}

async fn read_file(
    State(service): State<Service>,
    owner: Owner,
    Message(unid): Message,
    FileName(name): FileName,
) -> Reply {
    let mailbox = owner.mailbox();
    let held = read(&service, |snapshot| mail::require(snapshot, mailbox, unid))?;
    service
        .make_room(owner.caller(), held.entry.size * COPIES)
        .await;
    let bytes = read(&service, |snapshot| mail::bytes(snapshot, mailbox, &held))?;
    let is_long = is_long(held.entry.size);
    let found = service.work(owner.caller(), is_long, move || {
        let parts = mail::parts(&bytes);
        let mut files = parts.iter().filter(|part| !part.is_multipart());
        let part = files
            .find(|part| part.name == name)
            .ok_or_else(|| MailError::not_found("Attachment", &name))?;
        Ok::<_, MailError>(file(&part.name, &part.kind, part.data().into_owned()))
    });
    Ok(found.await?)
}

/// A stored message, as a file.
fn original(unid: Unid, message: Bytes) -> Response {
    file(&format!("{unid}.eml"), "message/rfc822", message)
}

/// The marks that the query requests.
fn marking(query: &Query) -> Result<Marking, DominoFailure> {
    let keywords = query.last("keywords").map(mail::parse_keywords);
    Ok(Marking {
        read: query.flag("markread")?,
        answered: query.flag("markanswered")?,
        flagged: query.flag("markflagged")?,
        forwarded: query.flag("markforwarded")?,
        keywords: keywords.transpose()?,
    })
}

/// Rewrites a draft, sends one, or marks any message.
async fn change_message(
    State(service): State<Service>,
    owner: Owner,
    Message(unid): Message,
    query: Query,
    media: MediaType,
    body: Bytes,
) -> Reply {
    let (send, marking) = (query.flag("send")?, marking(&query)?);
    let made = match (send.unwrap_or(false), body.is_empty()) {
        (true, true) => send_kept(&service, &owner, unid).await?,
        (is_sent, false) => {
            let bytes = body.len();
            let message = written(&service, &owner, media, body).await?;
            change_with_message(&service, at(&owner), bytes, move |context| match is_sent {
                true => drafts::send(context, (unid, None), &message.parcel(context)?),
                false => drafts::rewrite(context, (unid, None), &message.message(context)?),
            })
            .await?
        }
        (false, true) if marking == Marking::default() => {
            return Err(ApiError::bad_request("Empty request body.").into());
        }
        (false, true) => {
            change(&service, &owner, |context| {
                mail::mark_as(context, &[unid], &marking)
            })
            .await?;
            return Ok(nothing());
        }
    };
    Ok(reply::moved_to(&path(&owner, made)))
}

/// Sends a stored draft.
async fn send_kept(
    service: &Service,
    owner: &Owner,
    unid: Unid,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let held = read(service, |snapshot| {
        mail::require(snapshot, owner.mailbox(), unid)
    });
    let bytes = held.map_err(ChangeError::Decided)?.entry.size;
    // No body announces its size: memory for the stored draft is acquired.
    service.make_room(owner.caller(), bytes * COPIES).await;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    change_with_message(service, at(owner), bytes, move |context| {
        drafts::send(context, (unid, None), &kept_draft(context, unid)?)
    })
    .await
}

/// A stored draft, ready to be sent.
fn kept_draft(context: &mail::Context<'_>, unid: Unid) -> Result<RoutedMessage, MailError> {
    let held = drafts::require(context, unid)?;
    let message = mail::bytes(context.snapshot, context.mailbox, &held)?;
    let message = mail::completed(context, message);
    RoutedMessage::from_head(context.directory, context.mailbox, message)
}

async fn delete_message(
    State(service): State<Service>,
    owner: Owner,
    Message(unid): Message,
    query: Query,
) -> Reply {
    let permanently = query.flag("permanently")?.unwrap_or(false);
    change(&service, &owner, |context| {
        mail::delete(context, &[unid], permanently)
    })
    .await?;
    Ok(nothing())
}

async fn delete_from_trash(
    State(service): State<Service>,
    owner: Owner,
    Message(unid): Message,
) -> Reply {
    change(&service, &owner, |context| {
        let held = mail::require(context.snapshot, context.mailbox, unid)?;
        if held.folder != Folder::Trash {
            return Err(MailError::not_found(
                "Message in the trash",
                &unid.to_string(),
            ));
        }
        mail::delete(context, &[unid], true)
    })
    .await?;
    Ok(nothing())
}

async fn empty_trash(State(service): State<Service>, owner: Owner) -> Reply {
    change_in_slices(&service, &owner, |context| {
        mail::empty(context, Folder::Trash)
    })
    .await?;
    Ok(nothing())
}

/// In units of 1024 bytes, as in Domino.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Quota {
    enabled: bool,
    actual_size: u64,
    used_size: u64,
    quota_size: u64,
    warning_size: u64,
}

async fn read_quota(State(service): State<Service>, owner: Owner) -> Reply {
    let used = read(&service, |snapshot| {
        mail::used_bytes(snapshot, owner.mailbox())
    })?;
    let quota = service.mail_quota_bytes();
    let size = quota.unwrap_or_default() / 1024;
    let told = Quota {
        enabled: quota.is_some(),
        actual_size: used.div_ceil(1024),
        used_size: used.div_ceil(1024),
        quota_size: size,
        // Nine tenths.
        warning_size: size / 10 * 9,
    };
    Ok(json_reply(to_json(&told)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FolderLine {
    href: String,
    name: String,
    unid: String,
    messages: u64,
    unread: u64,
    modseq: u64,
    uid_next: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid_validity: Option<u32>,
    links: [Link; 1],
}

#[derive(Serialize)]
struct Link {
    rel: &'static str,
    href: String,
}

fn folder_line(owner: &Owner, line: mail::FolderLine) -> FolderLine {
    let href = format!("/mail/{}/api/mail/folders/{}", owner.mailbox(), line.folder);
    FolderLine {
        links: [Link {
            rel: "messages",
            href: format!("{href}/messages"),
        }],
        href,
        name: line.name,
        unid: line.folder.to_string(),
        messages: line.counts.messages,
        unread: line.counts.unread,
        modseq: line.state.modseq,
        uid_next: line.state.uid_next,
        uid_validity: line.state.uid_validity,
    }
}

async fn list_folders(State(service): State<Service>, owner: Owner) -> Reply {
    let lines = read(&service, |snapshot| {
        mail::all_folders(snapshot, owner.mailbox())
    })?;
    let lines: Vec<_> = lines
        .into_iter()
        .map(|line| folder_line(&owner, line))
        .collect();
    Ok(json_reply(to_json(&lines)))
}

async fn read_folder(
    State(service): State<Service>,
    owner: Owner,
    InFolder(folder): InFolder,
) -> Reply {
    let lines = read(&service, |snapshot| {
        mail::all_folders(snapshot, owner.mailbox())
    })?;
    let line = lines
        .into_iter()
        .find(|line| line.folder == folder)
        .ok_or_else(|| MailError::not_found("Folder", &folder.to_string()))?;
    Ok(json_reply(to_json(&folder_line(&owner, line))))
}

#[derive(Deserialize)]
struct NewFolder {
    name: String,
}

async fn create_folder(State(service): State<Service>, owner: Owner, body: Bytes) -> Reply {
    let NewFolder { name } = json(&body)?;
    let made = change(&service, &owner, |context| folders::create(context, &name)).await?;
    let unid =
        made.ok_or_else(|| MailError::refused(Reason::Conflict, "The folder could not be made."))?;
    Ok(reply::created(&keys::folder_path(
        owner.mailbox(),
        Folder::Own(unid),
    )))
}

async fn rename_folder(
    State(service): State<Service>,
    owner: Owner,
    folder: InFolder,
    body: Bytes,
) -> Reply {
    let unid = folder.own()?;
    let NewFolder { name } = json(&body)?;
    change(&service, &owner, |context| {
        folders::rename(context, unid, &name)
    })
    .await?;
    Ok(nothing())
}

async fn delete_folder(State(service): State<Service>, owner: Owner, folder: InFolder) -> Reply {
    let unid = folder.own()?;
    let delete = move |context: &mail::Context<'_>| folders::delete(context, unid);
    change_in_slices(&service, &owner, delete).await?;
    Ok(nothing())
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("The body can't be read: {error}.")))
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers serialise to memory")
}
