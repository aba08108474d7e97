//! Uploads in chunks by tus 1.0 (core, creation, creation-defer-length, creation-with-upload,
//! termination, checksum, expiration, concatenation), see <https://tus.io/protocols/resumable-upload>.
//!
//! An upload is created at `/tus/{mailbox}/{database}/{unid}/{item}`, where it becomes an attachment once it is
//! complete; it continues at `/tus/{mailbox}/{upload}`. Its file's name is `filename` in `Upload-Metadata`, its
//! media type `filetype`. A chunk is acknowledged once it is durable: in a file of the data folder, or, where
//! several servers store attachments in an object store, there, and any of them accepts the next chunk.

mod failure;
mod front;
mod headers;
mod join;
mod length;
mod open;
mod receive;
mod routes;
mod segments;
#[cfg(test)]
mod stage;
mod upload_request;
mod work;

pub use front::Tus;
pub use open::{AT_HAND, OpenUploads, key};
pub use routes::routes;
