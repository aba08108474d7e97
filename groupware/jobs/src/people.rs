//! Keeps the server's caches of users and sessions consistent with the store, and removes ended sessions and the
//! records of answered deliveries.

use std::time::Duration;

use groupware_service::Service;

use crate::runner::{Job, Stop};

/// The time between two checks for changes by other servers. A check is one look-up.
const LOOK: Duration = Duration::from_millis(500);
/// The number of such checks between two writes of the sessions' uses.
const LOOKS: u32 = 20;
/// The time between two sweeps of ended sessions.
const CLEAR: Duration = Duration::from_secs(3600);

/// Reads the changes of other servers, and stores the uses of sessions.
#[derive(Debug)]
pub struct KeepUp {
    service: Service,
    looks: u32,
}

impl KeepUp {
    /// Creates the job for the users of this service.
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
        // If this fails, each request reads the store; an unavailable store is reported by the requests that fail.
        let _ = self.service.auth.keep_up();
        if self.looks.is_multiple_of(LOOKS) || !self.service.is_shared() {
            // A use that isn't stored now is stored with the next one.
            let _ = self.service.auth.sessions.store_uses(self.service.now_s());
        }
        match self.service.is_shared() {
            true => LOOK,
            false => LOOK * LOOKS,
        }
    }
}

/// Removes the records of deliveries that this server has answered: a remaining record counts as never answered. It
/// only waits for the store, if that accepts no writes for a while.
#[derive(Debug)]
pub struct AnsweredSweep {
    service: Service,
}

impl AnsweredSweep {
    /// Creates the job for the deliveries of this service.
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

/// Removes ended sessions, and records of deliveries that no client repeats any more.
#[derive(Debug)]
pub struct SessionSweep {
    service: Service,
}

impl SessionSweep {
    /// Creates the job for the sessions of this service.
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
        // What can't be removed now takes space until the next run.
        let _ = self.service.auth.sessions.clear(self.service.now_s());
        let _ = self.service.sweep_deliveries();
        CLEAR
    }
}
