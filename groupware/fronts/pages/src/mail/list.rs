//! The mails of a folder: pages, a search, and actions on several mails.

use std::borrow::Cow;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use groupware_mail::{
    self as mail, Folder, FolderLine, ListQuery, Listed, MailError, Marking, Marks, Page, Person,
    Unid,
};
use groupware_people::Directory;
use groupware_service::Service;
use groupware_service::mail::{change as commit, change_in_slices, read};
use maud::{Markup, html};
use serde::Deserialize;

use super::text::{foreign, message_path, path, when};
use crate::error::PageError;
use crate::form::{Fields, Sent};
use crate::layout::{self, NavItem};
use crate::notice::Notice;
use crate::visitor::SignedIn;
use crate::zone;

type Reply = Result<Response, PageError>;

/// Mails per page.
const SHOWN: usize = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageQuery {
    #[serde(default)]
    page: usize,
    #[serde(default)]
    find: String,
}

impl PageQuery {
    fn query(&self) -> Result<ListQuery, MailError> {
        let (count, find) = (SHOWN.to_string(), self.find.trim());
        let page = self.page.min(1_000_000).to_string();
        ListQuery::parse([("ps", count.as_str()), ("page", &page), ("search", find)])
    }

    /// The path of this page of the same list.
    fn path(&self, folder: Folder, page: usize) -> String {
        let mut path = path(folder);
        let mut sign = '?';
        if page > 0 {
            path.push_str(&format!("{sign}page={page}"));
            sign = '&';
        }
        if !self.find.is_empty() {
            path.push_str(&format!("{sign}find="));
            groupware_text::push_encoded(&mut path, &self.find, b"");
        }
        path
    }
}

/// Returns a folder by the name in its path.
fn folder(name: &str) -> Result<Folder, PageError> {
    Folder::parse(name).ok_or(PageError::NotFound)
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(name): Path<String>,
    asked: Result<Query<PageQuery>, QueryRejection>,
) -> Reply {
    let folder = folder(&name)?;
    let Query(asked) = asked.unwrap_or_default();
    let query = asked.query()?;
    let is_long = read(&service, |snapshot| {
        mail::is_long(snapshot, visitor.mailbox(), folder, &query)
    })?;
    let (user, caller) = (visitor.owner.clone(), visitor.owner.caller());
    let found = service.read(caller, is_long, move |snapshot| {
        let page = mail::list(snapshot, user.mailbox(), folder, &query)?;
        Ok::<_, MailError>((page, mail::all_folders(snapshot, user.mailbox())?))
    });
    let (page, folders) = found.await?;
    let name = name_of(&folders, folder);
    let list = List {
        visitor: &visitor,
        folder,
        folders: &folders,
        asked: &asked,
        page: &page,
        domain: service.auth.directory().domain(),
    };
    let main = html! {
        div.head {
            h1 { (name) }
            (list.search())
        }
        @if page.items.is_empty() { (list.nothing()) } @else { (list.form()) }
    };
    let name = name.to_owned();
    layout::mail_page(&service, &visitor, (folder, folders), &name, &main)
}

fn name_of(folders: &[FolderLine], folder: Folder) -> &str {
    let found = folders.iter().find(|line| line.folder == folder);
    found.map_or("Folder", |line| line.name.as_str())
}

struct List<'a> {
    visitor: &'a SignedIn,
    folder: Folder,
    folders: &'a [FolderLine],
    asked: &'a PageQuery,
    page: &'a Page<Listed>,
    /// The domain of this server's users.
    domain: &'a str,
}

