//! Actions on notices and events: accept, tentative, decline, delegate, and the rest.

use std::sync::Arc;

use groupware_text::shortened;
use serde::Deserialize;

use crate::{
    Answer, Attendee, CalendarError, Context, Decision, Entry, Event, Reason, State,
    create::{invite, too_many_attendees},
    delete::{self, organizers_entry, tell_organizer},
    json::{bare_address, is_name},
    limits,
    mailbox::{self, Changes, HeldEntry},
    read::{refuse_ghost, refuse_kept},
};

/// The values of the `type` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The owner accepts.
    Accept,
    /// The owner accepts tentatively.
    Tentative,
    /// The owner declines.
    Decline,
    /// Proposes another time. Not supported.
    Counter,
    /// Sends a delegate.
    Delegate,
    /// Asks for more information about the meeting. Not supported.
    RequestInfo,
    /// The organizer cancels the meeting.
    Cancel,
    /// Deletes the entry or notice.
    Delete,
    /// Applies all pending notices of the event; there never are any, so this does nothing.
    ProcessAll,
    /// Removes cancelled instances of a recurring event; there never are any.
    RemoveCancelled,
}

impl Action {
    const ALL: [(&'static str, Self); 10] = [
        ("accept", Self::Accept),
        ("tentative", Self::Tentative),
        ("decline", Self::Decline),
        ("counter", Self::Counter),
        ("delegate", Self::Delegate),
        ("requestInfo", Self::RequestInfo),
        ("cancel", Self::Cancel),
        ("delete", Self::Delete),
        ("processAll", Self::ProcessAll),
        ("removeCancelled", Self::RemoveCancelled),
    ];

    /// Parses the `type` parameter, ignoring case.
    ///
    /// # Errors
    /// 400 if it is missing or unknown.
    pub fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<Self, CalendarError> {
        let text = crate::query::last(pairs, "type")
            .filter(|text| !text.is_empty())
            .ok_or_else(|| CalendarError::bad_request("Action type not specified."))?;
        Self::ALL
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, action)| *action)
            .ok_or_else(|| CalendarError::bad_request("Unknown action type."))
    }
}

/// The optional body of an action. Comments, counter proposals, and the request for updates are parsed but not used
/// yet: replies reach the organizer as a change of their copy, not as a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionBody {
    /// The delegate: an address or a user name.
    pub delegate_to: Option<String>,
}

impl ActionBody {
    /// Parses a body, which may be empty.
    ///
    /// # Errors
    /// 415 if the content type isn't JSON; 400 if the body is not a JSON object.
    pub fn parse(content_type: Option<&str>, body: &[u8]) -> Result<Self, CalendarError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let essence = content_type
            .and_then(|value| value.split(';').next())
            .unwrap_or_default()
            .trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(CalendarError::refused(
                Reason::UnsupportedMediaType,
                "The body of an action is application/json.",
            ));
        }
        serde_json::from_slice(body)
            .map_err(|error| CalendarError::bad_request(format!("Error parsing JSON: {error}.")))
    }
}

