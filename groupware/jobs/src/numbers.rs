//! Assigns numbers to messages without one: those from before there were numbers, and those written by an older version
//! of the server that ran beside this one and assigns none.

use std::time::Duration;

use groupware_service::Service;
use groupware_service::mail::number_all;

use crate::failed::Failed;
use crate::runner::{Job, Stop};

/// The time until the first run: a starting server has more urgent work.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The time between two runs. If all messages have numbers, a run reads a few counters for each user.
const PAUSE: Duration = Duration::from_secs(24 * 3600);
/// The time until the next run if something could not be read or stored.
const RETRY: Duration = Duration::from_secs(600);

/// The job that assigns the numbers.
#[derive(Debug)]
pub struct MailNumbers {
    service: Service,
    /// True if the first run reads all messages: a server of another version may have run beside this one.
    thorough: bool,
}

impl MailNumbers {
    /// Creates the job for the mailboxes of this service's users.
    pub fn new(service: Service) -> Self {
        let thorough = service.is_shared();
        Self { service, thorough }
    }
}

impl Job for MailNumbers {
    const NAME: &'static str = "mail-numbers";

    fn first_pause(&self) -> Duration {
        FIRST_PAUSE
    }

    fn run(&mut self, stop: &Stop) -> Duration {
        let (mut numbered, mut failed) = (0, None);
        for mailbox in self.service.auth.directory().keys() {
            if stop.is_asked() {
                return RETRY;
            }
            let of = (&*mailbox, self.thorough);
            match number_all(&self.service, of, || stop.is_asked()) {
                Ok(count) => numbered += count,
                Err(error) => failed = Some(Failed::from(error).0),
            }
        }
        if numbered > 0 {
            tracing::info!(
                messages = numbered,
                "messages without numbers have got some"
            );
        }
        let Some(error) = failed else {
            self.thorough = false;
            return PAUSE;
        };
        tracing::warn!(error, "some messages have no numbers still");
        RETRY
    }
}
