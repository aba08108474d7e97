//! A calendar as one iCalendar object.

use std::io::Write;

use groupware_calendar::{CalendarError, Entry, ICalendarParts, entries_after};

use crate::source::{LARGE_BYTES, Source, TakeoutError};
use crate::zip::Zip;

/// The number of entries in memory at once.
const PAGE: usize = 200;

pub(crate) fn write<W: Write>(source: Source<'_>, zip: &mut Zip<W>) -> Result<(), TakeoutError> {
    let entries = page(source, None)?;
    if entries.is_empty() {
        return Ok(());
    }
    let is_large = source
        .store
        .data_bytes()
        .is_ok_and(|bytes| bytes >= LARGE_BYTES);
    let mut file = zip.entry("calendar.ics", source.now_s, is_large)?;
    write_all(source, entries, &mut file)?;
    Ok(file.finish()?)
}

/// Writes a calendar as in the archive: all its entries, in the format iCalendar. Imported objects keep their bytes.
///
/// # Errors
/// See [`TakeoutError`]. The bytes written before are an incomplete calendar.
pub fn write_calendar(source: Source<'_>, mut to: impl Write) -> Result<(), TakeoutError> {
    write_all(source, page(source, None)?, &mut to)
}

fn write_all(
    source: Source<'_>,
    mut entries: Vec<Entry>,
    to: &mut impl Write,
) -> Result<(), TakeoutError> {
    let mut parts = ICalendarParts::default();
    // An empty calendar is valid, too.
    loop {
        to.write_all(parts.next(&entries).as_bytes())?;
        entries = match entries.last() {
            None => break,
            last => page(source, last)?,
        };
    }
    Ok(to.write_all(parts.end().as_bytes())?)
}

fn page(source: Source<'_>, after: Option<&Entry>) -> Result<Vec<Entry>, CalendarError> {
    let after = after.map(|entry| &*entry.event.uid);
    source
        .store
        .read(|snapshot| entries_after(snapshot, source.mailbox, after, PAGE))
}
