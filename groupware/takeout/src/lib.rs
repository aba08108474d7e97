//! All data of a user as one zip archive, written while it is read: mail as mbox files, the calendar as iCalendar,
//! documents as JSON with their attachments as files.
//!
//! At most a page of records and one message are in memory. Each page is a separate snapshot, so that a long export
//! delays no checkpoint of the store. Changes during the export may be included or not. *Absent: HTTP, users' own
//! names, clock.*

mod calendar;
mod documents;
mod mail;
mod name;
mod source;
mod zip;

pub use calendar::write_calendar;
pub use source::{Source, TakeoutError};

use std::io::Write;

use zip::Zip;

const ABOUT: &str = "\
This archive holds what was kept for you by a Plimsoll server.

mail/           A file for each folder, in the format mbox, which mail programs import. The fields
                Status and X-Status say what was read (R), answered (A), and flagged (F), and
                X-Keywords what else it was marked with. Behind these fields, and X-Plimsoll,
                which keep what no mbox can tell, each mail stands byte for byte as it came.
                Back into a Plimsoll server: plimsoll mail import NAME mail/Inbox.mbox
calendar.ics    All events and invitations, in the format iCalendar, which calendars import.
                Back into a Plimsoll server: plimsoll calendar import NAME calendar.ics
documents/      For each database a file documents.json, and beside it the attached files, in folders
                named after the document and the item that they belong to.

Not in it: passwords, sessions, and uploads that were not finished. What changed while the archive was
made may be in it or not.
";

/// Returns the file name of this user's archive, made at this moment in seconds since 1970.
pub fn file_name(mailbox: &str, now_s: i64) -> String {
    let now = jiff::Timestamp::from_second(now_s).unwrap_or_default();
    format!("plimsoll-{mailbox}-{}.zip", now.strftime("%Y-%m-%d"))
}

/// Writes the archive from its beginning to its end, so the receiver need not store it.
///
/// # Errors
/// See [`TakeoutError`]. The bytes written before are an incomplete archive.
pub fn write(source: Source<'_>, to: impl Write) -> Result<(), TakeoutError> {
    let mut zip = Zip::new(to);
    let mut about = zip.entry("README.txt", source.now_s, false)?;
    about.write_all(ABOUT.as_bytes())?;
    about.finish()?;
    mail::write(source, &mut zip)?;
    calendar::write(source, &mut zip)?;
    documents::write(source, &mut zip)?;
    Ok(zip.finish()?)
}
