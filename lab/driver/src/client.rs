//! What the engine requires of a client: it must use the worker's timers.

use crate::timers::Timers;

/// A protocol client that takes its time from the engine.
pub(crate) trait Client: lab_client::Client<Time = Timers> {}

impl<C: lab_client::Client<Time = Timers>> Client for C {}