impl List<'_> {
    fn search(&self) -> Markup {
        html! {
            form.search method="get" action=(path(self.folder)) role="search" {
                label.unseen for="find" { "Find in this folder" }
                input #find type="search" name="find" value=(self.asked.find) placeholder="Find"
                    maxlength="100" autocomplete="off";
                button type="submit" { "Find" }
            }
        }
    }

    fn nothing(&self) -> Markup {
        let is_past_the_end = self.page.total > 0 && self.page.first > 0;
        html! {
            p.empty {
                @if !self.asked.find.trim().is_empty() {
                    "No mail here with “" (self.asked.find) "” in its subject or people. "
                    a href=(path(self.folder)) { "Show all" }
                } @else if is_past_the_end {
                    "There are no mails this far back. "
                    a href=(path(self.folder)) { "Show the newest" }
                } @else {
                    (match self.folder {
                        Folder::Inbox => "Nothing here: you have read and filed everything.",
                        Folder::Sent => "You have not sent a mail yet.",
                        Folder::Drafts => "No draft waits to be finished.",
                        Folder::Trash => "The trash is empty.",
                        Folder::Archive | Folder::Own(_) => "Nothing here yet.",
                    })
                }
            }
        }
    }

    fn form(&self) -> Markup {
        let visitor = self.visitor;
        html! {
            form.mails method="post" action=(self.asked.path(self.folder, self.asked.page)) {
                (layout::proof(visitor))
                (self.tools())
                table {
                    caption.unseen { (name_of(self.folders, self.folder)) }
                    colgroup { col.pick; col.people; col.subject; col.date; }
                    thead.unseen { tr {
                        th scope="col" { "Select" }
                        th scope="col" { (if self.shows_recipients() { "To" } else { "From" }) }
                        th scope="col" { "Subject" }
                        th scope="col" { "Date" }
                    } }
                    tbody { @for listed in &self.page.items { (self.row(listed)) } }
                }
                (self.pages())
            }
        }
    }

    fn shows_recipients(&self) -> bool {
        matches!(self.folder, Folder::Sent | Folder::Drafts)
    }

    fn tools(&self) -> Markup {
        let is_trash = self.folder == Folder::Trash;
        html! {
            div.tools {
                span.all data-select-all="" {}
                button type="submit" name="do" value="delete" {
                    @if is_trash { "Delete for good" } @else { "Delete" }
                }
                @if self.folder != Folder::Drafts {
                    button type="submit" name="do" value="read" { "Mark read" }
                    button type="submit" name="do" value="unread" { "Mark unread" }
                    span.move {
                        label.unseen for="to" { "Move to" }
                        select #to name="to" {
                            @for line in self.folders.iter().filter(|line| {
                                can_hold(line.folder) && line.folder != self.folder
                            }) { option value=(line.folder) { (line.name) } }
                        }
                        button type="submit" name="do" value="move" { "Move" }
                    }
                }
                @if is_trash {
                    button.danger type="submit" formaction="/trash/empty" { "Empty the trash" }
                }
            }
        }
    }

    fn row(&self, listed: &Listed) -> Markup {
        let (unid, entry) = (listed.unid, &listed.entry);
        let target = match self.folder {
            Folder::Drafts => format!("{}?draft={unid}", super::text::WRITE),
            _ => message_path(unid),
        };
        let people = match self.shows_recipients() {
            true => entry.summary.to.as_slice(),
            false => std::slice::from_ref(&entry.summary.from),
        };
        let is_nobody = people.iter().all(|person| person.shown().is_empty());
        let date = when(&self.visitor.zone, self.visitor.today, entry.date_s);
        let subject = subject(&entry.summary.subject);
        html! {
            tr.unread[!entry.read] {
                td.pick {
                    input type="checkbox" name="pick" value=(unid) aria-label={ "Select: " (subject) };
                }
                td.people {
                    @if is_nobody { "(nobody)" } @else {
                        @for (number, one) in people.iter().enumerate() {
                            @if number > 0 { ", " }
                            (person(one, self.domain))
                        }
                    }
                }
                td.subject {
                    (signs(entry.marks))
                    a href=(target) { (foreign(subject)) @if !entry.read { span.unseen { " (unread)" } } }
                    @if entry.attachments { (clip()) }
                }
                td.date { (date) }
            }
        }
    }

    fn pages(&self) -> Markup {
        let (asked, page) = (self.asked, self.page);
        let last = page.first + page.items.len();
        html! {
            nav.pages aria-label="Pages" {
                p { (page.first + 1) " – " (last) " of " (page.total) }
                @if asked.page > 0 {
                    a.button href=(asked.path(self.folder, asked.page - 1)) rel="prev" { "‹ Newer" }
                }
                @if last < page.total {
                    a.button href=(asked.path(self.folder, asked.page + 1)) rel="next" { "Older ›" }
                }
            }
        }
    }
}

