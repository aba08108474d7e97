//! Documents with fields and attachments in named databases: pure decisions over a snapshot of the
//! store.
//!
//! The interface is Domino's data service, and tus 1.0 for uploads in chunks. A decision reads a
//! [`Snapshot`] and returns a [`Batch`] whose asserts rule out lost updates: on a conflict the
//! caller decides again on a new snapshot. No clock, no randomness, no I/O of its own.
//!
//! An attachment's content is stored elsewhere, named by its hash ([`ContentHash`]); this crate has
//! the records that refer to it. One batch changes a document with all that is derived from it,
//! including the references.
//!
//! Databases belong to their owner, who may grant them to others ([`Access`]). Every decision and
//! every read checks the principal. A database exists while it has a document.
//!
//! [`ContentHash`]: groupware_ids::ContentHash
//! [`Snapshot`]: groupware_store::Snapshot
//! [`Batch`]: groupware_store::Batch

mod access;
mod attach;
mod check;
mod context;
mod document;
mod domino;
mod error;
mod fields;
mod grant;
mod keys;
pub mod limits;
mod list;
mod mailbox;
mod names;
mod objects;
mod paths;
mod principal;
mod segments;
mod time;
mod upload;
mod usage;
mod version;
mod walk;
mod write;

pub use access::{Access, Registered, may_add};
pub use attach::{NewAttachment, attach, attachment, detach, rename};
pub use check::{Found, all_content, check, kept_content};
pub use context::{Context, Decision};
pub use document::{Attachment, Document};
pub use error::{DocumentError, Reason};
pub use fields::Fields;
pub use grant::{access, grant};
pub use keys::ALL;
pub use list::{ListQuery, Page, databases, list};
pub use names::{DatabaseName, FileName, ItemName, ItemPath, Unid, UploadId};
pub use objects::{
    BegunObject, ContentPlace, StoredObject, begin_object, begun_of, content_place,
    forget_all_objects, forget_object, note_content_place, object, objects_of, refer_to,
    release_object, tombstone_object,
};
pub use paths::{attachment_path, document_path};
pub use principal::Principal;
pub use segments::{
    SEGMENT_BYTES, Segment, segment_lengths, segment_name, segment_of, segments_to_keep,
};
pub use upload::{
    HeldUpload, NewUpload, Upload, begin, extend, finish, give_up, held_upload, join,
    keep_segments, upload, uploads,
};
pub use usage::{Usage, room, stored_bytes, stored_bytes_after};
pub use version::{Seen, Version};
pub use walk::{At, documents_after, find};
pub use write::{check_change, create, delete, document, patch, replace};
