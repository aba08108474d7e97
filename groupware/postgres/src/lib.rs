//! The store's engine on PostgreSQL: records in one table, for sites that already run a database.
//!
//! One thread writes, as with every engine: it takes all waiting batches as a *group*. A group of
//! any size is one transaction and two exchanges with the server. The first locks the group's
//! partitions and looks up the records that its batches assert. Then the batches are judged here in
//! order, against the records found and the changes of the batches before. The second exchange
//! writes the result and commits. Locks are per partition, so that absence can be asserted too, and
//! several handles on one database exclude each other.
//!
//! Each group increments a number in the writer's own row, the *marker*. If the connection is lost
//! before the response to a commit, the marker shows afterwards whether the group was stored. Until
//! then, no batch is acknowledged or reported as a conflict.
//!
//! The crate knows neither the meaning of records nor their readers. Only one module reads the clock.

mod address;
mod clock;
mod connectivity;
mod error;
mod fit;
mod format_locks;
mod group;
mod hosts;
mod open;
mod pool;
mod read;
mod session;
mod sql;
mod tls;
mod wait;
mod write;
mod writer;
mod writer_connection;

pub use address::{AddressError, Database, password_in, without_password};
pub use error::OpenError;
pub use open::{PostgresOptions, open};
