//! Invitations received by mail (iMIP, RFC 6047), and replies to them. The organizer is external: a reply changes only
//! the invited user's calendar. Invitations between users of this server are notices instead.

use groupware_proto_ical::message::joined;

use crate::itip::{apart, entry_of, refused, with_answer};
use crate::mailbox::{self, Changes, HeldEntry};
use crate::object::Imported;
use crate::{
    Action, ActionBody, CalendarError, Context, Decision, Entry, State, Target, answer, limits,
};

/// An event received by mail, for the recipient's calendar.
#[derive(Debug, Clone)]
pub struct MailInvitation {
    text: String,
    owner: String,
    entry: Entry,
    is_request: bool,
}

impl MailInvitation {
    /// Parses an object with this UID for the user with this address; `None` if it isn't a single event for a calendar.
    pub(crate) fn read(
        (uid, text, is_request): (String, String, bool),
        owner: &str,
        now: i64,
    ) -> Option<Self> {
        let imported = Imported::read(&text, owner, now).ok()?;
        let entry = imported.entry(&uid, None)?;
        let is_event = |it: &Imported| it.is_event() && it.is_shown();
        entry.imported().filter(|it| is_event(it))?;
        Some(Self {
            text,
            owner: owner.to_owned(),
            entry,
            is_request,
        })
    }

    /// The event as it would appear on the calendar.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns true if a reply is requested; otherwise the event can only be added to a calendar.
    pub fn is_request(&self) -> bool {
        self.is_request
    }

    /// The object with this reply, given the calendar's entry `held` of its UID.
    fn answered(&self, held: Option<&HeldEntry>, word: &str) -> Result<String, CalendarError> {
        let there = held.and_then(|held| held.entry.imported());
        let new = self.entry.imported();
        let text = match there.zip(new) {
            // The stored object may be newer than the mail.
            Some((there, new)) if there.version() > new.version() => there.original().to_owned(),
            // An instance of a stored series.
            Some((there, new)) if new.is_part() => {
                let most_bytes = limits::OBJECT_BYTES;
                joined(there.original(), &self.text, most_bytes).ok_or_else(apart)?
            }
            _ => self.text.clone(),
        };
        Ok(with_answer(&text, Some((&self.owner, word))))
    }
}

/// Replies to an invitation received by mail. Accepted or tentative, the event is on the calendar with that reply in
/// it; declined, it isn't. If this server has the meeting itself, the reply goes to that, and its organizer sees it.
///
/// # Errors
/// 400 if a reply is impossible; the store's errors.
pub fn answer_mail(
    context: &Context<'_>,
    invitation: &MailInvitation,
    action: Action,
) -> Result<Decision, CalendarError> {
    let uid = &*invitation.entry.event.uid;
    let held = mailbox::load(context.snapshot, context.mailbox, uid)?;
    if let Some(held) = &held {
        check_organizer(&held.entry, &invitation.entry)?;
        match &held.entry.state {
            State::Own => return Err(refused("This is your own event.")),
            State::Cancelled => return Err(refused("The organizer has called this off.")),
            State::Imported(_) => {}
            State::Invited { notice, .. } => {
                return answer(
                    context,
                    Target::Notice(notice),
                    action,
                    &ActionBody::default(),
                );
            }
            State::Accepted | State::Tentative => {
                return answer(context, Target::Event(uid), action, &ActionBody::default());
            }
        }
    }
    let word = match action {
        Action::Accept => "ACCEPTED",
        Action::Tentative => "TENTATIVE",
        Action::Decline => return decline(context, invitation, held.as_ref()),
        _ => return Err(refused("This can be accepted or declined.")),
    };
    let text = invitation.answered(held.as_ref(), word)?;
    let entry = entry_of(&text, uid, (&invitation.owner, context.now))?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, held.as_ref(), Some(&entry));
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}

/// Rejects a message from another organizer about an event of the same UID.
pub(crate) fn check_organizer(there: &Entry, sent: &Entry) -> Result<(), CalendarError> {
    // The owner organizes an event without an organizer.
    let (known, given) = (&there.event.organizer, &sent.event.organizer);
    match known.email.eq_ignore_ascii_case(&given.email) {
        true => Ok(()),
        false => Err(refused(
            "Another event of the same identifier, from somebody else, is on your calendar.",
        )),
    }
}

fn decline(
    context: &Context<'_>,
    invitation: &MailInvitation,
    held: Option<&HeldEntry>,
) -> Result<Decision, CalendarError> {
    let mut changes = Changes::default();
    if let Some(held) = held {
        let is_part = |entry: &Entry| entry.imported().is_some_and(Imported::is_part);
        if is_part(&invitation.entry) && !is_part(&held.entry) {
            return Err(refused(
                "One event of a series can't be declined here: answer the mail to its organizer.",
            ));
        }
        changes.replace(
            context.mailbox,
            &invitation.entry.event.uid,
            Some(held),
            None,
        );
    }
    Ok(Decision {
        batch: changes.into_batch(),
        entry: None,
    })
}
