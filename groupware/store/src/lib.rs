//! Ordered transactional records with group commit, on SQLite, in memory, or on an external [`Engine`].
//!
//! Records are keyed by (partition, key). A partition is a short name, such as an account; keys are bytes, in order
//! within their partition. Reads see one consistent snapshot. Writes are [`Batch`]es: asserts about stored records, and
//! changes to apply if all asserts hold. One writer thread takes all waiting batches, applies them in sequence in one
//! transaction, makes them durable with one sync of the disk, and only then replies. While it is idle, a thread that
//! may wait for the disk can write in its place ([`Store::commit_here`]).
//!
//! The crate does not know what the records mean, which users may read them, or what time it is.

mod batch;
mod cache;
mod changes;
mod clock;
mod counters;
mod engine;
mod error;
mod forms;
mod handle;
mod life;
mod lock;
mod memory;
mod numbered;
mod options;
mod place;
mod slices;
mod snapshot;
mod sqlite;
mod stats;
mod transfer;
mod writer;

pub use batch::{
    Assert, Batch, Committed, MAX_BATCH_BYTES, MAX_BATCH_OPS, MAX_KEY_BYTES, MAX_PARTITION_BYTES,
    Op,
};
pub use changes::{
    CHANGES_FOLDER, Change, Group, ReplayError, Replayed, Segment, read_group, replay, segments,
};
pub use counters::{added, counters, raised};
pub use engine::{Engine, Outcome, Writer};
pub use error::{Cause, CommitError, OpenError, ReadError, StoreError};
pub use forms::{
    FORMS_KEY, FORMS_PARTITION, Forms, FormsError, claim_forms, number as forms_number,
    number_bytes as forms_bytes, written_forms,
};
pub use handle::{QUEUE_BATCHES, QUEUE_LARGE_BYTES, Store};
pub use life::Condition;
pub use lock::FolderLock;
pub use numbered::{Form, Gap, MAX_GAPS, Numbered};
pub use options::{Remember, StoreOptions};
pub use snapshot::{PrefetchSet, Record, Show, Snapshot, Walk};
pub use sqlite::{Compacted, FILE_NAME, compact, copy_records};
pub use stats::{COMMIT_BOUNDS_US, COMMIT_BUCKETS, GROUP_BUCKETS, StoreStats};
pub use transfer::{Stage, TransferError, Transferred, is_half_transferred, transfer};
pub use writer::GROUP_BATCHES;
