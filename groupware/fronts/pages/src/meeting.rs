//! One event: its details, its attendees, and its owner's actions.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use groupware_calendar::{
    self as calendar, Action, ActionBody, Answer, Attendee, Entry, Imported, State as Stand,
    Status, Target,
};
use groupware_service::calendar::{change, read};
use groupware_service::{ChangeError, Service};
use http::StatusCode;
use jiff::civil::Time;
use maud::{Markup, html};

use crate::agenda::{self, Certainty};
use crate::calendar_path::{OTHERS, month_path};
use crate::edit::{directory_list, unknown};
use crate::error::PageError;
use crate::field::{Input, Wrong};
use crate::form::{Fields, Sent};
use crate::layout::{self, NavItem};
use crate::links::links;
use crate::notice::Notice;
use crate::visitor::SignedIn;
use crate::zone::{self, Zone};

type Reply = Result<Response, PageError>;

fn load(service: &Service, visitor: &SignedIn, uid: &str) -> Result<Entry, PageError> {
    let entry = read(service, |snapshot| {
        calendar::entry(snapshot, visitor.mailbox(), uid)
    })?;
    Ok(entry)
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(uid): Path<String>,
) -> Reply {
    let entry = load(&service, &visitor, &uid)?;
    if entry.notice().is_some() {
        return Ok(Redirect::to(&agenda::path(&entry)).into_response());
    }
    render(&service, &visitor, &entry, &AnswerForm::default())
}

/// A refused answer.
#[derive(Default)]
pub(crate) struct AnswerForm<'a> {
    pub(crate) delegate: &'a str,
    pub(crate) wrong: Wrong,
    pub(crate) trouble: Option<(u16, String)>,
}

impl AnswerForm<'_> {
    pub(crate) fn status(&self) -> StatusCode {
        match (&self.trouble, self.wrong.is_empty()) {
            (Some((status, _)), _) => {
                StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST)
            }
            (None, true) => StatusCode::OK,
            (None, false) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    pub(crate) fn render(&self) -> Markup {
        html! {
            @if let Some((_, text)) = &self.trouble { p.wrong-summary role="alert" { (text) } }
            (self.wrong.summary())
        }
    }
}

fn render(service: &Service, visitor: &SignedIn, entry: &Entry, asked: &AnswerForm<'_>) -> Reply {
    let title = agenda::title(entry);
    let path = agenda::path(entry);
    let start = visitor.zone.of_moment(&entry.event.details.start).date();
    let is_event = entry.imported().is_none_or(Imported::is_event);
    let is_cancelled = Certainty::of(entry) == Certainty::Cancelled;
    let main = html! {
        p.way {
            @if is_event { a href=(month_path(start)) { "‹ " (zone::month_name(start)) " " (start.year()) } }
            @else { a href=(OTHERS) { "‹ Tasks and journals" } }
        }
        (asked.render())
        article.event {
            h1 { @if is_cancelled { s { bdi { (title) } } } @else { bdi { (title) } } }
            (stand(entry))
            (status(entry))
            (facts(visitor, entry))
            @match entry.state {
                Stand::Own => div.actions {
                    a.button.primary href={ (path) "/edit" } { "Change" }
                    a.button.danger href={ (path) "/delete" } {
                        @if entry.event.is_meeting() { "Call off" } @else { "Delete" }
                    }
                },
                Stand::Cancelled => div.actions {
                    a.button href={ (path) "/delete" } { "Remove from calendar" }
                },
                Stand::Imported(ref imported) => div.actions {
                    @let series = agenda::series_path(entry);
                    @if imported.can_change() {
                        a.button.primary href={ (series) "/edit" } {
                            @if imported.recurs() { "Change the series" } @else { "Change" }
                        }
                    }
                    (download(visitor, entry))
                    a.button.danger href={ (series) "/delete" } { "Delete" }
                },
                _ => (answers(service, visitor, entry, asked)),
            }
        }
    };
    layout::page_with(
        service,
        visitor,
        (NavItem::Calendar, asked.status()),
        title,
        &main,
    )
}

