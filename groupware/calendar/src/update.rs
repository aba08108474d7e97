//! Changes an event and its attendees' copies.

use std::sync::Arc;

use crate::{
    Answer, Attendee, CalendarError, Context, Decision, Entry, Event, Ids, NewEvent, Reason, State,
    create::{invite, organizer, resolve_all, too_many_attendees},
    delete::withdraw,
    limits, line_edits,
    mailbox::{self, Changes},
    read::refuse_ghost,
    source,
};

/// The options of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateOptions {
    /// Notifies attendees. Otherwise, their copies stay unchanged.
    pub workflow: bool,
    /// A missing description means none, rather than the old one.
    pub literally: bool,
    /// The client's sequence is used unchanged, rather than incremented.
    pub strict_sequence: bool,
    /// For imported objects: the [fingerprint](crate::Imported::fingerprint) of the version that the client saw, if it
    /// sends one.
    pub seen: Option<u64>,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self {
            workflow: true,
            literally: false,
            strict_sequence: false,
            seen: None,
        }
    }
}

/// Replaces the owner's event by a new version and increments its sequence. Of an imported event, a few properties
/// change in its lines, without notifications.
///
/// Local attendees are updated in the same batch. If the time or place changed, they are asked again with a new notice,
/// and their replies are discarded, except that attendees who have delegated stay out. Otherwise their copies follow.
/// New attendees are invited; removed ones have the meeting withdrawn; a delegate stays as long as the delegator.
/// Replies in the client's list are ignored: attendees reply for themselves.
///
/// # Errors
/// 404; 400 for an invitation that was not accepted, for a meeting of another organizer, and for another UID than the
/// path's; 409 for a sequence older than the stored one, and if an imported object changed since the client saw it; 403
/// for unchangeable properties of an imported object.
pub fn update(
    context: &Context<'_>,
    uid: &str,
    new: NewEvent,
    options: UpdateOptions,
) -> Result<Decision, CalendarError> {
    let held = mailbox::require(context.snapshot, context.mailbox, uid)?;
    refuse_ghost(&held.entry)?;
    if held.entry.state != State::Own && held.entry.imported().is_none() {
        return Err(CalendarError::refused(
            Reason::ActionNotSupported,
            "Only the organizer can change this meeting.",
        ));
    }
    let given = new.uid.as_deref();
    if given.is_some_and(|given| given != held.entry.event.uid) {
        return Err(CalendarError::refused(
            Reason::BadIdentifier,
            "The identifier in the body is not the path's.",
        ));
    }
    if let Some(imported) = held.entry.imported() {
        let old = held.entry.event.sequence;
        let sequence = next_sequence(old, new.sequence, options.strict_sequence)?;
        // The organizer counts versions: the number of an external meeting stays through all changes here.
        if options
            .seen
            .is_some_and(|seen| seen != imported.fingerprint())
        {
            return Err(CalendarError::refused(
                Reason::NewerVersion,
                "A newer version exists than the one that was seen.",
            ));
        }
        let how = (sequence, options.literally);
        return line_edits::change(context, (&held, imported), new, how);
    }
    let old = &held.entry.event;
    let mut event = next_version(context, old, new, options)?;
    let asked_again = options.workflow && old.details.differs_in_time_or_place(&event.details);
    keep_answers(old, &mut event, asked_again);
    let entry = Entry {
        state: State::Own,
        event: Arc::new(event),
    };
    entry.check_storable()?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, Some(&held), Some(&entry));
    if options.workflow {
        tell(context, &mut changes, old, &entry.event, asked_again)?;
    }
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}

/// The new version, without replies.
fn next_version(
    context: &Context<'_>,
    old: &Event,
    new: NewEvent,
    options: UpdateOptions,
) -> Result<Event, CalendarError> {
    let organizer = organizer(context, &new)?;
    let mut attendees = resolve_all(context.directory, new.attendees, &organizer)?;
    keep_delegates(old, &mut attendees)?;
    let mut details = new.details;
    if details.description.is_none() && !options.literally {
        details.description.clone_from(&old.details.description);
    }
    match new.is_icalendar {
        // Content that iCalendar can't express here stays.
        true => details.alarm.clone_from(&old.details.alarm),
        false => {
            let was = &old.details;
            details.source = source::unchanged(&was.source, &was.extra, &details.extra);
        }
    }
    Ok(Event {
        uid: old.uid.clone(),
        sequence: next_sequence(old.sequence, new.sequence, options.strict_sequence)?,
        created: old.created,
        modified: context.now,
        organizer,
        attendees,
        details,
    })
}

/// The next version's number: the stored one plus one, or the client's if that is higher; in strict mode the client's,
/// unchanged.
fn next_sequence(old: u32, given: Option<u32>, strict: bool) -> Result<u32, CalendarError> {
    let given = if strict {
        Some(given.unwrap_or(0))
    } else {
        given
    };
    match given {
        Some(given) if given < old => Err(CalendarError::refused(
            Reason::NewerVersion,
            format!("A newer version exists: sequence {old}."),
        )),
        Some(given) if strict => Ok(given),
        given => Ok(given.unwrap_or(0).max(old.saturating_add(1))),
    }
}

