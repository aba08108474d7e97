//! Keeps what a server remembers of users and sessions in step with the store, and clears away sessions that are
//! over and records of deliveries that were answered.

use std::time::Duration;

use groupware_service::Service;

use crate::runner::{Job, Stop};

/// Until it is looked again what other servers have changed. It takes one look-up.
const LOOK: Duration = Duration::from_millis(500);
/// Until uses of sessions are stored, in such looks.
const LOOKS: u32 = 20;
/// Until sessions that are over are cleared away.
const CLEAR: Duration = Duration::from_secs(3600);

/// Reads what other servers have changed, and stores which sessions were used.
#[derive(Debug)]
pub struct KeepUp {
    service: Service,
    looks: u32,
}

impl KeepUp {
    /// For the users of this service.
    pub fn new(service: Service) -> Self {
        Self { service, looks: 0 }
    }
}

impl Job for KeepUp {
    const NAME: &'static str = "keep-up";

    fn first_pause(&self) -> Duration {
        LOOK
    }

    fn run(&mut self, _: &Stop) -> Duration {
        self.looks += 1;
        // Who can't keep up asks the store for each request; that it is away is told by what can't be done.
        let _ = self.service.auth.keep_up();
        if self.looks.is_multiple_of(LOOKS) || !self.service.is_shared() {
            // A use that isn't stored now is with the next one.
            let _ = self.service.auth.sessions.store_uses(self.service.now_s());
        }
        match self.service.is_shared() {
            true => LOOK,
            false => LOOK * LOOKS,
        }
    }
}

/// Removes the records of deliveries that this server has answered: what stays is taken for one that was never answered.
/// It waits for the store alone, where that takes nothing for a while.
#[derive(Debug)]
pub struct AnsweredSweep {
    service: Service,
}

impl AnsweredSweep {
    /// For the deliveries of this service.
    pub fn new(service: Service) -> Self {
        Self { service }
    }
}

impl Job for AnsweredSweep {
    const NAME: &'static str = "answered-sweep";

    fn first_pause(&self) -> Duration {
        LOOK
    }

    fn run(&mut self, _: &Stop) -> Duration {
        self.service.remove_answered();
        LOOK
    }
}

/// Clears away sessions that are over, and records of deliveries that nobody repeats any more.
#[derive(Debug)]
pub struct SessionSweep {
    service: Service,
}

impl SessionSweep {
    /// For the sessions of this service.
    pub fn new(service: Service) -> Self {
        Self { service }
    }
}

impl Job for SessionSweep {
    const NAME: &'static str = "session-sweep";

    fn first_pause(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn run(&mut self, _: &Stop) -> Duration {
        // What can't be cleared away now takes room until the next time.
        let _ = self.service.auth.sessions.clear(self.service.now_s());
        let _ = self.service.sweep_deliveries();
        CLEAR
    }
}
