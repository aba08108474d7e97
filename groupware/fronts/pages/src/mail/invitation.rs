//! The invitation that a mail brings: what it says, and the buttons for an answer.

use groupware_calendar::{self as calendar, CalendarError, Entry, MailInvitation, State as Stand};
use groupware_mail::Part;
use groupware_service::Service;
use groupware_service::calendar::read;
use groupware_store::Snapshot;
use maud::{Markup, html};

use super::text::message_path;
use crate::agenda;
use crate::error::PageError;
use crate::layout;
use crate::meeting::facts;
use crate::visitor::SignedIn;

/// The largest part that is read.
const PART_BYTES: usize = calendar::limits::OBJECT_BYTES;

/// The first of the parts that is an event, for the user of this address.
pub(super) fn of(parts: &[Part<'_>], owner: &str, now: i64) -> Option<MailInvitation> {
    const KINDS: [&str; 2] = ["text/calendar", "application/ics"];
    let mut calendars = parts
        .iter()
        .filter(|part| KINDS.contains(&part.kind.as_str()));
    calendars.find_map(|part| {
        let text = part.text();
        (text.len() <= PART_BYTES).then(|| MailInvitation::read(&text, owner, now))?
    })
}

/// What is on the visitor's calendar of the same event.
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

/// The event with the buttons for an answer.
///
/// # Errors
/// The store's.
pub(super) fn panel(
    service: &Service,
    visitor: &SignedIn,
    (unid, invitation): (groupware_mail::Unid, &MailInvitation),
) -> Result<Markup, PageError> {
    let held = held(service, visitor, invitation.uid())?;
    let is_known_here = held
        .as_ref()
        .is_some_and(|entry| entry.imported().is_none());
    let is_own = held.as_ref().is_some_and(|entry| entry.state == Stand::Own);
    let organizer = &invitation.entry().event.organizer.email;
    let action = format!("{}/invitation", message_path(unid));
    Ok(html! {
        section.event aria-label="Invitation" {
            h2 { bdi { (agenda::title(invitation.entry())) } }
            (facts(visitor, invitation.entry()))
            @if let Some(entry) = &held {
                p.stand { "It is in " a href=(agenda::path(entry)) { "your calendar" } "." }
            }
            @if !is_own {
                form.answers method="post" action=(action) {
                    (layout::proof(visitor))
                    div.actions role="group" aria-label="Your answer" {
                        @if invitation.is_request() {
                            button.primary type="submit" name="answer" value="accept" { "Accept" }
                            button type="submit" name="answer" value="tentative" { "Maybe" }
                            button type="submit" name="answer" value="decline" { "Decline" }
                        } @else {
                            button.primary type="submit" name="answer" value="accept" { "Add to calendar" }
                        }
                    }
                }
                @if invitation.is_request() && !is_known_here {
                    p.hint {
                        "Your answer is kept in your calendar. This server doesn't send it to "
                        bdi { (organizer) } ": reply to the mail to let them know."
                    }
                }
            }
        }
    })
}