fn stand(entry: &Entry) -> Markup {
    let text = match entry.state {
        Stand::Own => return html! {},
        Stand::Accepted => "You come.",
        Stand::Tentative => "You may come.",
        Stand::Cancelled => "The organizer has called this off.",
        Stand::Invited { .. } => "You have not answered yet.",
        Stand::Imported(ref imported) if !imported.is_shown() => {
            "Imported, and kept as it came. It can't be read to be shown here."
        }
        Stand::Imported(_) if entry.recurrence_id().is_some() => {
            "One of a series that was imported."
        }
        Stand::Imported(ref imported) => match imported.kind() {
            "task" => "A task that was imported.",
            "journal" => "A journal that was imported.",
            _ => match entry.own_answer() {
                Some(Answer::Accepted) => "You come.",
                Some(Answer::Tentative) => "You may come.",
                _ => "Imported.",
            },
        },
    };
    html! { p.stand { (text) } }
}

/// The event's status, unless it is confirmed.
fn status(entry: &Entry) -> Markup {
    let text = match (entry.event.details.status, &entry.state) {
        (_, Stand::Cancelled) | (Status::Confirmed, _) => return html! {},
        (Status::Cancelled, _) => "Cancelled: it doesn't take place.",
        (Status::Tentative, _) => "Tentative: it may not take place.",
    };
    html! { p.stand { (text) } }
}

/// A link to an imported entry's file, which has all that the page can't show.
pub(crate) fn download(visitor: &SignedIn, entry: &Entry) -> Markup {
    let mut path = calendar::event_path(visitor.mailbox(), &entry.event.uid);
    path.push_str("?format=icalendar");
    html! {
        a.button href=(path) download="event.ics" {
            "Download" span.unseen { " " (agenda::title(entry)) }
        }
    }
}

/// Time, place, people, and description.
pub(crate) fn facts(visitor: &SignedIn, entry: &Entry) -> Markup {
    let event = &entry.event;
    let text = |text: &Option<String>| {
        text.as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    html! {
        dl.facts {
            @if agenda::is_dated(entry) {
                dt { "When" }
                dd { (when(entry, &visitor.zone)) }
            }
            @if let Some(place) = text(&event.details.location) { dt { "Where" } dd { (links(&place)) } }
            @if event.is_meeting() {
                dt { "Organizer" }
                dd { (name(event.organizer.display_name.as_deref(), &event.organizer.email)) }
                dt { "People" }
                dd { ul.people {
                    @for person in &event.attendees {
                        @if person.user.as_ref() != Some(&event.organizer.user) { (attendee(person, entry)) }
                    }
                } }
            }
            @if let Some(url) = text(&event.details.url) { dt { "Link" } dd { (links(&url)) } }
            @if !event.details.categories.is_empty() {
                dt { "Labels" } dd { bdi { (event.details.categories.join(", ")) } }
            }
            @if let Some(about) = text(&event.details.description) {
                dt { "Notes" } dd.text { (links(&about)) }
            }
        }
    }
}

/// `Saturday, 21 November 2026, 09:00 – 10:00 (Berlin)`.
pub(crate) fn when(entry: &Entry, zone: &Zone) -> String {
    let details = &entry.event.details;
    let start = zone.of_moment(&details.start);
    let end = zone.of_moment(&details.end).max(start);
    let day = zone::long_day(start.date());
    if details.start.is_day() {
        let last = match end > start && end.time() == Time::midnight() {
            true => zone::days_after(end.date(), -1),
            false => end.date(),
        };
        return match last == start.date() {
            true => format!("{day}, all day"),
            false => format!("{day} – {}", zone::long_day(last)),
        };
    }
    let (from, to) = (zone::time(start), zone::time(end));
    let to = match (start == end, start.date() == end.date()) {
        (true, _) => String::new(),
        (_, true) => format!(" – {to}"),
        _ => format!(" – {}, {to}", zone::long_day(end.date())),
    };
    format!("{day}, {from}{to} ({})", zone.place())
}

/// A person's name with the address.
pub(crate) fn name(display: Option<&str>, email: &str) -> Markup {
    html! {
        @match display.filter(|name| !name.trim().is_empty()) {
            Some(name) => { bdi { (name) } " " span.address { "<" bdi { (email) } ">" } },
            None => bdi { (email) },
        }
    }
}

/// The text of an answer.
pub(crate) fn words(answer: Answer) -> &'static str {
    match answer {
        Answer::NeedsAction => "no answer yet",
        Answer::Accepted => "comes",
        Answer::Declined => "doesn't come",
        Answer::Tentative => "may come",
        Answer::Delegated => "sends somebody else",
    }
}

