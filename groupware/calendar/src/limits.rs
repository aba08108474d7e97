//! The stated bounds of a calendar.
//!
//! Together they keep one decision's batch well under the store's limits: 200 attendees with an
//! event of 64 KiB each make 13 MB and about 1,000 operations.

/// Longest UID, in bytes. RFC 7986 §5.3 advises no more than 255 octets.
pub const UID_BYTES: usize = 255;
/// Most attendees of one event, delegates included.
pub const ATTENDEES: usize = 200;
/// Largest event, as the JSON that it is stored as when nothing recurs in it.
pub const EVENT_BYTES: usize = 64 * 1024;
/// Largest request body that the parsers look at.
pub const BODY_BYTES: usize = 256 * 1024;
/// Most levels of arrays and objects in a value that is kept and not understood: an alarm, a
/// property of another maker.
pub const VALUE_LEVELS: usize = 16;
/// Most entries of one page of the event list, as Domino has it.
pub const PAGE_ENTRIES: usize = 100;
/// A page behind more entries than this takes too long to find for others to wait for it.
pub const SKIPPED_AT_ONCE: usize = 500;
/// Entries of a page that asks for no number, as Domino has it.
pub const DEFAULT_PAGE_ENTRIES: usize = 50;
/// Most notices of one answer: the newest of those that the query asks for. The list has no
/// pages; an older notice is found by its event's `id`.
pub const NOTICES: usize = 5_000;
/// A list of more notices takes too long for others to wait for it.
pub const NOTICES_AT_ONCE: usize = 1_000;
/// Largest answer of a list, about. A page of events ends before it, and `Content-Range` says
/// where; of notices, older ones are left out. A list in iCalendar counts its events as the JSON
/// that they are stored as, which is of the same order.
pub const LIST_BYTES: usize = 4 * 1024 * 1024;
/// Longest text of a list's line: summary, location, and all categories together are cut to it, at
/// a character, and a longer link is left out. The event itself has them whole.
pub const LINE_TEXT_BYTES: usize = 1024;

/// Largest object that is brought from elsewhere, in bytes: events of people, with a picture in them at most.
pub const OBJECT_BYTES: usize = 256 * 1024;
/// Most objects that are brought in one batch.
pub(crate) const BATCH_OBJECTS: usize = 100;
/// No more objects are brought in a batch that has so many bytes.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Nor in one of so many operations: one object more has 6,500 at most, the lines of what it replaces included.
pub(crate) const BATCH_OPS: usize = 20_000;
/// How far back from when it was brought instances of a recurring event are listed: a year.
pub const PAST_S: i64 = 366 * 86_400;
/// And how far ahead: three years.
pub const AHEAD_S: i64 = 3 * 366 * 86_400;
/// How far ahead instances are listed at least of what has too many for three years: two weeks.
pub(crate) const CUT_AHEAD_S: i64 = 14 * 86_400;
/// Most instances of a recurring event that are listed, an event a day.
const INSTANCES: usize = 1_600;
/// Bytes that are read at most to show all instances of an event.
const READ_BYTES: usize = 16 << 20;

/// Most instances that are listed of an object of so many bytes.
pub(crate) fn instances(bytes: usize) -> usize {
    INSTANCES.min(READ_BYTES / bytes.max(1))
}
