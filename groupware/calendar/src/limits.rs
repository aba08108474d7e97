//! The limits of a calendar.
//!
//! Together they keep one decision's batch well under the store's limits: 200 attendees with an
//! event of 64 KiB each make 13 MB and about 1,000 operations.

/// The maximum length of a UID, in bytes. RFC 7986 §5.3 advises no more than 255 octets.
pub const UID_BYTES: usize = 255;
/// The maximum number of attendees of one event, delegates included.
pub const ATTENDEES: usize = 200;
/// The maximum size of an event, as its stored JSON before compaction.
pub const EVENT_BYTES: usize = 64 * 1024;
/// The maximum request body that the parsers accept.
pub const BODY_BYTES: usize = 256 * 1024;
/// The maximum nesting of a value that is stored uninterpreted: an alarm, a property of another vendor.
pub const VALUE_LEVELS: usize = 16;
/// The maximum number of entries in one page of the event list, as in Domino.
pub const PAGE_ENTRIES: usize = 100;
/// A page after more entries than this takes too long for requests on the same thread.
pub const SKIPPED_AT_ONCE: usize = 500;
/// The default number of entries in a page, as in Domino.
pub const DEFAULT_PAGE_ENTRIES: usize = 50;
/// The maximum number of notices in one response: the newest ones of the query. The list has no pages; an older notice
/// is found by its event's `id`.
pub const NOTICES: usize = 5_000;
/// A list of more notices takes too long for requests on the same thread.
pub const NOTICES_AT_ONCE: usize = 1_000;
/// The approximate maximum size of a list. A page of events ends before it, and `Content-Range` gives its end; of
/// notices, older ones are omitted. A list in iCalendar counts its events by their stored JSON, which has a similar
/// size.
pub const LIST_BYTES: usize = 4 * 1024 * 1024;
/// The maximum text length in a list line: summary, location, and all categories together are truncated to it, at a
/// character, and a longer link is omitted. The event itself has the full texts.
pub const LINE_TEXT_BYTES: usize = 1024;

/// The maximum size of an imported object, in bytes: a personal event, with at most one picture.
pub const OBJECT_BYTES: usize = 256 * 1024;
/// The maximum number of objects that are imported in one batch.
pub(crate) const BATCH_OBJECTS: usize = 100;
/// No more objects are added to an import batch of this many bytes.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Nor to one of this many operations: an object adds at most 6,500, including the lines that it replaces.
pub(crate) const BATCH_OPS: usize = 20_000;
/// How far before the import instances of a recurring event are listed: a year.
pub const PAST_S: i64 = 366 * 86_400;
/// How far ahead they are listed: three years.
pub const AHEAD_S: i64 = 3 * 366 * 86_400;
/// How far ahead a series with too many instances for three years is listed at least: two weeks.
pub(crate) const CUT_AHEAD_S: i64 = 14 * 86_400;
/// The maximum number of listed instances of a recurring event: one a day.
const INSTANCES: usize = 1_600;
/// The maximum number of bytes to read to show all instances of an event.
const READ_BYTES: usize = 16 << 20;

/// The maximum number of listed instances of an object of this many bytes.
pub(crate) fn instances(bytes: usize) -> usize {
    INSTANCES.min(READ_BYTES / bytes.max(1))
}
