//! Invitations that come in a mail (iMIP, RFC 6047), and their answers. The organizer is somewhere else: an answer
//! changes the calendar of the invited alone. Invitations between users of this server have notices instead.

use calcard::icalendar::ICalendarProperty as Property;
use groupware_proto_ical::{Lines, Object, Property as Line, fold, split};

use crate::icalendar::refuse_method;
use crate::imported::view;
use crate::json::bare_address;
use crate::mailbox::{self, Changes, HeldEntry};
use crate::object::Imported;
use crate::{
    Action, ActionBody, CalendarError, Context, Decision, Entry, Reason, State, Target, answer,
    limits,
};
use groupware_recurrence::values::text;

/// An event that a mail brings, for the calendar of whoever got it.
#[derive(Debug, Clone)]
pub struct MailInvitation {
    uid: String,
    text: String,
    owner: String,
    entry: Entry,
    is_request: bool,
}

impl MailInvitation {
    /// Reads a part of a mail that is a calendar, for the user of an address; `None` if it isn't one event that can be
    /// on a calendar.
    pub fn read(part: &str, owner: &str, now: i64) -> Option<Self> {
        let (objects, _) = split(part.as_bytes()).ok()?;
        let [object] = &objects[..] else {
            return None;
        };
        let original = whole(object)?;
        let calendar = view::parse(&original).ok()?;
        refuse_method(&calendar).ok()?;
        let method = calendar.components.first();
        let method = method.and_then(|root| text(root, &Property::Method));
        let is_request = method.is_some_and(|it| it.eq_ignore_ascii_case("REQUEST"));
        let imported = Imported::read(&original, owner, now).ok()?;
        let entry = imported.entry(&object.uid, None)?;
        let is_event = |it: &Imported| it.is_event() && it.is_shown();
        entry.imported().filter(|it| is_event(it))?;
        Some(Self {
            uid: object.uid.clone(),
            text: original,
            owner: owner.to_owned(),
            entry,
            is_request,
        })
    }

    /// The event as it would be on the calendar.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// What names the event.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether somebody asks for an answer; else the event is there to be put on a calendar.
    pub fn is_request(&self) -> bool {
        self.is_request
    }

    /// What of it is on the calendar that has `held` under its UID, with this answer.
    fn answered(&self, held: Option<&HeldEntry>, word: &str) -> Result<String, CalendarError> {
        let there = held.and_then(|held| held.entry.imported());
        let new = self.entry.imported();
        let text = match there.zip(new) {
            // What is there may be newer than the mail.
            Some((there, new)) if there.version() > new.version() => there.original().to_owned(),
            // One instance of a series that is there.
            Some((there, new)) if new.is_part() => {
                let both = format!("{}\r\n{}", there.original(), self.text);
                let (objects, faults) = split(both.as_bytes()).map_err(|_| apart())?;
                match &objects[..] {
                    [object] if faults.is_empty() => whole(object).ok_or_else(apart)?,
                    _ => return Err(apart()),
                }
            }
            _ => self.text.clone(),
        };
        let text = with_answer(&text, &self.owner, word);
        match text.len() <= limits::OBJECT_BYTES {
            true => Ok(text),
            false => Err(apart()),
        }
    }
}

fn whole(object: &Object<'_>) -> Option<String> {
    if object.written_bytes() > limits::OBJECT_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(object.written_bytes());
    object.write(&mut bytes);
    String::from_utf8(bytes).ok()
}

fn apart() -> CalendarError {
    refused("This can't be put beside what is on the calendar of the same event.")
}

fn refused(message: &'static str) -> CalendarError {
    CalendarError::refused(Reason::ActionNotSupported, message)
}

/// Answers an invitation of a mail: accepted or perhaps, the event is on the calendar, with that said in it; declined,
/// it isn't. Where this server knows the meeting itself, that is answered, and its organizer sees it.
///
/// # Errors
/// 400 where nothing of the kind can be answered; the store's.
pub fn answer_mail(
    context: &Context<'_>,
    invitation: &MailInvitation,
    action: Action,
) -> Result<Decision, CalendarError> {
    let uid = invitation.uid();
    let held = mailbox::load(context.snapshot, context.mailbox, uid)?;
    if let Some(held) = &held {
        check_organizer(&held.entry, invitation)?;
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
    let imported = Imported::read(&text, &invitation.owner, context.now);
    let entry = imported.ok().and_then(|it| it.entry(uid, None));
    let entry = entry.ok_or_else(apart)?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, held.as_ref(), Some(&entry));
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}

/// Refuses what somebody else sends about an event of the same name.
fn check_organizer(there: &Entry, invitation: &MailInvitation) -> Result<(), CalendarError> {
    // Of one without an organizer, the calendar's owner is it.
    let (known, given) = (&there.event.organizer, &invitation.entry.event.organizer);
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
        changes.replace(context.mailbox, invitation.uid(), Some(held), None);
    }
    Ok(Decision {
        batch: changes.into_batch(),
        entry: None,
    })
}

/// The object without the method of its mail, and with this answer where an attendee has the address.
fn with_answer(object: &str, address: &str, answer: &str) -> String {
    let mut written = Vec::with_capacity(object.len() + 64);
    let mut level = 0_usize;
    for line in Lines::new(object.as_bytes()) {
        let text = line.unfolded();
        let property = Line::read(&text);
        if property.is("BEGIN") {
            level += 1;
        } else if property.is("END") {
            level = level.saturating_sub(1);
        }
        if level == 1 && property.is("METHOD") {
            continue;
        }
        let is_own = || {
            let value = String::from_utf8_lossy(property.value);
            bare_address(value.trim()).eq_ignore_ascii_case(address)
        };
        if level != 2 || !property.is("ATTENDEE") || !is_own() {
            written.extend_from_slice(line.bytes);
            continue;
        }
        let mut anew = property.name.to_vec();
        let is_kept = |name: &[u8]| !name.eq_ignore_ascii_case(b"PARTSTAT");
        for (_, parameter) in property.parameters().filter(|(name, _)| is_kept(name)) {
            anew.push(b';');
            anew.extend_from_slice(parameter);
        }
        anew.extend_from_slice(format!(";PARTSTAT={answer}:").as_bytes());
        anew.extend_from_slice(property.value);
        fold(&anew, b"\r\n", &mut written);
    }
    String::from_utf8_lossy(&written).into_owned()
}
