//! What the engine asks of a client: that it lives by the worker's timers.

use crate::timers::Timers;

/// A protocol's client that takes its time from the engine.
pub(crate) trait Client: lab_client::Client<Time = Timers> {}

impl<C: lab_client::Client<Time = Timers>> Client for C {}
