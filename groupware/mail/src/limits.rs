//! The bounds of an account. The bounds of a message are defined by its parser.

pub use groupware_proto_mime::limits::{
    ADDRESS_BYTES, FILE_NAME_BYTES, HEAD_BYTES, HEAD_FIELDS, MESSAGE_BYTES, NAME_BYTES,
    PART_LEVELS, PARTS, SUBJECT_BYTES,
};

/// The largest request body: a message of the maximum size whose attachments are base64 within
/// JSON, which escapes the line ends.
pub const BODY_BYTES: usize = 24 << 20;
/// The maximum number of recipients of one message. RFC 5321 §4.5.3.1.8 requires at least 100.
pub const RECIPIENTS: usize = 200;
/// The size from which a message to several local users is stored once for all of them. Together
/// with [`RECIPIENTS`] it keeps the batch of a delivery within the store's limit.
pub const SHARED_BYTES: usize = 64 << 10;
/// The maximum number of entries of one page of a list.
pub const PAGE_ENTRIES: usize = 1000;
/// The entries of a page if the request has no `count`, as in Domino.
pub const DEFAULT_PAGE_ENTRIES: usize = 10;
/// The approximate maximum size of a list; a page ends before it, and `Content-Range` has its end.
pub const LIST_BYTES: usize = 4 << 20;
/// The maximum number of messages, the newest, that a search or a sort other than the folder's own order reads.
pub const LOOKED_AT: usize = 20_000;
/// A list that reads more messages than this runs in the background pool.
pub const LOOKED_AT_AT_ONCE: usize = 500;
/// Parsing a message larger than this does so, too.
pub const LARGE_BYTES: u64 = 256 << 10;
/// The maximum number of messages in one change.
pub const AT_ONCE: usize = 1000;
/// The maximum number of messages that one batch of a larger clean-up removes or moves, …
pub const SWEPT_AT_ONCE: usize = 100;
/// … and about how many bytes of messages it removes: other writers wait for one batch.
pub const SWEPT_BYTES: u64 = 16 << 20;
/// The size of an account's change log. A client that has missed more changes must resynchronize.
pub const CHANGES: u16 = 4096;
/// The maximum number of a user's own folders.
pub const FOLDERS: usize = 100;
/// The longest name of a folder, in bytes.
pub const FOLDER_NAME_BYTES: usize = 128;
/// The maximum number of recipients that a list shows of one message.
pub const LISTED_RECIPIENTS: usize = 4;
/// The longest text to search for, in bytes.
pub const SEARCH_BYTES: usize = 200;
