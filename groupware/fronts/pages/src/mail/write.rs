//! Writing a mail: new, as a reply, forwarded, or from the drafts.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use bytes::Bytes;
use groupware_mail::{
    self as mail, Attached, Folder, MailError, Marking, Outgoing, RoutedMessage, Unid, View, drafts,
};
use groupware_service::ChangeError;
use groupware_service::mail::{change_with_message, deliver};
use groupware_service::{Fingerprint, Service, fingerprint};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::draft::{Draft, IncludedFile};
use super::message;
use super::text::{foreign, path, size_text};
use crate::edit::directory_list;
use crate::error::PageError;
use crate::field::{Input, Wrong, area};
use crate::form::SentFiles;
use crate::layout::{self, NavItem};
use crate::notice::Notice;
use crate::visitor::SignedIn;

type Reply = Result<Response, PageError>;

/// The origin of a new mail: one of these, or none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WriteQuery {
    draft: String,
    reply: String,
    all: String,
    forward: String,
    to: String,
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    asked: Result<Query<WriteQuery>, QueryRejection>,
) -> Reply {
    let Query(asked) = asked.unwrap_or_default();
    let draft = begin(&service, &visitor, &asked).await?;
    form(&service, &visitor, &draft, &Trouble::default())
}

async fn begin(
    service: &Service,
    visitor: &SignedIn,
    asked: &WriteQuery,
) -> Result<Draft, PageError> {
    let ways = [&asked.draft, &asked.reply, &asked.all, &asked.forward];
    let Some(way) = ways.iter().position(|text| !text.is_empty()) else {
        return Ok(Draft {
            to: asked.to.clone(),
            ..Draft::default()
        });
    };
    let unid = Unid::parse(ways[way]).ok_or(PageError::NotFound)?;
    let held = message::find(service, visitor, unid)?;
    let bytes = message::take(service, visitor, &held).await?;
    let (service_there, visitor_there) = (service.clone(), visitor.clone());
    let is_long = message::is_long(&held);
    let draft = service.work(visitor.owner.caller(), is_long, move || {
        let (service, visitor) = (&service_there, &visitor_there);
        let view = View::of(&bytes, &held.entry);
        match way {
            0 if held.folder == Folder::Drafts => Some(Draft::kept(&held, &view)),
            0 => None,
            3 => Some(Draft::forward(visitor, &held, &view)),
            way => Some(Draft::reply(service, visitor, &held, &view, way == 2)),
        }
    });
    draft.await.ok_or(PageError::NotFound)
}

/// The errors of a submitted form.
#[derive(Default)]
struct Trouble {
    wrong: Wrong,
    refused: Option<(u16, String)>,
    /// The stored draft, if it differs from the version that the writer saw.
    other: Option<Draft>,
    /// Whether the mail was saved as a draft with its files, which a form can't return.
    files_are_kept: bool,
}

