//! Gives messages numbers that have none: those from before there were any, and those that a version has written which
//! gives none, while it was beside this one.

use std::time::Duration;

use groupware_service::Service;
use groupware_service::mail::number_all;

use crate::failed::Failed;
use crate::runner::{Job, Stop};

/// Until it begins: whoever starts a server has other things for it to do first.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Until it is looked again. Where all have numbers, a look reads a few counters for each user.
const PAUSE: Duration = Duration::from_secs(24 * 3600);
/// The same where something could not be read or stored.
const RETRY: Duration = Duration::from_secs(600);

/// The job that does so.
#[derive(Debug)]
pub struct MailNumbers {
    service: Service,
    /// All messages are looked at, once: a server of another version may have been beside this one.
    thorough: bool,
}

impl MailNumbers {
    /// For the mailboxes of this service's users.
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
