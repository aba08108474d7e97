//! Stores the content of attachments in an S3 object store: AWS, Ceph, Garage, MinIO, and others.
//!
//! ```text
//! PREFIX/content/ab/abcdef…-ID    a piece of content, put once and never changed; `abcdef…` is its hash
//! PREFIX/uploads/ID-REVISION-BITS segments of an upload in progress, where several servers take uploads
//! PREFIX/plimsoll-content         the name of this place
//! ```
//! The store needs only PUT, GET with a range, HEAD, DELETE, LIST, and multipart uploads, and no conditional requests:
//! the records (`groupware-documents`) decide which object counts, and which may be removed. An object is put before
//! the record that refers to it, and a record announces the object before the put.
//!
//! Calls block, with limits on time, memory, and concurrency. After the store was unreachable, calls fail at once for a
//! while, so that no threads wait for it.
//! *Absent: documents, the schedule of sweeps, the environment.*
//!
//! Without the feature `s3`, for small programs, [`ObjectStorage::open`] always fails.

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
mod stats;
#[cfg(feature = "s3")]
mod storage;
#[cfg(feature = "s3")]
mod wire;

#[cfg(not(feature = "s3"))]
pub use absent::ObjectStorage;
pub use address::{Address, AddressError};
pub use credentials::{Credentials, CredentialsError};
pub use error::OpenError;
pub use stats::{OPERATIONS, Stats};
#[cfg(feature = "s3")]
pub use storage::ObjectStorage;

/// True if this build supports object stores.
pub const IS_THERE: bool = cfg!(feature = "s3");
