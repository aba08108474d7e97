//! Shows one mail.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use groupware_calendar::MailMessage;
use groupware_http::reply;
use groupware_mail::{
    self as mail, Findings, Folder, MailError, Part, Person, Stored, Unid, View, limits,
};
use groupware_people::Directory;
use groupware_service::Service;
use groupware_service::mail::{note_read, read};
use maud::{Markup, html};
use serde::Deserialize;

use super::clean::{self, Picture, Pictures};
use super::text::{file_path, foreign, message_path, path, size_text};
use super::{itip, list, origin, prose};
use crate::error::PageError;
use crate::form::Sent;
use crate::layout;
use crate::links::links;
use crate::notice::Notice;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

/// Most text that is shown.
const TEXT_BYTES: usize = 1 << 20;
/// Limit for one formatted text; pictures in it don't count.
const HTML_BYTES: usize = 512 << 10;

pub(super) fn unid(text: &str) -> Result<Unid, PageError> {
    Unid::parse(text).ok_or(PageError::NotFound)
}

/// Copies in memory at once: a mail and the result made of it.
pub(crate) const COPIES: u64 = 2;

/// Returns the bytes of a visitor's mail, after acquiring memory for them until the page is sent.
///
/// # Errors
/// A refusal if it is missing; the store's errors.
pub(crate) async fn take(
    service: &Service,
    visitor: &SignedIn,
    held: &Stored,
) -> Result<Bytes, MailError> {
    let bytes = held.entry.size * COPIES;
    service.make_room(visitor.owner.caller(), bytes).await;
    read(service, |snapshot| {
        mail::bytes(snapshot, visitor.mailbox(), held)
    })
}

/// Returns the mail with this id.
///
/// # Errors
/// As [`take`].
pub(crate) fn find(service: &Service, visitor: &SignedIn, unid: Unid) -> Result<Stored, MailError> {
    read(service, |snapshot| {
        mail::require(snapshot, visitor.mailbox(), unid)
    })
}

/// Returns a visitor's mail with its bytes.
///
/// # Errors
/// A refusal if it is missing; the store's errors.
pub(crate) fn load(
    service: &Service,
    visitor: &SignedIn,
    unid: Unid,
) -> Result<(Stored, Bytes), MailError> {
    read(service, |snapshot| {
        let held = mail::require(snapshot, visitor.mailbox(), unid)?;
        let bytes = mail::bytes(snapshot, visitor.mailbox(), &held)?;
        Ok((held, bytes))
    })
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ShapeQuery {
    /// `text` for the mail without its HTML.
    #[serde(default, rename = "as")]
    shape: String,
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(id): Path<String>,
    asked: Result<Query<ShapeQuery>, axum::extract::rejection::QueryRejection>,
) -> Reply {
    let unid = unid(&id)?;
    let held = find(&service, &visitor, unid)?;
    if held.folder == Folder::Drafts {
        let path = format!("{}?draft={unid}", super::text::WRITE);
        return Ok(Redirect::to(&path).into_response());
    }
    if !held.entry.read {
        note_read(&service, &visitor.owner, unid).await?;
    }
    // Waits before the mail is read into memory.
    let bytes = take(&service, &visitor, &held).await?;
    let folders = read(&service, |snapshot| {
        mail::all_folders(snapshot, visitor.mailbox())
    })?;
    let as_text = asked.is_ok_and(|Query(asked)| asked.shape == "text");
    let (mail, caller) = (held.clone(), visitor.owner.caller());
    let server = service.auth.directory().domain().to_owned();
    let (owner, now) = (service.auth.people().email(visitor.mailbox()), visitor.now);
    let seen = service.work(caller, is_long(&held), move || {
        Seen::of((&bytes, &mail), (&server, &owner, now), as_text)
    });
    let seen = seen.await;
    let panel = match &seen.message {
        Some(it) => Some(itip::panel(&service, &visitor, (unid, it), &seen.from)?),
        None => None,
    };
    let main = html! {
        (tools(&visitor, &held, &folders))
        article.message {
            header {
                h1 { (foreign(&seen.subject)) }
                (seen.people)
                p.date { (list::signs(held.entry.marks)) (list::full_date(&visitor, held.entry.date_s)) }
                (seen.origin)
            }
            @if let Some(panel) = panel { (panel) }
            (seen.body)
            (seen.files)
        }
    };
    let of = (held.folder, folders);
    let mut page = layout::mail_page(&service, &visitor, of, &seen.subject, &main)?;
    if seen.has_data {
        layout::allow_data(&mut page);
    }
    Ok(page)
}

/// Returns true if parsing a mail takes so long that it must not delay other requests.
pub(crate) fn is_long(held: &Stored) -> bool {
    is_large(held.entry.size)
}

/// The same check for so many bytes of mails.
pub(crate) fn is_large(bytes: u64) -> bool {
    bytes > limits::LARGE_BYTES
}

/// A mail, prepared for display.
struct Seen {
    subject: String,
    people: Markup,
    origin: Markup,
    body: Markup,
    files: Markup,
    /// Its message about an event.
    message: Option<MailMessage>,
    /// The address of its author.
    from: String,
    /// Whether its HTML contains embedded pictures.
    has_data: bool,
}

impl Seen {
    /// Prepares a mail that the server of this name received, for the user of an address.
    fn of(
        (bytes, held): (&Bytes, &Stored),
        (server, owner, now): (&str, &str, i64),
        as_text: bool,
    ) -> Self {
        let view = View::of(bytes, &held.entry);
        let origin = Findings::of(bytes, server).and_then(|found| found.origin());
        let body = Body::of(held.unid, &view, as_text);
        Self {
            subject: list::subject(&view.subject).to_owned(),
            people: people(&view),
            origin: html! { @if let Some(origin) = &origin { (origin::words(origin)) } },
            message: itip::of(&view.parts, owner, now),
            from: view.from.email.clone(),
            files: files(held.unid, &body.files),
            body: body.markup,
            has_data: body.has_data,
        }
    }
}

fn tools(visitor: &SignedIn, held: &Stored, folders: &[mail::FolderLine]) -> Markup {
    let unid = held.unid;
    let write = |how: &str| format!("{}?{how}={unid}", super::text::WRITE);
    let back = folders.iter().find(|line| line.folder == held.folder);
    html! {
        p.way { a href=(path(held.folder)) { "‹ " (back.map_or("Back", |line| line.name.as_str())) } }
        div.tools.message-tools {
            a.button.primary href=(write("reply")) { "Reply" }
            a.button href=(write("all")) { "Reply to all" }
            a.button href=(write("forward")) { "Forward" }
            form method="post" action=(message_path(unid)) {
                (layout::proof(visitor))
                button type="submit" name="do" value="delete" {
                    @if held.folder == Folder::Trash { "Delete for good" } @else { "Delete" }
                }
                button type="submit" name="do" value="unread" { "Mark unread" }
                @if held.entry.marks.flagged {
                    button type="submit" name="do" value="unimportant" { "Not important" }
                } @else {
                    button type="submit" name="do" value="important" { "Mark important" }
                }
                span.move {
                    label.unseen for="to" { "Move to" }
                    select #to name="to" {
                        @for line in folders.iter().filter(|line| {
                            list::can_hold(line.folder) && line.folder != held.folder
                        }) { option value=(line.folder) { (line.name) } }
                    }
                    button type="submit" name="do" value="move" { "Move" }
                }
            }
        }
    }
}