/// A person in a list. The sender chooses the name, so a remote domain is shown behind it.
fn person(person: &Person, server: &str) -> Markup {
    let shown = person.shown();
    let domain = person.email.rsplit_once('@').map(|(_, domain)| domain);
    let is_from_here = |it: &str| it.trim_end_matches('.').eq_ignore_ascii_case(server);
    let elsewhere = domain.filter(|it| shown != person.email && !is_from_here(it));
    html! {
        @match elsewhere {
            None => (foreign(shown)),
            Some(domain) => span.stranger {
                (foreign(shown)) " " span.address { "<" (foreign(&end_of(domain))) ">" }
            },
        }
    }
}

/// The end of a long domain: its owner chooses the labels at the start.
fn end_of(domain: &str) -> Cow<'_, str> {
    const MOST: usize = 20;
    match domain.char_indices().rev().nth(MOST - 1) {
        Some((at, _)) if at > 0 => Cow::Owned(format!("…{}", &domain[at..])),
        _ => Cow::Borrowed(domain),
    }
}

/// The icon of attachments.
fn clip() -> Markup {
    html! {
        svg.clip viewBox="0 0 16 16" role="img" aria-label="with files" {
            path d="M11 4.5 5.8 9.7a1.6 1.6 0 0 0 2.3 2.3l5-5a3 3 0 0 0-4.3-4.3L3.4 8.1a4.4 4.4 0 0 0 6.2 6.2L13 11" {}
        }
    }
}

/// The icons of a mail's marks.
pub(crate) fn signs(marks: Marks) -> Markup {
    let signs = [
        (marks.flagged, "★", "important"),
        (marks.answered, "↩", "answered"),
        (marks.forwarded, "↪", "passed on"),
    ];
    html! {
        @for (_, sign, name) in signs.into_iter().filter(|(is_set, ..)| *is_set) {
            span.sign role="img" aria-label=(name) title=(name) { (sign) }
        }
    }
}

/// Returns true if mails can be moved to this folder; the trash has its own button.
pub(crate) fn can_hold(folder: Folder) -> bool {
    !matches!(folder, Folder::Drafts | Folder::Sent | Folder::Trash)
}

/// The text in a list, with a placeholder for an empty subject.
pub(crate) fn subject(subject: &str) -> &str {
    match subject.trim() {
        "" => "(no subject)",
        subject => subject,
    }
}

/// Returns the selected mails.
///
/// # Errors
/// When a value is no mail's id.
fn picked(fields: &Fields) -> Result<Vec<Unid>, PageError> {
    let picked = fields.all("pick").map(Unid::parse);
    picked.collect::<Option<_>>().ok_or(PageError::Unreadable)
}

pub(crate) async fn change(
    State(service): State<Service>,
    Path(name): Path<String>,
    asked: Result<Query<PageQuery>, QueryRejection>,
    sent: Sent,
) -> Reply {
    let folder = folder(&name)?;
    let Query(asked) = asked.unwrap_or_default();
    let back = asked.path(folder, asked.page);
    let unids = picked(&sent.fields)?;
    if unids.is_empty() {
        return Err(PageError::Refused(
            422,
            "Tick the mails first that this is about. Nothing was changed.".to_owned(),
        ));
    }
    let action = sent.fields.get("do");
    if action == "delete" && folder == Folder::Trash && !sent.fields.has("sure") {
        return confirm(&service, &sent.visitor, &back, &unids);
    }
    let notice = act(&service, &sent.visitor, (folder, &unids), &sent.fields).await?;
    Ok(layout::done(&back, notice))
}

/// Performs the action of a form on mails of a folder; returns the notice to show.
///
/// # Errors
/// When the action fails, or is unknown.
pub(crate) async fn act(
    service: &Service,
    visitor: &SignedIn,
    (from, unids): (Folder, &[Unid]),
    fields: &Fields,
) -> Result<Notice, PageError> {
    let notice = match fields.get("do") {
        "delete" => {
            let for_good = from == Folder::Trash;
            commit(service, &visitor.owner, |context| {
                mail::delete(context, unids, for_good)
            })
            .await?;
            match for_good {
                true => Notice::Deleted,
                false => Notice::MovedToTrash,
            }
        }
        "move" => {
            let to = folder(fields.get("to"))?;
            commit(service, &visitor.owner, |context| {
                mail::move_to(context, unids, to)
            })
            .await?;
            Notice::Moved
        }
        action => {
            let (marking, notice) = marking(action).ok_or(PageError::Unreadable)?;
            commit(service, &visitor.owner, |context| {
                mail::mark_as(context, unids, &marking)
            })
            .await?;
            notice
        }
    };
    Ok(notice)
}

