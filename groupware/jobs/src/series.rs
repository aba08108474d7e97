//! Extends the lists of imported series, so that a series that never ends stays in the calendar.

use std::time::Duration;

use groupware_service::Service;
use groupware_service::calendar::extend_all;

use crate::failed::Failed;
use crate::runner::{Job, Stop};

/// Until it begins: whoever starts a server has other things for it to do first.
const FIRST_PAUSE: Duration = Duration::from_secs(600);
/// Until it is looked again, which reads all calendars. Series are listed two weeks ahead at least.
const PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The same where something could not be read or stored.
const RETRY: Duration = Duration::from_secs(3600);

/// The job that does so.
#[derive(Debug)]
pub struct SeriesLists {
    service: Service,
}

impl SeriesLists {
    /// For the calendars of this service's users.
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