fn people(view: &View<'_>) -> Markup {
    let from = [view.from.clone()];
    let lines = [
        ("From", from.as_slice()),
        ("To", &view.to),
        ("Copy", &view.cc),
        ("Hidden copy", &view.bcc),
        ("Answers to", &view.reply_to),
    ];
    html! {
        dl.facts {
            @for (name, people) in lines.into_iter().filter(|(_, people)| !people.is_empty()) {
                dt { (name) }
                dd {
                    @for (number, one) in people.iter().enumerate() {
                        @if number > 0 { ", " }
                        (person(one))
                    }
                }
            }
        }
    }
}

/// The sender can choose any name, so the address is shown beside it.
fn person(person: &Person) -> Markup {
    html! {
        @if person.name.trim().is_empty() { (foreign(&person.email)) }
        @else { (foreign(&person.name)) " " span.address { "<" (foreign(&person.email)) ">" } }
    }
}

/// The texts and pictures of a mail in order, and its files.
struct Body<'v> {
    markup: Markup,
    files: Vec<&'v Part<'v>>,
    has_data: bool,
}

impl<'v> Body<'v> {
    fn of(unid: Unid, view: &'v View<'v>, as_text: bool) -> Self {
        let reading = view.reading();
        let (mut shown, mut left_out, mut has_data) = (HashSet::new(), 0, false);
        let parts: Vec<&Part<'_>> = match as_text {
            true => reading.plain().collect(),
            false => reading.preferred().collect(),
        };
        let pictures = Arc::new(pictures(unid, view));
        let (mut texts, mut room) = (Vec::new(), TEXT_BYTES);
        for part in &parts {
            if room == 0 {
                texts.push(too_long());
                break;
            }
            texts.push(match part.is_text() {
                false => picture(unid, part),
                true if !part.is_html() => {
                    let text = part.text();
                    let shown = plain(&text, room);
                    room -= text.len().min(room);
                    shown
                }
                true => {
                    let html = part.text();
                    room -= html.len().min(HTML_BYTES).min(room);
                    match clean::clean(&html, Arc::clone(&pictures)) {
                        Some(cleaned) => {
                            shown.extend(cleaned.shown);
                            left_out += cleaned.left_out;
                            has_data |= cleaned.has_data;
                            html! { div.html-mail { (cleaned.markup) } }
                        }
                        None => too_intricate(&html),
                    }
                }
            });
        }
        let files = reading.files();
        let files = files.filter(|part| !shown.contains(&file_path(unid, &part.name)));
        let markup = html! {
            (from_elsewhere(left_out))
            @for text in &texts { (text) }
            @if parts.is_empty() { p.hint { "This mail has no text." } }
            @if reading.has_plain() {
                p.hint {
                    @if as_text { a href=(message_path(unid)) { "Show it with its formatting" } }
                    @else { a href={ (message_path(unid)) "?as=text" } { "Show it as plain text" } }
                }
            }
        };
        Self {
            markup,
            files: files.collect(),
            has_data,
        }
    }
}