fn attendee(person: &Attendee, entry: &Entry) -> Markup {
    // The organizer of an imported event notifies its attendees.
    let is_untold = person.user.is_none() && entry.imported().is_none();
    let class = match person.status {
        Answer::NeedsAction => "open",
        Answer::Accepted => "yes",
        Answer::Declined | Answer::Delegated => "no",
        Answer::Tentative => "maybe",
    };
    let answer = match person.status {
        Answer::NeedsAction if is_untold => "not told: no user here",
        status => words(status),
    };
    html! {
        li {
            span.person { (name(person.display_name.as_deref(), &person.email)) }
            " " span class={ "answer " (class) } { (answer) }
            @if let Some(other) = &person.delegated_from { " " span.address { "for " (other) } }
        }
    }
}

/// The buttons of an answer, and the field for the delegate.
pub(crate) fn answers(
    service: &Service,
    visitor: &SignedIn,
    entry: &Entry,
    asked: &AnswerForm<'_>,
) -> Markup {
    let action = format!("{}/answer", agenda::path(entry));
    let pressed = |stand: bool| stand.then_some("true");
    html! {
        form.answers method="post" action=(action) {
            (layout::proof(visitor))
            div.actions role="group" aria-label="Your answer" {
                button.primary type="submit" name="answer" value="accept"
                    aria-pressed=[pressed(entry.state == Stand::Accepted)] { "Accept" }
                button type="submit" name="answer" value="tentative"
                    aria-pressed=[pressed(entry.state == Stand::Tentative)] { "Maybe" }
                button type="submit" name="answer" value="decline" { "Decline" }
            }
        }
        details.delegate open[!asked.delegate.is_empty() || !asked.wrong.is_empty()] {
            summary { "Send somebody else" }
            form method="post" action=(action) {
                (layout::proof(visitor))
                (Input {
                    list: Some("people-list"),
                    ..Input::text("delegate", "Who goes in your place", asked.delegate)
                }.render(&asked.wrong))
                (directory_list(service, visitor))
                button type="submit" name="answer" value="delegate" { "Delegate" }
            }
        }
    }
}

pub(crate) async fn answer(
    State(service): State<Service>,
    Path(uid): Path<String>,
    sent: Sent,
) -> Reply {
    let Sent { visitor, fields } = sent;
    match take_answer(&service, &visitor, Target::Event(&uid), &fields).await? {
        Ok(notice @ (Notice::Declined | Notice::Delegated)) => {
            Ok(layout::done("/calendar", notice))
        }
        Ok(notice) => {
            let entry = load(&service, &visitor, &uid)?;
            Ok(layout::done(&agenda::path(&entry), notice))
        }
        Err(asked) => render(&service, &visitor, &load(&service, &visitor, &uid)?, &asked),
    }
}

