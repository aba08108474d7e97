//! Extends the occurrence lists of imported series, so that endless series stay in the calendar.

use std::time::Duration;

use groupware_service::Service;
use groupware_service::calendar::extend_all;

use crate::failed::Failed;
use crate::runner::{Job, Stop};

/// The time until the first run: a starting server has more urgent work.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
/// The time between two runs, each of which reads all calendars. Series are listed at least two weeks ahead.
const PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The time until the next run if something could not be read or stored.
const RETRY: Duration = Duration::from_secs(3600);

/// The job that extends the lists.
#[derive(Debug)]
pub struct SeriesLists {
    service: Service,
}

impl SeriesLists {
    /// Creates the job for the calendars of this service's users.
    pub fn new(service: Service) -> Self {
        Self { service }
    }
}

impl Job for SeriesLists {
    const NAME: &'static str = "series-lists";

    fn first_pause(&self) -> Duration {
        FIRST_PAUSE
    }

    fn run(&mut self, stop: &Stop) -> Duration {
        let (mut extended, mut failed) = (0, None);
        for mailbox in self.service.auth.directory().keys() {
            if stop.is_asked() {
                return RETRY;
            }
            match extend_all(&self.service, &mailbox, || stop.is_asked()) {
                Ok(count) => extended += count,
                Err(error) => failed = Some(Failed::from(error).0),
            }
        }
        if extended > 0 {
            tracing::info!(objects = extended, "lists of imported events are extended");
        }
        match failed {
            None => PAUSE,
            Some(error) => {
                tracing::warn!(error, "lists of some imported events are not extended");
                RETRY
            }
        }
    }
}
