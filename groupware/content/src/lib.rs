//! The content of attachments, in files beside the records: one file for equal content, named by
//! its BLAKE3 hash; uploads that survive a crash at their true offset; a sweep of unreferenced
//! content.
//!
//! ```text
//! content/ab/cdef…      completed content, never changed; `abcdef…` is its hash in hexadecimal
//! uploads/{name}        a pending upload
//! spared/abcdef…        content without references since the file's last change, if it is kept
//! ```
//! With an object store for completed content ([`Objects`]), content is put there from its upload's
//! file, and read from there; existing files stay, and are read as before.
//!
//! With an object store for pending uploads, too ([`Segments`]), an upload's file has no name and
//! is a copy: the caller makes its bytes durable elsewhere ([`Keep`]).
//!
//! All calls block on the disk or the network: use threads that run no asynchronous tasks. The
//! crate knows nothing of documents, users, or time; callers pass all references to the sweep.

mod claim;
mod error;
mod hold;
mod objects;
mod pins;
mod process_locks;
mod scratch;
mod spared;
mod store;
mod sweep;
mod tail;
mod upload;
mod whole;

pub use claim::{Ask, Claim};
pub use error::ContentError;
pub use groupware_ids::{ContentHash, ObjectId, Placed};
pub use hold::Hold;
pub use objects::{Content, ContentReader, Objects, ReadAt, Segments};
pub use pins::Pin;
pub use spared::{Spared, SparedFile};
pub use store::{ContentStore, Found, unnamed_file};
pub use sweep::{FolderSweep, Swept, UploadFile};
pub use tail::{Slot, decode_slot};
pub use upload::{Keep, Upload};
pub use whole::Whole;
