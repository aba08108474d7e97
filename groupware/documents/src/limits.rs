//! The stated bounds of documents.
//!
//! A document with its attachments' records makes at most 0.4 MB, and a batch rewrites one.

/// Largest body of a document: its fields as JSON.
pub const BODY_BYTES: usize = 256 * 1024;
/// Most fields of a document.
pub const FIELDS: usize = 1000;
/// Longest name of a field.
pub const FIELD_NAME_BYTES: usize = 128;
/// Most levels of arrays and objects in a field.
pub const VALUE_LEVELS: usize = 16;
/// Most attachments of a document.
pub const ATTACHMENTS: usize = 256;
/// Longest name of a database or item.
pub const NAME_BYTES: usize = 64;
/// Longest name of an attached file, as most file systems have it.
pub const FILE_NAME_BYTES: usize = 255;
/// Longest media type.
pub const MEDIA_TYPE_BYTES: usize = 128;
/// Most documents of a user, over all databases.
pub const DOCUMENTS: u64 = 1_000_000;
/// Most databases of a user, and most that are granted to others.
pub const DATABASES: usize = 1000;
/// Most users that a database is granted to by name, as readers and as authors each.
pub const GRANTED_NAMES: usize = 100;
/// Largest body that grants a database.
pub const ACCESS_BYTES: usize = 32 * 1024;
/// Most uploads of a user that are under way, or were finished lately.
pub const UPLOADS: u64 = 10_000;
/// Documents of a page that asks for no number, as Domino has it.
pub const DEFAULT_PAGE: usize = 10;
/// A page behind more documents than this takes too long to find for others to wait for it.
pub const SKIPPED_AT_ONCE: usize = 500;
/// Most documents of one page.
pub const PAGE: usize = 1000;