/// A picture between texts.
fn picture(unid: Unid, part: &Part<'_>) -> Markup {
    html! { div.html-mail { img src=(file_path(unid, &part.name)) alt=(part.name); } }
}

/// The pictures that HTML may refer to.
fn pictures(unid: Unid, view: &View<'_>) -> Pictures {
    let pictures = view.parts.iter().filter(|part| part.picture().is_some());
    Pictures::new(pictures.map(|part| Picture {
        id: part.id.clone(),
        location: part.location.clone(),
        name: part.name.clone(),
        path: file_path(unid, &part.name),
    }))
}

fn too_intricate(html: &str) -> Markup {
    html! {
        p.left-out { "The formatting of this mail is too intricate to be shown. This is its text." }
        (plain(&prose::text_of(html), TEXT_BYTES))
    }
}

fn from_elsewhere(left_out: usize) -> Markup {
    html! {
        @if left_out > 0 {
            p.left-out {
                (left_out) " "
                (if left_out == 1 { "image" } else { "images" })
                " from elsewhere left out: loading them would tell the sender when and where you read this."
            }
        }
    }
}

/// Plain text with paler quotes. Very long text is truncated: each link takes ten times its text.
fn plain(text: &str, most: usize) -> Markup {
    let shown = &text[..text.floor_char_boundary(most)];
    let is_cut = shown.len() < text.len();
    let text = shown;
    let mut blocks: Vec<(bool, String)> = Vec::new();
    for line in text.trim_end().lines() {
        let is_quote = line.starts_with('>');
        match blocks.last_mut() {
            Some((known, block)) if *known == is_quote => {
                block.push('\n');
                block.push_str(line);
            }
            _ => blocks.push((is_quote, line.to_owned())),
        }
    }
    html! {
        div.plain-mail {
            @for (is_quote, block) in &blocks {
                @if *is_quote { blockquote { (links(block)) } } @else { div { (links(block.trim_end())) } }
            }
        }
        @if is_cut { (too_long()) }
    }
}

fn too_long() -> Markup {
    html! {
        p.left-out { "This text is too long to be shown here. Save the mail as a file to read the rest." }
    }
}

fn files(unid: Unid, files: &[&Part<'_>]) -> Markup {
    html! {
        @if !files.is_empty() {
            section.files aria-labelledby="files" {
                h2 #files { (files.len()) (if files.len() == 1 { " file" } else { " files" }) }
                ul {
                    @for part in files {
                        li {
                            a href=(file_path(unid, &part.name)) download { (foreign(&part.name)) }
                            " " span.address { (size_text(part.data().len() as u64)) }
                        }
                    }
                }
            }
        }
        p.hint { a href={ (message_path(unid)) "/source" } download { "Save the mail as a file" } }
    }
}

pub(crate) async fn change(
    State(service): State<Service>,
    Path(id): Path<String>,
    sent: Sent,
) -> Reply {
    let unid = unid(&id)?;
    let (visitor, fields) = (&sent.visitor, &sent.fields);
    let held = find(&service, visitor, unid)?;
    let is_last = fields.get("do") == "delete" && held.folder == Folder::Trash;
    if is_last && !fields.has("sure") {
        return list::confirm(&service, visitor, &message_path(unid), &[unid]);
    }
    let notice: Notice = list::act(&service, visitor, (held.folder, &[unid]), fields).await?;
    Ok(layout::done(&path(held.folder), notice))
}

pub(crate) async fn file(
    State(service): State<Service>,
    visitor: SignedIn,
    Path((id, name)): Path<(String, String)>,
) -> Reply {
    let held = find(&service, &visitor, unid(&id)?)?;
    let bytes = take(&service, &visitor, &held).await?;
    let found = service.work(visitor.owner.caller(), is_long(&held), move || {
        let parts = mail::parts(&bytes);
        let mut files = parts.iter().filter(|part| !part.is_multipart());
        let part = files.find(|part| part.name == name)?;
        let kind = part.picture().unwrap_or(&part.kind);
        Some(reply::file(&part.name, kind, part.data().into_owned()))
    });
    found.await.ok_or(PageError::NotFound)
}

pub(crate) async fn source(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(id): Path<String>,
) -> Reply {
    let unid = unid(&id)?;
    let held = find(&service, &visitor, unid)?;
    let bytes = take(&service, &visitor, &held).await?;
    Ok(reply::file(&format!("{unid}.eml"), "message/rfc822", bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_very_long_text_the_start_is_shown() {
        let text = "é".repeat(TEXT_BYTES);
        let shown = plain(&text, TEXT_BYTES).into_string();
        assert!(shown.contains("too long") && shown.len() < TEXT_BYTES + 1000);
        assert!(
            !plain(&text[..TEXT_BYTES], TEXT_BYTES)
                .into_string()
                .contains("too long")
        );
    }
}