/// Carries out a form's answer; returns the notice to show, or the errors.
///
/// # Errors
/// When the event can't be answered, or the answer is unknown.
pub(crate) async fn take_answer<'f>(
    service: &Service,
    visitor: &SignedIn,
    target: Target<'_>,
    fields: &'f Fields,
) -> Result<Result<Notice, AnswerForm<'f>>, PageError> {
    let word = fields.get("answer");
    let (action, notice) = match word {
        "accept" => (Action::Accept, Notice::Accepted),
        "tentative" => (Action::Tentative, Notice::Tentative),
        "decline" => (Action::Decline, Notice::Declined),
        "delegate" => (Action::Delegate, Notice::Delegated),
        _ => return Err(PageError::Unreadable),
    };
    let mut asked = AnswerForm::default();
    let mut body = ActionBody::default();
    if action == Action::Delegate {
        asked.delegate = fields.trimmed("delegate");
        match asked.delegate {
            "" => asked.wrong.add("delegate", "Enter who goes in your place."),
            delegate => {
                if let Some(text) = unknown(service, delegate) {
                    asked.wrong.add("delegate", text);
                }
            }
        }
        if !asked.wrong.is_empty() {
            return Ok(Err(asked));
        }
        body.delegate_to = Some(asked.delegate.to_owned());
    }
    let done = change(service, &visitor.owner, |context| {
        calendar::answer(context, target, action, &body)
    })
    .await;
    match done {
        Ok(_) => Ok(Ok(notice)),
        Err(ChangeError::Decided(error)) if error.status() == 400 => {
            let text = error.to_string();
            match action {
                Action::Delegate => asked.wrong.add("delegate", text),
                _ => asked.trouble = Some((400, text)),
            }
            Ok(Err(asked))
        }
        Err(failure) => Err(failure.into()),
    }
}

pub(crate) async fn confirm_delete(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(uid): Path<String>,
) -> Reply {
    let entry = load(&service, &visitor, &uid)?;
    let words = Deletion::of(&entry);
    let path = agenda::path(&entry);
    let main = html! {
        h1 { (words.question) }
        p.lead {
            strong { (agenda::title(&entry)) }
            @if agenda::is_dated(&entry) { br; (when(&entry, &visitor.zone)) }
        }
        p { (words.effect) }
        form method="post" action={ (path) "/delete" } {
            (layout::proof(&visitor))
            div.actions {
                button.danger type="submit" { (words.button) }
                a.button.quiet href=(path) { "Keep it" }
            }
        }
    };
    layout::page(&service, &visitor, NavItem::Calendar, words.question, &main)
}

/// The meaning of a deletion, by the owner's role in the event.
struct Deletion {
    question: &'static str,
    effect: &'static str,
    button: &'static str,
    notice: Notice,
}

impl Deletion {
    fn of(entry: &Entry) -> Self {
        match entry.state {
            Stand::Own if entry.event.is_meeting() => Self {
                question: "Call off this meeting?",
                effect: "It goes from your calendar. Whoever accepted it sees that it is \
                         cancelled; invitations not answered yet disappear.",
                button: "Call it off",
                notice: Notice::MeetingCancelled,
            },
            Stand::Accepted | Stand::Tentative => Self {
                question: "Leave this meeting?",
                effect: "It goes from your calendar, and the organizer sees that you decline.",
                button: "Leave it",
                notice: Notice::MeetingLeft,
            },
            Stand::Imported(ref imported) if !imported.is_event() => Self {
                question: "Delete this entry?",
                effect: "It goes from what was imported and can't be brought back, unless it is \
                         imported again.",
                button: "Delete it",
                notice: Notice::Deleted,
            },
            Stand::Imported(ref imported) if imported.recurs() => Self {
                question: "Delete all events of this series?",
                effect: "They go from your calendar and can't be brought back, unless they are \
                         imported again.",
                button: "Delete them",
                notice: Notice::EventDeleted,
            },
            _ => Self {
                question: "Delete this event?",
                effect: "It goes from your calendar and can't be brought back.",
                button: "Delete it",
                notice: Notice::EventDeleted,
            },
        }
    }
}

pub(crate) async fn delete(
    State(service): State<Service>,
    Path(uid): Path<String>,
    sent: Sent,
) -> Reply {
    let visitor = sent.visitor;
    let entry = load(&service, &visitor, &uid)?;
    change(&service, &visitor.owner, |context| {
        calendar::delete(context, &uid, true)
    })
    .await?;
    let start = visitor.zone.of_moment(&entry.event.details.start).date();
    let next = match entry.imported().is_none_or(Imported::is_event) {
        true => month_path(start),
        false => OTHERS.to_owned(),
    };
    Ok(layout::done(&next, Deletion::of(&entry).notice))
}