/// The target of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A notice, by its identifier: an unanswered invitation.
    Notice(&'a str),
    /// An event by its UID: anything but an unanswered invitation.
    Event(&'a str),
}

/// Performs an action, in one batch.
///
/// Accept and tentative move the invitation into the owner's calendar; decline and delegate remove it; each records the
/// reply in the organizer's copy. The delegate is invited unless they already hold the meeting. A delegate that is not
/// a local user, or holds another event with this UID, is recorded but not notified. `delete` on a notice removes it
/// without a reply. `cancel` on the owner's own meeting deletes it.
///
/// # Errors
/// 404 if the target doesn't exist; 400 if the action is unsupported or invalid for it.
pub fn answer(
    context: &Context<'_>,
    target: Target<'_>,
    action: Action,
    body: &ActionBody,
) -> Result<Decision, CalendarError> {
    let (held, is_notice) = match target {
        Target::Notice(id) => {
            let held = mailbox::require_notice(context.snapshot, context.mailbox, id)?;
            (held, true)
        }
        Target::Event(uid) => {
            let held = mailbox::require(context.snapshot, context.mailbox, uid)?;
            refuse_ghost(&held.entry)?;
            if held.entry.recurrence_id().is_some() {
                refuse_kept(&held.entry)?;
            }
            (held, false)
        }
    };
    match action {
        Action::Accept => reply(context, &held, Answer::Accepted),
        Action::Tentative => reply(context, &held, Answer::Tentative),
        Action::Decline => reply(context, &held, Answer::Declined),
        Action::Delegate => delegate(context, &held, body),
        Action::Delete if is_notice => Ok(throw_away(context, &held)),
        Action::Delete => delete::delete(context, &held.entry.event.uid, true),
        Action::Cancel if held.entry.state == State::Own => {
            delete::delete(context, &held.entry.event.uid, true)
        }
        Action::Cancel => Err(bad_action("Only the organizer can cancel a meeting.")),
        Action::ProcessAll | Action::RemoveCancelled if !is_notice => Ok(Decision {
            batch: Changes::default().into_batch(),
            entry: Some(held.entry),
        }),
        Action::Counter | Action::RequestInfo | Action::ProcessAll | Action::RemoveCancelled => {
            Err(CalendarError::refused(
                Reason::ActionNotSupported,
                "Action not supported.",
            ))
        }
    }
}

/// Handles accept, tentative, and decline.
fn reply(
    context: &Context<'_>,
    held: &HeldEntry,
    answer: Answer,
) -> Result<Decision, CalendarError> {
    require_copy(&held.entry)?;
    let mut changes = Changes::default();
    let told = tell_organizer(context, &mut changes, held, answer)?;
    let state = match answer {
        Answer::Accepted => Some(State::Accepted),
        Answer::Tentative => Some(State::Tentative),
        _ => None,
    };
    let entry = state.map(|state| Entry {
        state,
        event: copy_with_answer(context, held, told, answer),
    });
    let uid = &held.entry.event.uid;
    changes.replace(context.mailbox, uid, Some(held), entry.as_ref());
    Ok(Decision {
        batch: changes.into_batch(),
        entry,
    })
}

/// The owner's copy after a reply, based on the organizer's version if there is one, which may be newer.
fn copy_with_answer(
    context: &Context<'_>,
    held: &HeldEntry,
    organizers: Option<Arc<Event>>,
    answer: Answer,
) -> Arc<Event> {
    match organizers {
        Some(event) => event.for_attendee(),
        None => {
            let mut event = Arc::clone(&held.entry.event);
            if let Some(attendee) = Arc::make_mut(&mut event).attendee_mut(context.mailbox) {
                attendee.status = answer;
            }
            event
        }
    }
}

/// Removes an unanswered invitation without notifying the organizer.
fn throw_away(context: &Context<'_>, held: &HeldEntry) -> Decision {
    let mut changes = Changes::default();
    changes.replace(context.mailbox, &held.entry.event.uid, Some(held), None);
    Decision {
        batch: changes.into_batch(),
        entry: None,
    }
}

/// Delegates: removes the owner's entry, records both attendees in the organizer's copy, and invites the delegate.
fn delegate(
    context: &Context<'_>,
    held: &HeldEntry,
    body: &ActionBody,
) -> Result<Decision, CalendarError> {
    require_copy(&held.entry)?;
    let organizers = organizers_entry(context, &held.entry)?
        .ok_or_else(|| bad_action("The organizer no longer has this meeting."))?;
    let mut entry = organizers.entry.clone();
    let delegate = find_delegate(context, body, &entry.event)?;
    let uid = entry.event.uid.clone();
    let delegates = match &delegate.user {
        Some(user) if entry.event.attendee(user).is_none() => {
            mailbox::load_new(context, user, &uid)?
        }
        Some(user) => mailbox::load(context.snapshot, user, &uid)?,
        None => None,
    };
    note_delegation(context.mailbox, Arc::make_mut(&mut entry.event), &delegate)?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, &uid, Some(held), None);
    if let Some(user) = &delegate.user {
        let delegate = (&**user, delegates.as_ref());
        inform_delegate(context, &mut changes, &mut entry.event, delegate)?;
    }
    let organizer = entry.event.organizer.user.clone();
    changes.replace(&organizer, &uid, Some(&organizers), Some(&entry));
    Ok(Decision {
        batch: changes.into_batch(),
        entry: None,
    })
}

