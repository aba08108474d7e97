//! Imported entries that are no events: tasks, journals. Months don't show them, so they have a page of their own.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Entry, Imported};
use groupware_service::Service;
use groupware_service::calendar::read;
use groupware_text::push_encoded;
use maud::{Markup, html};
use serde::Deserialize;

use crate::agenda;
use crate::calendar_path::OTHERS;
use crate::error::PageError;
use crate::layout::{self, NavItem};
use crate::meeting::{download, when};
use crate::visitor::SignedIn;

/// Entries per page.
const SHOWN: usize = 50;

type Reply = Result<Response, PageError>;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct After {
    after: Option<String>,
}

pub(crate) async fn list(
    State(service): State<Service>,
    visitor: SignedIn,
    asked: Result<Query<After>, QueryRejection>,
) -> Reply {
    let after = asked.ok().and_then(|Query(asked)| asked.after);
    let (entries, has_more) = read(&service, |snapshot| {
        let behind =
            |uid: Option<&str>, most| calendar::others(snapshot, visitor.mailbox(), uid, most);
        let entries = behind(after.as_deref(), SHOWN)?;
        let last = entries.last().map(|entry| entry.event.uid.clone());
        let has_more = last.is_some() && !behind(last.as_deref(), 1)?.is_empty();
        Ok((entries, has_more))
    })?;
    let title = "Tasks and journals";
    let main = html! {
        p.way { a href="/calendar" { "‹ Calendar" } }
        div.head { h1 { (title) } }
        @if entries.is_empty() {
            p.empty { @if after.is_some() { "No more." } @else { "There are none." } }
        } @else {
            p.lead {
                "They came with calendars that were imported, and are kept as they came. What is \
                 exported, and the archive of your data, has them."
            }
            ul.invitations { @for entry in &entries { (line(&visitor, entry)) } }
            @if has_more { p.lead { a.button href=(behind(&entries)) { "More" } } }
        }
    };
    layout::page(&service, &visitor, NavItem::Calendar, title, &main)
}

fn line(visitor: &SignedIn, entry: &Entry) -> Markup {
    let path = agenda::path(entry);
    let title = agenda::title(entry);
    html! {
        li {
            div.about {
                h2 { a href=(path) { (title) } }
                p.when {
                    (entry.imported().map_or("Entry", word))
                    @if agenda::is_dated(entry) { ", " (when(entry, &visitor.zone)) }
                }
            }
            div.actions {
                (download(visitor, entry))
                a.button.danger href={ (path) "/delete" } { "Delete" span.unseen { " " (title) } }
            }
        }
    }
}

/// The kind of an entry, as a title.
fn word(imported: &Imported) -> &'static str {
    match imported.kind() {
        "task" => "Task",
        "journal" => "Journal",
        _ => "Entry",
    }
}

/// The path of the next page.
fn behind(entries: &[Entry]) -> String {
    let mut path = format!("{OTHERS}?after=");
    let last = entries.last().map_or("", |entry| &entry.event.uid);
    push_encoded(&mut path, last, b"");
    path
}
