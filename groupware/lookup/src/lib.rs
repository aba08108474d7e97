//! Registrations of services and their interfaces, with leases: pure decisions over a snapshot of
//! the store.
//!
//! Two protocols access the same registrations: the records of perfSONAR's simple lookup service
//! ([`register`], [`query`], …; flat JSON), and the messages of its predecessor ([`xml`]; SOAP). A
//! decision reads a [`Snapshot`] and returns a response and, if something changes, a [`Batch`]
//! whose asserts rule out lost updates: on a conflict the caller decides again on a new snapshot.
//! No HTTP, no clock, no randomness, no I/O.
//!
//! **Layouts.** The storage layout is a setting, [`Layout`]: two layouts are those compared in a
//! published report, the third has an index.
//!
//! **Leases.** A registration whose lease has ended is invisible. It may be renewed for a while,
//! and is then swept in small batches, see [`Layout::sweep`].
//!
//! [`Snapshot`]: groupware_store::Snapshot
//! [`Batch`]: groupware_store::Batch

mod context;
mod error;
mod id;
mod layout;
mod lease;
pub mod limits;
mod query;
mod record;
mod records;
mod registration;
mod render;
pub mod xml;

pub use context::{Context, Decision, Registrant};
pub use error::{LookupError, Reason};
pub use id::Id;
pub use layout::Layout;
pub use lease::Lease;
pub use query::LookupQuery;
pub use record::{NewRecord, Record};
pub use records::{
    BulkRenewal, Results, delete, get, get_key, parse_renewal, query, register, register_bulk,
    renew, renew_bulk, size,
};
pub use registration::State;
