//! The bounds of documents.
//!
//! A document with its attachments' records has at most 0.4 MB, and a batch rewrites one.

/// The largest body of a document: its fields as JSON.
pub const BODY_BYTES: usize = 256 * 1024;
/// The maximum number of fields of a document.
pub const FIELDS: usize = 1000;
/// The longest name of a field.
pub const FIELD_NAME_BYTES: usize = 128;
/// The maximum depth of arrays and objects in a field.
pub const VALUE_LEVELS: usize = 16;
/// The maximum number of attachments of a document.
pub const ATTACHMENTS: usize = 256;
/// The longest name of a database or item.
pub const NAME_BYTES: usize = 64;
/// The longest name of an attached file, as in most file systems.
pub const FILE_NAME_BYTES: usize = 255;
/// The longest media type.
pub const MEDIA_TYPE_BYTES: usize = 128;
/// The maximum number of documents of a user, over all databases.
pub const DOCUMENTS: u64 = 1_000_000;
/// The maximum number of databases of a user, and of those granted to others.
pub const DATABASES: usize = 1000;
/// The maximum number of users with access to a database by name, as readers and as authors each.
pub const GRANTED_NAMES: usize = 100;
/// The largest body of a grant.
pub const ACCESS_BYTES: usize = 32 * 1024;
/// The maximum number of a user's pending and recently finished uploads.
pub const UPLOADS: u64 = 10_000;
/// The documents of a page if the request has no number, as in Domino.
pub const DEFAULT_PAGE: usize = 10;
/// A page after more documents than this is read in the background pool.
pub const SKIPPED_AT_ONCE: usize = 500;
/// The maximum number of documents of one page.
pub const PAGE: usize = 1000;
