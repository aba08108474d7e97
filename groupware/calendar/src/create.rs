//! Creates an event and its invitations.

use std::sync::Arc;

use groupware_people::Directory;
use groupware_text::shortened;

use crate::{
    Answer, Attendee, CalendarError, Context, Decision, Entry, Event, Ids, NewAttendee, NewEvent,
    Organizer, Reason, Role, State, keys, limits,
    mailbox::{self, Changes, HeldEntry},
};

/// Puts a new event on the owner's calendar and, if `workflow`, an invitation into the calendar of each local attendee,
/// in one batch. Without `workflow`, attendees are recorded but not notified. An attendee who holds another event with
/// this UID is never notified.
///
/// # Errors
/// 409 if the owner holds an event with this UID; 400 if the organizer is not the owner, or a limit is exceeded.
pub fn create(
    context: &Context<'_>,
    new: NewEvent,
    workflow: bool,
) -> Result<Decision, CalendarError> {
    let mut ids = context.ids;
    let event = first_version(context, new, &mut ids)?;
    let entry = Entry {
        state: State::Own,
        event: Arc::new(event),
    };
    entry.check_storable()?;
    let uid = entry.event.uid.as_str();
    if !context.presumes_absent {
        let own = std::iter::once(context.mailbox);
        let invited = entry.event.invited_users().filter(|_| workflow);
        mailbox::prefetch(context.snapshot, own.chain(invited), uid)?;
    }
    if mailbox::load_new(context, context.mailbox, uid)?.is_some() {
        return Err(entry_exists(uid));
    }
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, None, Some(&entry));
    if workflow {
        for user in entry.event.invited_users() {
            let held = mailbox::load_new(context, user, uid)?;
            let invited = (user, held.as_ref());
            invite(context, &mut changes, &entry.event, invited, &mut ids)?;
        }
    }
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}

/// Builds the event from a client's description.
fn first_version(
    context: &Context<'_>,
    new: NewEvent,
    ids: &mut Ids,
) -> Result<Event, CalendarError> {
    let organizer = organizer(context, &new)?;
    let attendees = resolve_all(context.directory, new.attendees, &organizer)?;
    // The clock of the server that registered the organizer may be ahead of this one's.
    let registered = context.directory.registered(context.mailbox)?;
    Ok(Event {
        uid: new.uid.unwrap_or_else(|| new_name(ids)),
        sequence: new.sequence.unwrap_or(0),
        created: context.now.max(registered.unwrap_or(context.now)),
        modified: context.now,
        organizer,
        attendees,
        details: new.details,
    })
}

/// Returns the owner of the calendar as organizer.
///
/// # Errors
/// 400 if the client names another organizer: another user's meeting stored as the owner's own would send invitations
/// in the wrong name.
pub(crate) fn organizer(context: &Context<'_>, new: &NewEvent) -> Result<Organizer, CalendarError> {
    if let Some(address) = &new.organizer
        && context.directory.user(address)?.as_deref() != Some(context.mailbox)
    {
        return Err(CalendarError::bad_request(format!(
            "The organizer must be the owner of the calendar, not {}.",
            shortened(address)
        )));
    }
    Ok(Organizer {
        user: context.mailbox.to_owned(),
        email: context.directory.email(context.mailbox),
        display_name: new.organizer_name.clone(),
    })
}

/// Resolves the attendees to users, each person once, in the client's order.
pub(crate) fn resolve_all(
    directory: &dyn Directory,
    new: Vec<NewAttendee>,
    organizer: &Organizer,
) -> Result<Vec<Attendee>, CalendarError> {
    if new.len() > limits::ATTENDEES {
        return Err(too_many_attendees());
    }
    let mut attendees: Vec<Attendee> = Vec::with_capacity(new.len());
    for person in new {
        let attendee = resolve(directory, person, organizer)?;
        if !attendees.iter().any(|known| known.is_same(&attendee)) {
            attendees.push(attendee);
        }
    }
    let alone = attendees
        .iter()
        .all(|attendee| attendee.user.as_ref() == Some(&organizer.user));
    Ok(if alone { Vec::new() } else { attendees })
}

/// Resolves one attendee. The status is always "no reply", whatever the client sends; the organizer accepts.
fn resolve(
    directory: &dyn Directory,
    new: NewAttendee,
    organizer: &Organizer,
) -> Result<Attendee, CalendarError> {
    let user = directory.user(&new.address)?;
    let is_organizer = user.as_ref() == Some(&organizer.user);
    Ok(Attendee {
        email: user
            .as_deref()
            .map_or(new.address, |user| directory.email(user)),
        user,
        display_name: new.display_name,
        role: if is_organizer { Role::Chair } else { new.role },
        user_type: new.user_type,
        status: if is_organizer {
            Answer::Accepted
        } else {
            Answer::NeedsAction
        },
        rsvp: new.rsvp,
        delegated_to: None,
        delegated_from: None,
        member: new.member,
        sent_by: new.sent_by,
        dir: new.dir,
    })
}

/// Puts an unanswered invitation into a user's calendar, in place of an older copy of the same meeting. A user who
/// holds an event of another organizer, or an own one, under this UID keeps it and is not notified: such a user can
/// neither block the organizer nor lose data.
pub(crate) fn invite(
    context: &Context<'_>,
    changes: &mut Changes,
    event: &Arc<Event>,
    (user, held): (&str, Option<&HeldEntry>),
    ids: &mut Ids,
) -> Result<(), CalendarError> {
    if let Some(held) = held
        && !context.is_of_organizer(&held.entry.event, event)?
    {
        return Ok(());
    }
    let invitation = Entry {
        state: State::Invited {
            notice: keys::notice_name(ids.take(), context.now),
            received: context.now,
        },
        event: event.for_attendee(),
    };
    changes.replace(user, &event.uid, held, Some(&invitation));
    Ok(())
}

pub(crate) fn too_many_attendees() -> CalendarError {
    CalendarError::bad_request(format!(
        "An event has at most {} attendees.",
        limits::ATTENDEES
    ))
}

fn entry_exists(uid: &str) -> CalendarError {
    CalendarError::refused(
        Reason::EntryExists,
        format!("An entry with this identifier exists: {}", shortened(uid)),
    )
}

/// 32 upper-case hexadecimal digits, as in Domino.
fn new_name(ids: &mut Ids) -> String {
    keys::upper_hex(ids.take())
}
