//! The state that users share within a program: queues of entries, pools of rows, and connections
//! for arriving sessions. It knows no steps, no time, and
//! no sockets.

mod entries;
mod pools;
mod sessions;
mod waiters;

pub use entries::{Queue, Queues, Taking, WorkerQueues};
pub use pools::{Leasing, Pools, WorkerPools};
pub use sessions::{Arrived, Fate, Pool, SharedPool, SlotId};
