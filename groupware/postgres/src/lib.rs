//! The store's engine on PostgreSQL: records in one table, kept where a site keeps its databases already.
//!
//! One thread writes, as with every engine: it takes all batches that wait as a *group*, and a group, however
//! large, is one transaction and two exchanges with the server. The first locks the partitions that the group
//! touches and looks up the records that its batches assert something of; then the batches are judged here,
//! one after the other, over what was found and what those before have changed; the second exchange writes
//! what comes of it and commits. Locks are by partition, so that absence can be asserted too, and several
//! handles on one database keep out of each other's way.
//!
//! Each group raises a number in the writer's own row, the *marker*. Where the connection is lost before the
//! answer to a commit has come, the number tells afterwards whether the group was stored. Until that is known,
//! nothing is acknowledged and nothing is called a conflict.
//!
//! The crate knows neither what records mean nor who reads them. It reads the clock in one module.

mod address;
mod beside;
mod clock;
mod error;
mod fit;
mod group;
mod hosts;
mod link;
mod open;
mod pool;
mod reach;
mod read;
mod session;
mod sql;
mod tls;
mod wait;
mod write;
mod writer;

pub use address::{AddressError, Database, password_in, without_password};
pub use error::OpenError;
pub use open::{PostgresOptions, open};
