//! Reads one event or one notice.

use groupware_store::Snapshot;

use crate::{
    CalendarError, Entry, Format, Imported, Reason, State, Version, domino, export, icalendar,
    mailbox,
};

/// One event in the requested format, and its version.
///
/// # Errors
/// 404 if there is none with this UID; 400 if it is an invitation that was not accepted yet (read the notice instead,
/// as in Domino).
pub fn event(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
    format: Format,
) -> Result<(Version, Vec<u8>), CalendarError> {
    let held = mailbox::require(snapshot, mailbox, uid)?;
    refuse_ghost(&held.entry)?;
    if let (Format::Json, Some(imported)) = (format, held.entry.imported()) {
        has_json(imported)?;
    }
    let document = match format {
        Format::Json => domino::event_document(mailbox, &held.entry),
        Format::ICalendar => export::write_icalendar([&held.entry]).into_bytes(),
    };
    Ok((Version::of(&held), document))
}

/// Rejects the JSON format for an object that has none.
fn has_json(imported: &Imported) -> Result<(), CalendarError> {
    let why = match (imported.is_event(), imported.is_shown()) {
        (true, true) => return Ok(()),
        (false, _) => "This is a task or a journal, which has no other form than format=icalendar.",
        (true, false) => {
            "This can't be read to be shown: format=icalendar has it as it came, and DELETE removes it."
        }
    };
    Err(CalendarError::refused(Reason::ActionNotSupported, why))
}

/// One notice in the requested format.
///
/// # Errors
/// 404 if there is no such notice, or it was answered.
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

/// Rejects an action that is impossible for an imported object.
pub(crate) fn refuse_kept(entry: &Entry) -> Result<(), CalendarError> {
    match entry.imported() {
        Some(_) if entry.recurrence_id().is_some() => Err(CalendarError::refused(
            Reason::StoredVerbatim,
            "This is one of a series that was brought from elsewhere: it can't be changed or \
             deleted alone, and the series as a whole can.",
        )),
        Some(_) => Err(CalendarError::refused(
            Reason::StoredVerbatim,
            "This event was brought from elsewhere: nobody here waits for an answer to it.",
        )),
        None => Ok(()),
    }
}

/// Rejects an invitation that was not accepted yet.
pub(crate) fn refuse_ghost(entry: &Entry) -> Result<(), CalendarError> {
    match entry.state {
        State::Invited { .. } => Err(CalendarError::refused(
            Reason::InviteNotAccepted,
            "This invitation has not been accepted: act on its notice.",
        )),
        _ => Ok(()),
    }
}
