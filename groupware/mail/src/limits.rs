//! The stated bounds of a mailbox. Those of a message stand with its parser.

pub use groupware_proto_mime::limits::{
    ADDRESS_BYTES, FILE_NAME_BYTES, HEAD_BYTES, HEAD_FIELDS, MESSAGE_BYTES, NAME_BYTES,
    PART_LEVELS, PARTS, SUBJECT_BYTES,
};

/// Largest request body: a message of that size whose attachments are base64 within JSON, which
/// escapes the line ends.
pub const BODY_BYTES: usize = 24 << 20;
/// Most recipients of one message. RFC 5321 §4.5.3.1.8 asks for at least 100.
pub const RECIPIENTS: usize = 200;
/// From this size on, a message to several local users is stored once for all of them. Together
/// with [`RECIPIENTS`] this keeps the batch of a delivery within what the store takes at once.
pub const SHARED_BYTES: usize = 64 << 10;
/// Most entries of one page of a list.
pub const PAGE_ENTRIES: usize = 1000;
/// Entries of a page that asks for no number, as Domino has it.
pub const DEFAULT_PAGE_ENTRIES: usize = 10;
/// Largest answer of a list, about; a page ends before it, and `Content-Range` says where.
pub const LIST_BYTES: usize = 4 << 20;
/// Most messages that a search or a sort other than the folder's own order looks at: the newest.
pub const LOOKED_AT: usize = 20_000;
/// A list that looks at more messages than this takes too long for others to wait for it.
pub const LOOKED_AT_AT_ONCE: usize = 500;
/// So does taking apart a message that is larger.
pub const LARGE_BYTES: u64 = 256 << 10;
/// Most messages that one change names.
pub const AT_ONCE: usize = 1000;
/// Most messages that one batch of a larger clean-up removes or moves, …
pub const SWEPT_AT_ONCE: usize = 100;
/// … and about how many bytes of messages it removes: whoever writes meanwhile waits for one batch.
pub const SWEPT_BYTES: u64 = 16 << 20;
/// Changes of a mailbox that are kept to be told: of whoever has missed more, nobody knows what.
pub const CHANGES: u16 = 4096;
/// Most folders of a user's own.
pub const FOLDERS: usize = 100;
/// Longest name of a folder, in bytes.
pub const FOLDER_NAME_BYTES: usize = 128;
/// Most recipients that a list shows of one message.
pub const LISTED_RECIPIENTS: usize = 4;
/// Longest text to search for.
pub const SEARCH_BYTES: usize = 200;
