//! Removes the data of users who are gone, where an end of the server came between.

use std::time::Duration;

use groupware_service::Service;

use crate::runner::{Job, Stop};

/// Until it is tried again, where the store could not take it, and until it is looked for again.
const PAUSE: Duration = Duration::from_secs(600);

/// The job that does so.
#[derive(Debug)]
pub struct Departures {
    service: Service,
}

impl Departures {
    /// For the users of this service.
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
            // What could not be done now is tried again, now and at the next start.
            let _ = runtime.block_on(self.service.auth.accounts.finish_departures());
        }
        PAUSE
    }
}
