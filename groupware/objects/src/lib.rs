//! Attachments' content in an object store that speaks S3: AWS, Ceph, Garage, MinIO, and others.
//!
//! ```text
//! PREFIX/content/ab/abcdef…-ID    a piece of content, put once and never changed; `abcdef…` is its hash
//! PREFIX/uploads/ID-REVISION-BITS segments of an upload under way, where several servers take uploads
//! PREFIX/plimsoll-content         whose content this is
//! ```
//! Nothing but PUT, GET with a range, HEAD, DELETE, LIST, and uploads in parts is asked of the store, and none of its
//! conditions: which object counts, and which may be removed, is decided by records (`groupware-documents`). An object
//! is put before the record that refers to it, and a record says so before the object is put.
//!
//! Calls block, within bounds on time, on memory, and on how many there are at once. Where the store was found away,
//! the next calls fail at once, so that nobody's threads wait with it.
//! *Absent: what is a document, who sweeps, the environment.*
//!
//! Without the feature `s3`, for programs that are to be small, nothing can be opened: [`Shelf::open`] says so.

#[cfg(not(feature = "s3"))]
mod absent;
mod address;
#[cfg(feature = "s3")]
mod bucket;
#[cfg(feature = "s3")]
mod clock;
#[cfg(feature = "s3")]
mod condition;
mod credentials;
mod error;
#[cfg(feature = "s3")]
mod index;
#[cfg(feature = "s3")]
mod place;
#[cfg(feature = "s3")]
mod reading;
#[cfg(feature = "s3")]
mod runtime;
#[cfg(feature = "s3")]
mod shelf;
mod stats;
#[cfg(feature = "s3")]
mod wire;

#[cfg(not(feature = "s3"))]
pub use absent::Shelf;
pub use address::{Address, AddressError};
pub use credentials::{Credentials, CredentialsError};
pub use error::OpenError;
#[cfg(feature = "s3")]
pub use shelf::Shelf;
pub use stats::{OPERATIONS, Stats};

/// Whether an object store can be used at all.
pub const IS_THERE: bool = cfg!(feature = "s3");
