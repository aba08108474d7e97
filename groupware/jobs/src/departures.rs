//! Removes the data of deleted users if the server stopped before it was done.

use std::time::Duration;

use groupware_service::Service;

use crate::runner::{Job, Stop};

/// The time until the next attempt, if the store failed, or until the next check.
const PAUSE: Duration = Duration::from_secs(600);

/// The job that removes this data.
#[derive(Debug)]
pub struct Departures {
    service: Service,
}

impl Departures {
    /// Creates the job for the users of this service.
    pub fn new(service: Service) -> Self {
        Self { service }
    }
}

impl Job for Departures {
    const NAME: &'static str = "departures";

    fn first_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn run(&mut self, _: &Stop) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        if let Ok(runtime) = runtime {
            // A failed removal is retried later and at the next start.
            let _ = runtime.block_on(self.service.auth.accounts.finish_departures());
        }
        PAUSE
    }
}
