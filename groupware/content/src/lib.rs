//! The content of attachments, in files beside the records: one file for equal content, named by
//! its BLAKE3 hash; uploads that survive a crash at their true offset; a sweep of what nothing
//! refers to.
//!
//! ```text
//! content/ab/cdef…      finished content, never changed; `abcdef…` is its hash in hexadecimal
//! uploads/{name}        content under way
//! spared/abcdef…        content that nothing refers to since the file was last changed, if it is kept
//! ```
//! Where finished content is to lie in an object store ([`Objects`]), it is put there from the file that it came in
//! by, and read from there; what lies in files already stays, and is read as before.
//!
//! Where uploads under way are to lie there, too ([`Segments`]), what has come in is in a file without a name, which is a
//! copy: whoever works on the upload has its bytes made durable elsewhere ([`Keep`]).
//!
//! All calls block on the disk, or the network: they are for threads that run no asynchronous tasks. The crate
//! knows nothing of documents, users, or time; who refers to what is told to the sweep.

mod among;
mod claim;
mod error;
mod hold;
mod objects;
mod pins;
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
