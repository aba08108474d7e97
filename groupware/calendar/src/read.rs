//! Reading one event or one notice.

use groupware_store::Snapshot;

use crate::{CalendarError, Entry, Format, Reason, State, domino, icalendar, mailbox};

/// One event in the asked form.
///
/// # Errors
/// 404 if there is none with this UID; 400 if it is an invitation that is not accepted yet (read
/// the notice instead, as with Domino).
pub fn event(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
    format: Format,
) -> Result<Vec<u8>, CalendarError> {
    let held = mailbox::require(snapshot, mailbox, uid)?;
    refuse_ghost(&held.entry)?;
    if format == Format::Json && held.entry.imported().is_some_and(|it| !it.is_event()) {
        return Err(CalendarError::refused(
            Reason::ActionNotSupported,
            "This is a task or a journal, which has no other form than format=icalendar.",
        ));
    }
    Ok(match format {
        Format::Json => domino::event_document(mailbox, &held.entry),
        Format::ICalendar => icalendar::write_icalendar([&held.entry]).into_bytes(),
    })
}

/// One notice in the asked form.
///
/// # Errors
/// 404 if there is no such notice, or it has been answered.
pub fn notice(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &str,
    format: Format,
) -> Result<Vec<u8>, CalendarError> {
    let held = mailbox::require_notice(snapshot, mailbox, id)?;
    Ok(match format {
        Format::Json => domino::notice_document(mailbox, id, &held.entry),
        Format::ICalendar => icalendar::write_notice(&held.entry).into_bytes(),
    })
}

/// Refuses to change what is kept as it came.
pub(crate) fn refuse_kept(entry: &Entry) -> Result<(), CalendarError> {
    match entry.imported() {
        Some(_) => Err(CalendarError::refused(
            Reason::KeptAsItCame,
            "This event was brought from elsewhere and is kept as it came: change it there and \
             import it again, or delete it here and make a new one.",
        )),
        None => Ok(()),
    }
}

/// Refuses an invitation that is not accepted yet.
pub(crate) fn refuse_ghost(entry: &Entry) -> Result<(), CalendarError> {
    match entry.state {
        State::Invited { .. } => Err(CalendarError::refused(
            Reason::InviteNotAccepted,
            "This invitation has not been accepted: act on its notice.",
        )),
        _ => Ok(()),
    }
}