/// The marks that a form requests, and the notice to show.
fn marking(action: &str) -> Option<(Marking, Notice)> {
    let read = |read| Marking {
        read: Some(read),
        ..Marking::default()
    };
    let flagged = |flagged| Marking {
        flagged: Some(flagged),
        ..Marking::default()
    };
    Some(match action {
        "read" => (read(true), Notice::MarkedRead),
        "unread" => (read(false), Notice::MarkedUnread),
        "important" => (flagged(true), Notice::MarkedImportant),
        "unimportant" => (flagged(false), Notice::MarkedUnimportant),
        _ => return None,
    })
}

/// Asks for confirmation before mails are deleted for good.
pub(crate) fn confirm(
    service: &Service,
    visitor: &SignedIn,
    action: &str,
    unids: &[Unid],
) -> Reply {
    let question = "Delete for good?";
    let main = html! {
        h1 { (question) }
        p.lead { @match unids.len() { 1 => "One mail", number => { (number) " mails" } } " can't be brought back then." }
        form method="post" action=(action) {
            (layout::proof(visitor))
            @for unid in unids { input type="hidden" name="pick" value=(unid); }
            input type="hidden" name="sure" value="1";
            div.actions {
                button.danger type="submit" name="do" value="delete" { "Delete for good" }
                a.button.quiet href=(action) { "Keep" }
            }
        }
    };
    layout::page(
        service,
        visitor,
        NavItem::Mail(Some(Folder::Trash)),
        question,
        &main,
    )
}

pub(crate) async fn empty_trash(State(service): State<Service>, sent: Sent) -> Reply {
    let visitor = &sent.visitor;
    let trash = path(Folder::Trash);
    if !sent.fields.has("sure") {
        let counts = read(&service, |snapshot| {
            mail::counts(snapshot, visitor.mailbox(), Folder::Trash)
        })?;
        let question = "Empty the trash?";
        let main = html! {
            h1 { (question) }
            p.lead { @match counts.messages { 1 => "One mail", number => { (number) " mails" } } " can't be brought back then." }
            form method="post" action="/trash/empty" {
                (layout::proof(visitor))
                input type="hidden" name="sure" value="1";
                div.actions {
                    button.danger type="submit" { "Empty the trash" }
                    a.button.quiet href=(trash) { "Keep" }
                }
            }
        };
        return layout::page(
            &service,
            visitor,
            NavItem::Mail(Some(Folder::Trash)),
            question,
            &main,
        );
    }
    change_in_slices(&service, &visitor.owner, |context| {
        mail::empty(context, Folder::Trash)
    })
    .await?;
    Ok(layout::done(&trash, Notice::TrashEmptied))
}

/// The day and time of a mail, in full.
pub(crate) fn full_date(visitor: &SignedIn, second: i64) -> String {
    let clock = visitor.zone.clock(second);
    format!(
        "{}, {} ({})",
        zone::long_day(clock.date()),
        zone::time(clock),
        visitor.zone.place()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_their_domain_beside_their_name() {
        let check = |name: &str, email: &str, expected: &str| {
            let one = Person {
                name: name.to_owned(),
                email: email.to_owned(),
            };
            let shown = person(&one, "pier.example").into_string();
            assert_eq!(shown, expected, "{name} {email}");
        };
        let stranger = |name: &str, domain: &str| {
            format!(
                "<span class=\"stranger\"><bdi>{name}</bdi> \
                 <span class=\"address\">&lt;<bdi>{domain}</bdi>&gt;</span></span>"
            )
        };
        check("Boss", "boss@pier.example", "<bdi>Boss</bdi>");
        check("Boss", "boss@PIER.example.", "<bdi>Boss</bdi>");
        check("Boss", "boss", "<bdi>Boss</bdi>");
        check("", "x@evil.example", "<bdi>x@evil.example</bdi>");
        check(
            "boss@pier.example",
            "x@evil.example",
            "<bdi>x@evil.example</bdi>",
        );
        check("Boss", "x@evil.example", &stranger("Boss", "evil.example"));
        check(
            "Boss",
            "pier.example@evil.example",
            &stranger("Boss", "evil.example"),
        );
        check(
            "Boss",
            "x@pier.example.of.a.very.evil.example",
            &stranger("Boss", "….a.very.evil.example"),
        );
    }
}
