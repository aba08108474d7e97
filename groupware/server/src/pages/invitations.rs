//! Invitations that wait for an answer.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Entry, State as Stand, Target};
use maud::{Markup, html};

use super::agenda;
use super::failure::PageError;
use super::form::Sent;
use super::layout::{self, Here};
use super::meeting::{Asked, answers, facts, take_answer, when};
use super::visitor::Visitor;
use super::zone;
use crate::AppState;
use crate::calendar::read;

type Reply = Result<Response, PageError>;

/// Invitations of one page; the rest follows when these are answered.
const SHOWN: usize = 50;

pub(super) async fn list(State(state): State<AppState>, visitor: Visitor) -> Reply {
    let entries = read(&state, |snapshot| {
        calendar::open_invitations(snapshot, visitor.mailbox())
    })?;
    let rest = entries.len().saturating_sub(SHOWN);
    let main = html! {
        div.head { h1 { "Invitations" } }
        @if entries.is_empty() {
            p.empty { "No invitation waits for your answer. " a href="/calendar" { "Go to the calendar" } }
        } @else {
            ul.invitations {
                @for entry in entries.iter().take(SHOWN) { (line(&visitor, entry)) }
            }
            @if rest > 0 { p.hint { "And " (rest) " more, which follow when you have answered these." } }
        }
    };
    layout::page(&state, &visitor, Here::Invitations, "Invitations", &main)
}

fn line(visitor: &Visitor, entry: &Entry) -> Markup {
    let organizer = &entry.event.organizer;
    let path = agenda::path(entry);
    let received = match entry.state {
        Stand::Invited { received, .. } => visitor.zone.clock(received).date(),
        _ => visitor.today,
    };
    html! {
        li {
            div.about {
                h2 { a href=(path) { (agenda::title(entry)) } }
                p.when { (when(entry, &visitor.zone)) }
                @if let Some(place) = entry.event.details.location.as_deref().filter(|place| !place.is_empty()) {
                    p.where { (place) }
                }
                p.from { "from " (organizer.display_name.as_deref().unwrap_or(&organizer.email)) ", "
                    (zone::short_day(received, visitor.today)) }
            }
            form.actions method="post" action={ (path) "/answer" } {
                (layout::proof(visitor))
                @let title = agenda::title(entry);
                button.primary type="submit" name="answer" value="accept" { "Accept" span.unseen { " " (title) } }
                button type="submit" name="answer" value="tentative" { "Maybe" span.unseen { " " (title) } }
                button type="submit" name="answer" value="decline" { "Decline" span.unseen { " " (title) } }
                a.button.quiet href=(path) { "More" span.unseen { " about " (title) } }
            }
        }
    }
}

fn load(state: &AppState, visitor: &Visitor, notice: &str) -> Result<Entry, PageError> {
    let entry = read(state, |snapshot| {
        calendar::invitation(snapshot, visitor.mailbox(), notice)
    })?;
    Ok(entry)
}

pub(super) async fn show(
    State(state): State<AppState>,
    visitor: Visitor,
    Path(notice): Path<String>,
) -> Reply {
    let entry = load(&state, &visitor, &notice)?;
    render(&state, &visitor, &entry, &Asked::default())
}

fn render(state: &AppState, visitor: &Visitor, entry: &Entry, asked: &Asked<'_>) -> Reply {
    let title = agenda::title(entry);
    let main = html! {
        p.way { a href="/invitations" { "‹ Invitations" } }
        (asked.render())
        article.event {
            h1 { (title) }
            p.stand { "You have not answered yet." }
            (facts(visitor, entry))
            (answers(state, visitor, entry, asked))
        }
    };
    layout::page_with(
        state,
        visitor,
        (Here::Invitations, asked.status()),
        title,
        &main,
    )
}

pub(super) async fn answer(
    State(state): State<AppState>,
    Path(notice): Path<String>,
    sent: Sent,
) -> Reply {
    let Sent { visitor, fields } = sent;
    match take_answer(&state, &visitor, Target::Notice(&notice), &fields).await? {
        Ok(done) => Ok(layout::done("/invitations", done)),
        Err(asked) => render(&state, &visitor, &load(&state, &visitor, &notice)?, &asked),
    }
}
