//! Invitations that await an answer.

use axum::extract::{Path, State};
use axum::response::Response;
use groupware_calendar::{self as calendar, Entry, State as Stand, Target};
use groupware_service::Service;
use groupware_service::calendar::read;
use maud::{Markup, html};

use crate::agenda;
use crate::error::PageError;
use crate::form::Sent;
use crate::layout::{self, NavItem};
use crate::meeting::{AnswerForm, answers, facts, take_answer, when};
use crate::visitor::SignedIn;
use crate::zone;

type Reply = Result<Response, PageError>;

/// Most invitations of a page; the rest follows once these are answered.
const SHOWN: usize = 50;

pub(crate) async fn list(State(service): State<Service>, visitor: SignedIn) -> Reply {
    let (entries, count) = read(&service, |snapshot| {
        calendar::open_invitations(snapshot, visitor.mailbox(), SHOWN)
    })?;
    let rest = count.saturating_sub(entries.len());
    let main = html! {
        div.head { h1 { "Invitations" } }
        @if entries.is_empty() {
            p.empty { "No invitation waits for your answer. " a href="/calendar" { "Go to the calendar" } }
        } @else {
            ul.invitations {
                @for entry in &entries { (line(&visitor, entry)) }
            }
            @if rest > 0 { p.hint { "And " (rest) " more, which follow when you have answered these." } }
        }
    };
    layout::page(
        &service,
        &visitor,
        NavItem::Invitations,
        "Invitations",
        &main,
    )
}

fn line(visitor: &SignedIn, entry: &Entry) -> Markup {
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

fn load(service: &Service, visitor: &SignedIn, notice: &str) -> Result<Entry, PageError> {
    let entry = read(service, |snapshot| {
        calendar::invitation(snapshot, visitor.mailbox(), notice)
    })?;
    Ok(entry)
}

pub(crate) async fn show(
    State(service): State<Service>,
    visitor: SignedIn,
    Path(notice): Path<String>,
) -> Reply {
    let entry = load(&service, &visitor, &notice)?;
    render(&service, &visitor, &entry, &AnswerForm::default())
}

fn render(service: &Service, visitor: &SignedIn, entry: &Entry, asked: &AnswerForm<'_>) -> Reply {
    let title = agenda::title(entry);
    let main = html! {
        p.way { a href="/invitations" { "‹ Invitations" } }
        (asked.render())
        article.event {
            h1 { (title) }
            p.stand { "You have not answered yet." }
            (facts(visitor, entry))
            (answers(service, visitor, entry, asked))
        }
    };
    layout::page_with(
        service,
        visitor,
        (NavItem::Invitations, asked.status()),
        title,
        &main,
    )
}

pub(crate) async fn answer(
    State(service): State<Service>,
    Path(notice): Path<String>,
    sent: Sent,
) -> Reply {
    let Sent { visitor, fields } = sent;
    match take_answer(&service, &visitor, Target::Notice(&notice), &fields).await? {
        Ok(done) => Ok(layout::done("/invitations", done)),
        Err(asked) => render(
            &service,
            &visitor,
            &load(&service, &visitor, &notice)?,
            &asked,
        ),
    }
}
