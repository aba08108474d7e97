//! The form of a new or changed event.
//!
//! The form is converted to the JSON that programs send, so that one parser decides whether an event is
//! valid. This module only checks whether each field can be parsed, to show errors beside it.

mod draft;
mod people;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Entry, State as Stand, UpdateOptions};
use groupware_http::Fault;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use self::draft::Draft;
pub(crate) use self::people::{directory_list, unknown};
use groupware_service::Service;
use groupware_service::calendar::{change, read};

use super::agenda;
use super::field::{Input, Wrong, area};
use super::form::Sent;
use super::layout::{self, NavItem};
use super::notice::Notice;
use super::visitor::SignedIn;
use super::zone;
use crate::error::PageError;

type Reply = Result<Response, PageError>;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct NewEventQuery {
    #[serde(default)]
    day: String,
}

pub(crate) async fn show_new(
    State(service): State<Service>,
    visitor: SignedIn,
    asked: Result<Query<NewEventQuery>, QueryRejection>,
) -> Reply {
    let day = asked
        .ok()
        .and_then(|Query(asked)| zone::parse_day(&asked.day));
    let draft = Draft::new(&visitor, day);
    form(&service, &visitor, &draft, None, &Wrong::default(), None)
}

pub(crate) async fn create(State(service): State<Service>, sent: Sent) -> Reply {
    let Sent { visitor, fields } = sent;
    let draft = Draft::sent(&fields);
    let mut wrong = Wrong::default();
    let new = draft.read(&service, &visitor.zone, &mut wrong);
    let Some(new) = new.filter(|_| wrong.is_empty()) else {
        return form(&service, &visitor, &draft, None, &wrong, None);
    };
    let new = match new {
        Ok(new) => new,
        Err(error) => return refused(&service, &visitor, &draft, None, error.into()),
    };
    let made = change(&service, &visitor.owner, |context| {
        calendar::create(context, new.clone(), true)
    })
    .await;
    match made {
        Ok(entry) => {
            let entry = entry.ok_or_else(|| {
                PageError::Broken(Fault::with_message("the change gave no entry"))
            })?;
            let notice = match entry.event.is_meeting() {
                true => Notice::MeetingCreated,
                false => Notice::EventCreated,
            };
            Ok(layout::done(&agenda::path(&entry), notice))
        }
        Err(failure) => refused(&service, &visitor, &draft, None, failure.into()),
    }
}

pub(crate) async fn show_old(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(uid): Path<String>,
) -> Reply {
    let entry = own(&service, &visitor, &uid)?;
    let draft = Draft::of(&entry, &visitor.zone);
    form(
        &service,
        &visitor,
        &draft,
        Some(&entry),
        &Wrong::default(),
        None,
    )
}

/// Returns an event that its owner may change.
fn own(service: &Service, visitor: &SignedIn, uid: &str) -> Result<Entry, PageError> {
    let entry = read(service, |snapshot| {
        calendar::entry(snapshot, visitor.mailbox(), uid)
    })?;
    match entry.state {
        Stand::Own => Ok(entry),
        Stand::Imported(ref imported)
            if imported.can_change() && entry.recurrence_id().is_none() =>
        {
            Ok(entry)
        }
        Stand::Imported(_) => Err(PageError::Refused(
            403,
            "This was imported, and can't be changed here: it can be downloaded and deleted."
                .to_owned(),
        )),
        _ => Err(PageError::Refused(
            403,
            "Only the organizer can change this meeting.".to_owned(),
        )),
    }
}

pub(crate) async fn update(
    State(service): State<Service>,
    Path(uid): Path<String>,
    sent: Sent,
) -> Reply {
    let Sent { visitor, fields } = sent;
    let old = own(&service, &visitor, &uid)?;
    let draft = Draft::sent(&fields);
    let mut wrong = Wrong::default();
    let new = draft.read(&service, &visitor.zone, &mut wrong);
    let Some(new) = new.filter(|_| wrong.is_empty()) else {
        return form(&service, &visitor, &draft, Some(&old), &wrong, None);
    };
    let mut new = match new {
        Ok(new) => new,
        Err(error) => return refused(&service, &visitor, &draft, Some(&old), error.into()),
    };
    draft::keep_the_rest(&old, &Draft::of(&old, &visitor.zone), &draft, &mut new);
    // A missing description is an empty one here: the form shows it.
    let options = UpdateOptions {
        literally: true,
        seen: draft.seen,
        ..UpdateOptions::default()
    };
    let changed = change(&service, &visitor.owner, |context| {
        calendar::update(context, &uid, new.clone(), options)
    })
    .await;
    match changed {
        Ok(entry) => {
            let entry = entry.ok_or_else(|| {
                PageError::Broken(Fault::with_message("the change gave no entry"))
            })?;
            let notice = match entry.event.is_meeting() && entry.imported().is_none() {
                true => Notice::MeetingChanged,
                false => Notice::EventChanged,
            };
            Ok(layout::done(&agenda::path(&entry), notice))
        }
        Err(failure) => refused(&service, &visitor, &draft, Some(&old), failure.into()),
    }
}