impl Trouble {
    fn status(&self) -> StatusCode {
        match (&self.refused, self.wrong.is_empty()) {
            (Some((status, _)), _) => {
                StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST)
            }
            (None, true) => StatusCode::OK,
            (None, false) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl Trouble {
    /// If the draft was changed concurrently, shows the stored version beside the input; sending
    /// the form again confirms that the writer has seen both.
    async fn beside_other(
        &mut self,
        service: &Service,
        visitor: &SignedIn,
        mut draft: Draft,
    ) -> Draft {
        let is_conflict = matches!(self.refused, Some((409, _)));
        if let Some(unid) = draft.unid.filter(|_| is_conflict)
            && let Ok(held) = message::find(service, visitor, unid)
            && held.folder == Folder::Drafts
            && draft.seen.is_some_and(|seen| seen != held.revision)
            && let Ok(bytes) = message::take(service, visitor, &held).await
        {
            let other = service.work(visitor.owner.caller(), message::is_long(&held), move || {
                Draft::kept(&held, &View::of(&bytes, &held.entry))
            });
            let other = other.await;
            draft.seen = other.seen;
            self.other = Some(other);
        }
        draft
    }
}

pub(crate) async fn submit(State(service): State<Service>, sent: SentFiles) -> Reply {
    let SentFiles {
        visitor,
        fields,
        files,
    } = sent;
    let draft = Draft::sent(&fields);
    let has_new_files = !files.is_empty();
    let (outgoing, wrong) = prepare(&service, &visitor, &draft, files).await?;
    let mut trouble = Trouble {
        wrong,
        ..Trouble::default()
    };
    match fields.get("do") {
        "save" => match save(&service, &visitor, &draft, &outgoing).await {
            Ok(_) => Ok(layout::done(&path(Folder::Drafts), Notice::DraftSaved)),
            Err(failure) => {
                trouble.refused = Some(refusal(failure)?);
                let draft = trouble.beside_other(&service, &visitor, draft).await;
                form(&service, &visitor, &draft, &trouble)
            }
        },
        "send" => {
            if outgoing.recipients().next().is_none() {
                trouble.wrong.add("to", "Enter who gets it.");
            }
            if trouble.wrong.is_empty() {
                match send(&service, &visitor, &draft, &outgoing).await {
                    Ok(_) => return Ok(layout::done(&path(Folder::Inbox), Notice::MailSent)),
                    Err(failure) => trouble.refused = Some(refusal(failure)?),
                }
            }
            let draft = trouble.beside_other(&service, &visitor, draft).await;
            let has_new_files = has_new_files && trouble.other.is_none();
            let draft = keep(&service, &visitor, draft, &outgoing, has_new_files).await;
            trouble.files_are_kept = has_new_files && draft.unid.is_some();
            form(&service, &visitor, &draft, &trouble)
        }
        _ => Err(PageError::Unreadable),
    }
}

/// Builds the message that a form describes, with new and kept files; also returns its errors.
async fn prepare(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    files: Vec<Attached>,
) -> Result<(Arc<Outgoing>, Wrong), PageError> {
    let read = draft.read_bytes(service, visitor)?;
    // One mail is read at a time, and the kept files are at most a message's size.
    let at_once = read.min(mail::limits::MESSAGE_BYTES as u64) * message::COPIES;
    let caller = visitor.owner.caller();
    service.make_room(caller, at_once).await;
    let (service_there, visitor_there, draft) = (service.clone(), visitor.clone(), draft.clone());
    let made = service.work(caller, message::is_large(read), move || {
        let (service, visitor) = (&service_there, &visitor_there);
        let mut wrong = Wrong::default();
        let mut outgoing = draft.read(service, &mut wrong);
        draft.place(service, visitor, &mut outgoing)?;
        outgoing.attachments = draft.kept_files(service, visitor)?;
        outgoing.attachments.extend(files);
        Ok((Arc::new(outgoing), wrong))
    });
    made.await
}

/// Saves a mail that can't be sent yet, with its files: a browser sends a file again only if it is
/// chosen again. If this fails, the form doesn't list the files.
async fn keep(
    service: &Service,
    visitor: &SignedIn,
    typed: Draft,
    outgoing: &Arc<Outgoing>,
    has_new_files: bool,
) -> Draft {
    let mut draft = typed;
    let mut kept = None;
    if has_new_files && let Ok(Some(unid)) = save(service, visitor, &draft, outgoing).await {
        draft.unid = Some(unid);
        let saved = message::find(service, visitor, unid);
        draft.seen = saved.ok().map(|held| held.revision);
        kept = Some(unid);
    }
    let read = draft.read_bytes(service, visitor).unwrap_or_default();
    let is_long = message::is_large(read);
    let (service_there, visitor_there) = (service.clone(), visitor.clone());
    let listed = service.work(visitor.owner.caller(), is_long, move || {
        draft.kept = listed(&service_there, &visitor_there, &draft, kept);
        draft
    });
    listed.await
}

/// Lists the files of the saved draft, or those kept files that still exist.
fn listed(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    saved: Option<Unid>,
) -> Vec<IncludedFile> {
    let mails: Vec<Unid> = match saved {
        Some(unid) => vec![unid],
        None => draft.mails().unwrap_or_default(),
    };
    let is_kept = |file: &IncludedFile| {
        let mut kept = draft.kept.iter();
        kept.any(|it| (it.mail, &it.name) == (file.mail, &file.name))
    };
    let mut files = Vec::new();
    for unid in mails {
        if let Ok((held, bytes)) = message::load(service, visitor, unid) {
            let all = Draft::kept(&held, &View::of(&bytes, &held.entry)).kept;
            let wanted = all
                .into_iter()
                .filter(|file| saved.is_some() || is_kept(file));
            for file in wanted {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
    }
    files
}

/// The approximate size of a message.
fn bytes_of(outgoing: &Outgoing) -> usize {
    let files = outgoing.attachments.iter().map(|file| file.data.len());
    outgoing.text.as_ref().map_or(0, String::len) + files.sum::<usize>()
}

async fn save(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    outgoing: &Arc<Outgoing>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let (unid, seen, outgoing) = (draft.unid, draft.seen, Arc::clone(outgoing));
    let at = (visitor.owner.caller(), visitor.mailbox());
    change_with_message(service, at, bytes_of(&outgoing), move |context| {
        let message = Bytes::from(outgoing.build(context)?);
        match unid {
            Some(unid) => drafts::rewrite(context, (unid, seen), &message),
            None => drafts::save(context, &message),
        }
    })
    .await
}

async fn send(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    outgoing: &Arc<Outgoing>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let (unid, seen, answers) = (draft.unid, draft.seen, draft.answers);
    let outgoing = Arc::clone(outgoing);
    let at = (visitor.owner.caller(), visitor.mailbox());
    let there = Arc::clone(&outgoing);
    let sent = move || sent(&there);
    deliver(service, at, (bytes_of(&outgoing), sent), move |context| {
        let message = outgoing.build(context)?.into();
        let parcel = RoutedMessage::from_head(context.directory, context.mailbox, message)?;
        let sent = match unid {
            Some(unid) => drafts::send(context, (unid, seen), &parcel),
            None => mail::send(context, &parcel),
        }?;
        let marking = Marking {
            answered: Some(true),
            ..Marking::default()
        };
        match answers {
            Some(answered) => mail::and_mark(context, sent, (answered, &marking)),
            None => Ok(sent),
        }
    })
    .await
}

/// Identifies a mail when a form is sent again.
fn sent(outgoing: &Outgoing) -> Fingerprint {
    let people = [&outgoing.to, &outgoing.cc, &outgoing.bcc];
    let people = people.map(|all| all.iter().map(|it| it.email.as_str()).collect::<Vec<_>>());
    let people = people.map(|all| all.join(","));
    let files = outgoing.attachments.iter();
    let files = files.flat_map(|file| [file.name.as_bytes(), &file.data]);
    let texts = [
        Some(&outgoing.subject),
        outgoing.in_reply_to.as_ref(),
        outgoing.text.as_ref(),
    ];
    let texts = texts.map(|text| text.map_or(&b""[..], |text| text.as_bytes()));
    let people = people.iter().map(String::as_bytes);
    fingerprint(texts.into_iter().chain(people).chain(files))
}

/// A refusal of the mail service, to be shown above the form.
fn refusal(failure: ChangeError<MailError>) -> Result<(u16, String), PageError> {
    match failure {
        ChangeError::Decided(MailError::Refused { reason, message }) => {
            Ok((reason.status(), message.into_owned()))
        }
        failure => match failure.into() {
            PageError::Refused(status, text) if status != 500 => Ok((status, text)),
            error => Err(error),
        },
    }
}

fn form(service: &Service, visitor: &SignedIn, draft: &Draft, trouble: &Trouble) -> Reply {
    let title = match (draft.unid, draft.answers) {
        (Some(_), _) => "Draft",
        (None, Some(_)) => "Answer",
        (None, None) => "New mail",
    };
    let back = match draft.unid {
        Some(_) => path(Folder::Drafts),
        None => path(Folder::Inbox),
    };
    let main = html! {
        h1 { (title) }
        @if let Some((_, text)) = &trouble.refused { p.wrong-summary role="alert" { (text) } }
        (trouble.wrong.summary())
        @if let Some(other) = &trouble.other {
            section.other {
                h2 { "The draft as it is kept" }
                p { strong { (other.subject) } }
                pre { (other.text) }
                p.hint { "Your text is below. “Send” and “Save draft” put it in the place of this one." }
            }
        }
        @if trouble.files_are_kept {
            p.hint role="status" { "The mail is kept in your drafts with its files, so that you need not choose them again." }
        }
        form.sheet method="post" action=(super::text::WRITE) enctype="multipart/form-data" {
            (layout::proof(visitor))
            @if let Some(unid) = draft.unid { input type="hidden" name="draft" value=(unid); }
            @if let Some(seen) = draft.seen { input type="hidden" name="seen" value=(seen); }
            @if let Some(unid) = draft.answers { input type="hidden" name="answers" value=(unid); }
            (fields(service, visitor, draft, &trouble.wrong))
            div.actions {
                button.primary type="submit" name="do" value="send" { "Send" }
                button type="submit" name="do" value="save" { "Save draft" }
                a.button.quiet href=(back) { "Cancel" }
            }
        }
    };
    let here = NavItem::Mail(draft.unid.map(|_| Folder::Drafts));
    layout::page_with(service, visitor, (here, trouble.status()), title, &main)
}

fn fields(service: &Service, visitor: &SignedIn, draft: &Draft, wrong: &Wrong) -> Markup {
    let person = |name, label, value| Input {
        list: Some("people-list"),
        max: 20_000,
        ..Input::text(name, label, value)
    };
    let has_copies = !draft.cc.is_empty()
        || !draft.bcc.is_empty()
        || wrong.of("cc").is_some()
        || wrong.of("bcc").is_some();
    let is_answer = draft.answers.is_some();
    html! {
        (Input {
            hint: Some("Names or addresses, with commas between them."),
            autofocus: draft.to.is_empty(),
            ..person("to", "To", &draft.to)
        }.render(wrong))
        details.copies open[has_copies] {
            summary { "Copies" }
            (person("cc", "Copy", &draft.cc).render(wrong))
            (person("bcc", "Hidden copy, unseen by the others", &draft.bcc).render(wrong))
        }
        (directory_list(service, visitor))
        (Input::text("subject", "Subject", &draft.subject).render(wrong))
        (area("text", "Text", &draft.text, if is_answer { 18 } else { 14 }, wrong))
        (files(draft))
    }
}

fn files(draft: &Draft) -> Markup {
    html! {
        @if !draft.kept.is_empty() {
            fieldset.kept {
                legend { "Files that go with it" }
                @for (number, file) in draft.kept.iter().enumerate() {
                    div.tick {
                        input type="checkbox" id={ "keep-" (number) } name="keep" checked
                            value={ (file.mail) "/" (file.name) };
                        label for={ "keep-" (number) } {
                            (foreign(&file.name)) " " span.address { (size_text(file.bytes)) }
                        }
                    }
                }
            }
        }
        div.field {
            label for="files" { "Add files" }
            input #files type="file" name="files" multiple aria-describedby="files-hint";
            p.hint id="files-hint" { "Together up to " (size_text(MOST_FILE_BYTES)) "." }
        }
    }
}

/// Most bytes of files whose base64 fits into the largest message.
const MOST_FILE_BYTES: u64 = mail::limits::MESSAGE_BYTES as u64 / 100 * 72;
