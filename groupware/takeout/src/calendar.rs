//! A calendar as one iCalendar object.

use std::io::Write;

use groupware_calendar::{CalendarError, Entry, ICalendarParts, entries_after};

use crate::source::{LARGE_BYTES, Source, TakeoutError};
use crate::zip::Zip;

/// Entries in memory at once.
const PAGE: usize = 200;

pub(crate) fn write<W: Write>(source: Source<'_>, zip: &mut Zip<W>) -> Result<(), TakeoutError> {
    let mut entries = page(source, None)?;
    if entries.is_empty() {
        return Ok(());
    }
    let is_large = source
        .store
        .data_bytes()
        .is_ok_and(|bytes| bytes >= LARGE_BYTES);
    let mut file = zip.entry("calendar.ics", source.now_s, is_large)?;
    let mut parts = ICalendarParts::default();
    loop {
        file.write_all(parts.next(&entries).as_bytes())?;
        if entries.len() < PAGE {
            break;
        }
        entries = page(source, entries.last())?;
    }
    file.write_all(parts.end().as_bytes())?;
    Ok(file.finish()?)
}

fn page(source: Source<'_>, after: Option<&Entry>) -> Result<Vec<Entry>, CalendarError> {
    let after = after.map(|entry| &*entry.event.uid);
    source
        .store
        .read(|snapshot| entries_after(snapshot, source.mailbox, after, PAGE))
}