/// A refusal of the calendar is shown above the form, which keeps the input.
fn refused(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    old: Option<&Entry>,
    error: PageError,
) -> Reply {
    match error {
        PageError::Refused(409, _) if old.is_some() => {
            let text = "The event was changed meanwhile, by you elsewhere or by an answer to it. \
                        Open it again and make your change there.";
            form(
                service,
                visitor,
                draft,
                old,
                &Wrong::default(),
                Some((409, text)),
            )
        }
        PageError::Refused(status, text) => form(
            service,
            visitor,
            draft,
            old,
            &Wrong::default(),
            Some((status, &text)),
        ),
        error => Err(error),
    }
}

fn form(
    service: &Service,
    visitor: &SignedIn,
    draft: &Draft,
    old: Option<&Entry>,
    wrong: &Wrong,
    trouble: Option<(u16, &str)>,
) -> Reply {
    let (title, action, back) = match old {
        None => (
            "New event",
            "/calendar/new".to_owned(),
            "/calendar".to_owned(),
        ),
        Some(entry) => {
            let path = agenda::path(entry);
            ("Change event", format!("{path}/edit"), path)
        }
    };
    let main = html! {
        h1 { (title) }
        @if let Some((_, text)) = trouble { p.wrong-summary role="alert" { (text) } }
        (wrong.summary())
        form.sheet method="post" action=(action) {
            (layout::proof(visitor))
            @if let Some(sequence) = draft.sequence { input type="hidden" name="sequence" value=(sequence); }
            @if let Some(seen) = draft.seen { input type="hidden" name="seen" value=(seen); }
            (fields(service, visitor, (draft, old), wrong))
            div.actions {
                button.primary type="submit" { @if old.is_some() { "Save" } @else { "Add to calendar" } }
                a.button.quiet href=(back) { "Cancel" }
            }
        }
    };
    let status = match (trouble, wrong.is_empty()) {
        (Some((status, _)), _) => StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
        (None, true) => StatusCode::OK,
        (None, false) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    layout::page_with(service, visitor, (NavItem::Calendar, status), title, &main)
}

fn fields(
    service: &Service,
    visitor: &SignedIn,
    (draft, old): (&Draft, Option<&Entry>),
    wrong: &Wrong,
) -> Markup {
    let imported = old.and_then(Entry::imported);
    html! {
        (Input {
            autofocus: true,
            ..Input::text("title", "Title", &draft.title)
        }.render(wrong))
        @match imported {
            Some(imported) if imported.recurs() => (same_times(draft)),
            _ => (times(visitor, draft, wrong)),
        }
        (Input::text("place", "Place", &draft.place).render(wrong))
        // This server doesn't notify invitees of an imported event.
        @if imported.is_none() {
            (Input {
                hint: Some("Names or addresses, with commas between them. They are invited."),
                list: Some("people-list"),
                max: 20_000,
                ..Input::text("people", "People", &draft.people)
            }.render(wrong))
            (directory_list(service, visitor))
        }
        (area("about", "Notes", &draft.about, 6, wrong))
    }
}

/// The times of a series, which can't be changed.
fn same_times(draft: &Draft) -> Markup {
    let times = [
        ("start_day", &draft.start_day),
        ("start_time", &draft.start_time),
        ("end_day", &draft.end_day),
        ("end_time", &draft.end_time),
    ];
    html! {
        @for (name, value) in times { input type="hidden" name=(name) value=(value); }
        @if draft.all_day { input type="hidden" name="all_day" value="1"; }
        p.hint { "All events of the series change. Their times stay as they are." }
    }
}

fn times(visitor: &SignedIn, draft: &Draft, wrong: &Wrong) -> Markup {
    let kind = |kind, input| Input { kind, ..input };
    html! {
        fieldset.when {
            legend { "When" }
            div.pair {
                (kind("date", Input::text("start_day", "Starts on", &draft.start_day)).render(wrong))
                (kind("time", Input::text("start_time", "at", &draft.start_time)).render(wrong))
            }
            div.pair {
                (kind("date", Input::text("end_day", "Ends on", &draft.end_day)).render(wrong))
                (kind("time", Input::text("end_time", "at", &draft.end_time)).render(wrong))
            }
            div.tick {
                input #all_day type="checkbox" name="all_day" value="1" checked[draft.all_day];
                label for="all_day" { "All day" }
            }
            p.hint { "Times in " (visitor.zone.name().replace('_', " ")) "." }
        }
    }
}
