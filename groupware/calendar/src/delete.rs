//! Deletes an event and updates the other members of the meeting.

use std::sync::Arc;

use crate::{
    Answer, CalendarError, Context, Decision, Entry, Event, State,
    mailbox::{self, Changes, HeldEntry},
    read::{refuse_ghost, refuse_kept},
};

/// Removes an event from the owner's calendar.
///
/// With `workflow`, the same batch notifies the others. If the owner is the organizer, unanswered invitations
/// disappear, and accepted or tentative copies are marked cancelled and become free time, so that no appointment
/// vanishes unseen; deleting a cancelled copy removes it. If the owner is an attendee, the organizer sees a decline.
/// Without `workflow`, no notifications are sent.
///
/// # Errors
/// 404; 400 for an invitation that is not accepted yet.
pub fn delete(context: &Context<'_>, uid: &str, workflow: bool) -> Result<Decision, CalendarError> {
    let held = mailbox::require(context.snapshot, context.mailbox, uid)?;
    refuse_ghost(&held.entry)?;
    if held.entry.recurrence_id().is_some() {
        // Removing one instance of a series would change an object that is stored unchanged.
        refuse_kept(&held.entry)?;
    }
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, Some(&held), None);
    if workflow {
        match held.entry.state {
            State::Own => {
                let event = &held.entry.event;
                mailbox::prefetch(context.snapshot, event.invited_users(), &event.uid)?;
                for user in held.entry.event.invited_users() {
                    withdraw(context, &mut changes, &held.entry.event, user)?;
                }
            }
            State::Accepted | State::Tentative => {
                tell_organizer(context, &mut changes, &held, Answer::Declined)?;
            }
            State::Cancelled | State::Invited { .. } | State::Imported(_) => {}
        }
    }
    Ok(Decision {
        batch: changes.into_batch(),
        entry: None,
    })
}

/// Withdraws a meeting from an attendee's calendar: an unanswered invitation disappears, an accepted copy is marked
/// cancelled.
pub(crate) fn withdraw(
    context: &Context<'_>,
    changes: &mut Changes,
    event: &Event,
    user: &str,
) -> Result<(), CalendarError> {
    let Some(held) = mailbox::load(context.snapshot, user, &event.uid)? else {
        return Ok(());
    };
    if !context.is_of_organizer(&held.entry.event, event)? {
        return Ok(());
    }
    match held.entry.state {
        State::Invited { .. } => changes.replace(user, &event.uid, Some(&held), None),
        State::Accepted | State::Tentative => {
            let mut copy = Entry {
                state: State::Cancelled,
                event: Arc::clone(&held.entry.event),
            };
            Arc::make_mut(&mut copy.event).modified = context.now;
            changes.replace(user, &event.uid, Some(&held), Some(&copy));
        }
        State::Cancelled | State::Own | State::Imported(_) => {}
    }
    Ok(())
}

/// The organizer's own entry of a meeting that the owner holds a copy of.
pub(crate) fn organizers_entry(
    context: &Context<'_>,
    copy: &Entry,
) -> Result<Option<HeldEntry>, CalendarError> {
    let event = &copy.event;
    if !context.has_its_organizer(event)? {
        return Ok(None);
    }
    let held = mailbox::load(context.snapshot, &event.organizer.user, &event.uid)?;
    Ok(held.filter(|held| held.entry.state == State::Own))
}

/// Records the owner's reply in the organizer's copy. Does nothing if the organizer has dropped the meeting, or the
/// owner from it, without a notification.
pub(crate) fn tell_organizer(
    context: &Context<'_>,
    changes: &mut Changes,
    copy: &HeldEntry,
    answer: Answer,
) -> Result<Option<Arc<Event>>, CalendarError> {
    let Some(held) = organizers_entry(context, &copy.entry)? else {
        return Ok(None);
    };
    let mut entry = held.entry.clone();
    let Some(attendee) = Arc::make_mut(&mut entry.event).attendee_mut(context.mailbox) else {
        return Ok(None);
    };
    attendee.status = answer;
    if answer != Answer::Delegated {
        attendee.delegated_to = None;
    }
    let organizer = entry.event.organizer.user.clone();
    changes.replace(&organizer, &entry.event.uid, Some(&held), Some(&entry));
    Ok(Some(entry.event))
}
