//! The iTIP message in a mail, an invitation, a cancellation, or an attendee's reply: its contents,
//! and the buttons for the recipient's actions.

use groupware_calendar::{
    self as calendar, CalendarError, Cancellation, Entry, MailInvitation, MailMessage, Reply,
    State as Stand,
};
use groupware_mail::Part;
use groupware_service::Service;
use groupware_service::calendar::read;
use groupware_store::Snapshot;
use maud::{Markup, html};

use super::text::{foreign, message_path};
use crate::agenda;
use crate::error::PageError;
use crate::layout;
use crate::links::links;
use crate::meeting::{facts, name, when, words};
use crate::visitor::SignedIn;

/// The largest part that is parsed.
const PART_BYTES: usize = calendar::limits::OBJECT_BYTES;

/// Returns the message in the first matching part, for the user of this address.
pub(super) fn of(parts: &[Part<'_>], owner: &str, now: i64) -> Option<MailMessage> {
    const KINDS: [&str; 2] = ["text/calendar", "application/ics"];
    let mut calendars = parts
        .iter()
        .filter(|part| KINDS.contains(&part.kind.as_str()));
    calendars.find_map(|part| {
        let text = part.text();
        (text.len() <= PART_BYTES).then(|| MailMessage::read(&text, owner, now))?
    })
}

/// Returns the same event on the visitor's calendar, if any.
fn held(service: &Service, visitor: &SignedIn, uid: &str) -> Result<Option<Entry>, PageError> {
    let found = read(service, |snapshot: &dyn Snapshot| {
        calendar::entry(snapshot, visitor.mailbox(), uid)
    });
    match found {
        Ok(entry) => Ok(Some(entry)),
        Err(CalendarError::Refused { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Shows the message of a mail from this address, with buttons.
///
/// # Errors
/// The errors of the store.
pub(super) fn panel(
    service: &Service,
    visitor: &SignedIn,
    (unid, message): (groupware_mail::Unid, &MailMessage),
    from: &str,
) -> Result<Markup, PageError> {
    let held = held(service, visitor, &message.entry().event.uid)?;
    let held = held.as_ref();
    let action = format!("{}/invitation", message_path(unid));
    let (label, said) = match message {
        MailMessage::Invitation(it) => ("Invitation", invitation(visitor, it, held, &action)),
        MailMessage::Cancellation(it) => ("Cancellation", cancellation(visitor, it, held, &action)),
        MailMessage::Reply(it) => ("Answer", reply(visitor, it, held, &action)),
    };
    let is_from_sender = from.eq_ignore_ascii_case(message.sender());
    Ok(html! {
        section.event aria-label=(label) {
            (said)
            @if !is_from_sender {
                p.hint { "The mail is from " (foreign(from)) ", not from " (foreign(message.sender())) "." }
            }
        }
    })
}

/// A form with buttons, each with its value and its text; the most common choice is first.
fn buttons(visitor: &SignedIn, action: &str, label: &str, buttons: &[(&str, &str)]) -> Markup {
    html! {
        form.answers method="post" action=(action) {
            (layout::proof(visitor))
            div.actions role="group" aria-label=(label) {
                @for (number, (value, text)) in buttons.iter().enumerate() {
                    button.primary[number == 0] type="submit" name="answer" value=(value) { (text) }
                }
            }
        }
    }
}

fn invitation(
    visitor: &SignedIn,
    invitation: &MailInvitation,
    held: Option<&Entry>,
    action: &str,
) -> Markup {
    let is_known_here = held.is_some_and(|entry| entry.imported().is_none());
    let is_own = held.is_some_and(|entry| entry.state == Stand::Own);
    let organizer = &invitation.entry().event.organizer.email;
    let choices: &[_] = match invitation.is_request() {
        true => &[
            ("accept", "Accept"),
            ("tentative", "Maybe"),
            ("decline", "Decline"),
        ],
        false => &[("accept", "Add to calendar")],
    };
    html! {
        h2 { (foreign(agenda::title(invitation.entry()))) }
        (facts(visitor, invitation.entry()))
        @if held.is_some() {
            p.stand { "It is in " (calendar_link(held, "your calendar")) "." }
        }
        @if !is_own {
            (buttons(visitor, action, "Your answer", choices))
            @if invitation.is_request() && !is_known_here {
                p.hint {
                    "Your answer is kept in your calendar. This server doesn't send it to "
                    bdi { (organizer) } ": reply to the mail to let them know."
                }
            }
        }
    }
}

fn cancellation(
    visitor: &SignedIn,
    cancellation: &Cancellation,
    held: Option<&Entry>,
    action: &str,
) -> Markup {
    let shown = described(cancellation.entry(), held);
    let choices = cancellation.choices(held);
    html! {
        h2 { s { (foreign(agenda::title(shown))) } }
        p.stand {
            @if cancellation.is_whole() { "The organizer has cancelled this event." }
            @else { "The organizer has cancelled this one event of a series." }
        }
        (facts(visitor, shown))
        @match choices {
            Ok(choices) => {
                @if choices.is_marked {
                    p.stand { "It is marked as cancelled in " (calendar_link(held, "your calendar")) "." }
                } @else {
                    p.stand { "It is in " (calendar_link(held, "your calendar")) "." }
                }
                @let possible = [
                    choices.can_remove.then_some(("remove", "Remove from calendar")),
                    (!choices.is_marked).then_some(("mark", "Mark as cancelled")),
                ];
                @let possible: Vec<_> = possible.into_iter().flatten().collect();
                @if !possible.is_empty() { (buttons(visitor, action, "Your copy", &possible)) }
            },
            Err(reason) => p.hint { (reason.to_string()) },
        }
    }
}

fn reply(visitor: &SignedIn, reply: &Reply, held: Option<&Entry>, action: &str) -> Markup {
    let attendee = reply.attendee();
    // Some programs put the reply into the title, and some omit the times.
    let shown = held.unwrap_or(reply.entry());
    let recorded = reply.recorded(held);
    html! {
        h2 { (foreign(agenda::title(shown))) }
        p {
            strong { (name(attendee.display_name.as_deref(), &attendee.email)) }
            " " (words(attendee.status))
            @if let Some(other) = &attendee.delegated_to { ": " (foreign(other)) }
            "."
        }
        @if let Some(comment) = reply.comment().map(str::trim).filter(|text| !text.is_empty()) {
            blockquote { (links(comment)) }
        }
        @if agenda::is_dated(shown) {
            dl.facts { dt { "When" } dd { (when(shown, &visitor.zone)) } }
        }
        @match recorded {
            Ok(known) => {
                @if known.status == attendee.status && known.delegated_to == attendee.delegated_to {
                    p.stand { "The answer is recorded in " (calendar_link(held, "your event")) "." }
                } @else {
                    @if held.is_some_and(|held| reply.is_outdated(held)) {
                        p.hint { "This answers an earlier version of the event than the one in your calendar." }
                    }
                    (buttons(visitor, action, "The answer", &[("record", "Record the answer")]))
                    p.hint { "The answer then stands in " (calendar_link(held, "your event")) ". Other people are not told." }
                }
            },
            Err(reason) => p.hint { (reason.to_string()) },
        }
    }
}

/// A link to the event on the calendar.
fn calendar_link(held: Option<&Entry>, words: &str) -> Markup {
    html! {
        @match held {
            Some(entry) => a href=(agenda::path(entry)) { (words) },
            None => (words),
        }
    }
}

/// The message's description of the event, or the calendar's if the message has no date.
fn described<'e>(sent: &'e Entry, held: Option<&'e Entry>) -> &'e Entry {
    match agenda::is_dated(sent) {
        true => sent,
        false => held.unwrap_or(sent),
    }
}