/// Finds the delegate named in the body.
fn find_delegate(
    context: &Context<'_>,
    body: &ActionBody,
    event: &Event,
) -> Result<Attendee, CalendarError> {
    let address = body.delegate_to.as_deref().map(bare_address);
    let address = address
        .filter(|address| is_name(address))
        .ok_or_else(|| bad_action("The delegate action needs delegateTo."))?;
    let user = context.directory.user(&address)?;
    if user.is_none() && !address.contains('@') {
        return Err(CalendarError::refused(
            Reason::BadAction,
            format!("Unknown user: {}", shortened(&address)),
        ));
    }
    if user.as_deref() == Some(context.mailbox) {
        return Err(bad_action("A meeting can't be delegated to oneself."));
    }
    if user.as_ref() == Some(&event.organizer.user) {
        return Err(bad_action("A meeting can't be delegated to its organizer."));
    }
    Ok(Attendee {
        email: user
            .as_deref()
            .map_or(address, |user| context.directory.email(user)),
        user,
        rsvp: true,
        ..Attendee::default()
    })
}

/// Records the delegation in both attendees.
fn note_delegation(
    mailbox: &str,
    event: &mut Event,
    delegate: &Attendee,
) -> Result<(), CalendarError> {
    let delegator = event
        .attendee_mut(mailbox)
        .ok_or_else(|| bad_action("The organizer no longer invites the owner."))?;
    delegator.status = Answer::Delegated;
    delegator.delegated_to = Some(delegate.email.clone());
    let (from, role) = (delegator.email.clone(), delegator.role);
    let full = event.attendees.len() >= limits::ATTENDEES;
    match event
        .attendees
        .iter_mut()
        .find(|known| known.is_same(delegate))
    {
        Some(known) => known.delegated_from = Some(from),
        None if full => return Err(too_many_attendees()),
        None => event.attendees.push(Attendee {
            role,
            delegated_from: Some(from),
            ..delegate.clone()
        }),
    }
    Ok(())
}

/// Invites the delegate; a delegate who already holds the meeting keeps their reply.
fn inform_delegate(
    context: &Context<'_>,
    changes: &mut Changes,
    event: &mut Arc<Event>,
    (user, held): (&str, Option<&HeldEntry>),
) -> Result<(), CalendarError> {
    if let Some(held) = held
        && held.entry.state != State::Cancelled
        && context.is_of_organizer(&held.entry.event, event)?
    {
        let copy = Entry {
            state: held.entry.state.clone(),
            event: event.for_attendee(),
        };
        changes.replace(user, &event.uid, Some(held), Some(&copy));
        return Ok(());
    }
    if let Some(attendee) = Arc::make_mut(event).attendee_mut(user) {
        attendee.status = Answer::NeedsAction;
        attendee.delegated_to = None;
    }
    let mut ids = context.ids;
    invite(context, changes, event, (user, held), &mut ids)
}

/// Rejects a reply to an event that is not an invitation of the owner.
fn require_copy(entry: &Entry) -> Result<(), CalendarError> {
    match entry.state {
        State::Own if entry.event.is_meeting() => {
            Err(bad_action("The organizer can't answer their own meeting."))
        }
        State::Own => Err(bad_action("This entry is not a meeting.")),
        State::Cancelled => Err(bad_action("This meeting has been cancelled.")),
        State::Accepted | State::Tentative | State::Invited { .. } => Ok(()),
        State::Imported(_) => refuse_kept(entry),
    }
}

fn bad_action(message: &'static str) -> CalendarError {
    CalendarError::refused(Reason::BadAction, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_types_are_read_in_any_case() {
        let parse = |text| Action::parse([("type", text)]);
        assert_eq!(parse("ACCEPT").unwrap(), Action::Accept);
        assert_eq!(parse("requestinfo").unwrap(), Action::RequestInfo);
        let message = |result: Result<_, CalendarError>| result.unwrap_err().to_string();
        assert_eq!(message(parse("")), "Action type not specified.");
        assert_eq!(message(parse("dance")), "Unknown action type.");
        assert_eq!(message(Action::parse([])), "Action type not specified.");
    }

    #[test]
    fn only_json_is_taken_as_a_body() {
        let status = |kind, body: &str| {
            ActionBody::parse(kind, body.as_bytes()).map_err(|error| error.status())
        };
        let empty = Ok(ActionBody::default());
        assert_eq!(status(None, ""), empty);
        assert_eq!(status(Some("text/plain"), " \n"), empty);
        assert_eq!(status(Some("text/plain"), "{}"), Err(415));
        assert_eq!(status(None, "{}"), Err(415));
        assert_eq!(status(Some("application/json"), "{"), Err(400));
        assert_eq!(
            status(
                Some("Application/JSON; charset=utf-8"),
                r#"{"delegateTo":"ann","comments":""}"#
            ),
            Ok(ActionBody {
                delegate_to: Some("ann".into())
            })
        );
    }
}