/// Adds the delegates of attendees who stay invited, if the client's list lacks them: a client that read the event
/// before a delegation does not mean to remove the delegate. A delegate is removed together with the delegator.
fn keep_delegates(old: &Event, attendees: &mut Vec<Attendee>) -> Result<(), CalendarError> {
    if attendees.is_empty() {
        return Ok(());
    }
    // A delegate may have delegated too, so each added one is checked in turn.
    let mut next = 0;
    while let Some(person) = attendees.get(next) {
        next += 1;
        let delegator = old
            .attendees
            .iter()
            .find(|known| known.is_same(person) && known.status == Answer::Delegated);
        let delegate = delegator.and_then(|delegator| {
            let address = delegator.delegated_to.as_ref()?;
            old.attendees.iter().find(|known| {
                known.delegated_from.is_some() && known.email.eq_ignore_ascii_case(address)
            })
        });
        if let Some(delegate) = delegate
            && !attendees.iter().any(|known| known.is_same(delegate))
        {
            if attendees.len() >= limits::ATTENDEES {
                return Err(too_many_attendees());
            }
            attendees.push(delegate.clone());
        }
    }
    Ok(())
}

/// Copies the replies of attendees who stay invited to the new version.
fn keep_answers(old: &Event, new: &mut Event, asked_again: bool) {
    for attendee in &mut new.attendees {
        let Some(known) = old.attendees.iter().find(|known| known.is_same(attendee)) else {
            continue;
        };
        attendee.delegated_to.clone_from(&known.delegated_to);
        attendee.delegated_from.clone_from(&known.delegated_from);
        let is_organizer = attendee.user.as_ref() == Some(&new.organizer.user);
        let stays = known.status == Answer::Delegated || !asked_again || is_organizer;
        attendee.status = if stays {
            known.status
        } else {
            Answer::NeedsAction
        };
    }
}

/// Updates the attendees' calendars to the new version.
fn tell(
    context: &Context<'_>,
    changes: &mut Changes,
    old: &Event,
    new: &Arc<Event>,
    asked_again: bool,
) -> Result<(), CalendarError> {
    let mut ids = context.ids;
    let told = old.invited_users().chain(new.invited_users());
    mailbox::prefetch(context.snapshot, told, &new.uid)?;
    for user in new.invited_users() {
        let status = new.attendee(user).map(|attendee| attendee.status);
        if status == Some(Answer::Delegated) {
            continue;
        }
        if asked_again || old.attendee(user).is_none() {
            let held = mailbox::load(context.snapshot, user, &new.uid)?;
            invite(context, changes, new, (user, held.as_ref()), &mut ids)?;
        } else {
            refresh(context, changes, new, user, &mut ids)?;
        }
    }
    for user in old.invited_users() {
        if new.attendee(user).is_none() {
            withdraw(context, changes, old, user)?;
        }
    }
    Ok(())
}

/// Updates an attendee's copy, keeping its reply and notice. An attendee who was never notified (a change without
/// workflow), or who deleted the notice without a reply, is invited now.
fn refresh(
    context: &Context<'_>,
    changes: &mut Changes,
    event: &Arc<Event>,
    user: &str,
    ids: &mut Ids,
) -> Result<(), CalendarError> {
    let held = mailbox::load(context.snapshot, user, &event.uid)?;
    let is_copy = match &held {
        Some(held) if held.entry.state != State::Cancelled => {
            context.is_of_organizer(&held.entry.event, event)?
        }
        _ => false,
    };
    let unanswered = event
        .attendee(user)
        .is_some_and(|attendee| attendee.status == Answer::NeedsAction);
    match held {
        Some(held) if is_copy => {
            let copy = Entry {
                state: held.entry.state.clone(),
                event: event.for_attendee(),
            };
            changes.replace(user, &event.uid, Some(&held), Some(&copy));
        }
        held if unanswered => invite(context, changes, event, (user, held.as_ref()), ids)?,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_rises_unless_the_client_insists() {
        assert_eq!(next_sequence(3, None, false).unwrap(), 4);
        assert_eq!(next_sequence(3, Some(3), false).unwrap(), 4);
        assert_eq!(next_sequence(3, Some(9), false).unwrap(), 9);
        assert_eq!(next_sequence(3, Some(3), true).unwrap(), 3);
        assert_eq!(next_sequence(u32::MAX, None, false).unwrap(), u32::MAX);
        for (given, strict) in [(Some(2), false), (Some(2), true), (None, true)] {
            let error = next_sequence(3, given, strict).unwrap_err();
            assert_eq!((error.status(), error.cserror()), (409, Some(1027)));
        }
    }
}
