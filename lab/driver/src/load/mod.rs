//! Starts sessions: returning users, arrivals, a sequence; and sends the probe in parallel. It knows no protocol, and
//! nothing of a session but its duration.

mod arrivals;
mod closed;
mod probe;

pub(crate) use arrivals::{run_arrivals, run_slot};
pub(crate) use closed::run_user;
pub(crate) use probe::run_probe;
