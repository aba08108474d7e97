//! The state that users share within a program: queues of entries, and pools of rows. It knows no steps, no time, and
//! no sockets.

mod entries;
mod pools;
mod waiters;

pub use entries::{Queue, Queues, Taking, WorkerQueues};
pub use pools::{Leasing, Pools, WorkerPools};
