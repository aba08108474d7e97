//! What makes sessions begin: users that come back, arrivals, a sequence; and the probe beside them.
//! It knows no protocol, and of a session only that it takes time.

mod arrivals;
mod closed;
mod pool;
mod probe;

pub(crate) use arrivals::{run_arrivals, run_slot};
pub(crate) use closed::run_user;
pub(crate) use pool::{Pool, SharedPool};
pub(crate) use probe::run_probe;
