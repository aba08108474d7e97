//! The agent's lease: at most one run at a time, each with a unique number. Pure: time is an argument, and the caller
//! stores the number on disk before it answers.

use std::time::Duration;

use crate::message::Answer;
use crate::name::Name;

/// The longest time that an agent works without a message from its run.
const MOST_TTL: Duration = Duration::from_secs(60);

/// The run that an agent works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) conductor: Name,
    pub(crate) run: Name,
    until: Duration,
}

/// The state of a lease. Times are from a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    epoch: u64,
    held: Option<Holder>,
}

impl Lease {
    /// Creates the lease of an agent whose last lease had this number.
    pub(crate) fn after(epoch: u64) -> Self {
        Self { epoch, held: None }
    }

    /// Returns the current holder; `None` once the lease has expired.
    pub(crate) fn holder(&self, now: Duration) -> Option<&Holder> {
        self.held.as_ref().filter(|held| now < held.until)
    }

    /// Returns true if orders with this number are accepted.
    pub(crate) fn obeys(&self, epoch: u64, now: Duration) -> bool {
        self.epoch == epoch && self.holder(now).is_some()
    }

    /// Grants the lease to a run. A request of the current holder returns the same grant.
    pub(crate) fn take(
        &mut self,
        conductor: &Name,
        run: &Name,
        ttl: Duration,
        now: Duration,
    ) -> Answer {
        match self.holder(now) {
            Some(held) if held.run == *run && held.conductor == *conductor => {}
            Some(held) => {
                return Answer::Held {
                    holder: format!("{}'s run {}", held.conductor, held.run),
                    ms_left: millis(held.until - now),
                };
            }
            None => self.epoch += 1,
        }
        self.held = Some(Holder {
            conductor: conductor.clone(),
            run: run.clone(),
            until: now + ttl.min(MOST_TTL),
        });
        Answer::Granted { epoch: self.epoch }
    }

    /// Extends the lease.
    pub(crate) fn renew(&mut self, epoch: u64, ttl: Duration, now: Duration) -> Answer {
        if !self.obeys(epoch, now) {
            return Answer::Refused {
                why: format!("lease {epoch} is over"),
            };
        }
        if let Some(held) = &mut self.held {
            held.until = now + ttl.min(MOST_TTL);
        }
        Answer::Granted { epoch }
    }

    /// Ends the lease. A release of an old lease also succeeds.
    pub(crate) fn release(&mut self, epoch: u64) -> Answer {
        if self.epoch == epoch {
            self.held = None;
        }
        Answer::Done
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn one_run_has_it_until_it_lapses() {
        let mut lease = Lease::after(7);
        let mut ask = |run: &str, now| lease.take(&name("ada"), &name(run), s(10), s(now));
        assert_eq!(ask("one", 0), Answer::Granted { epoch: 8 });
        assert_eq!(ask("one", 1), Answer::Granted { epoch: 8 });
        let held = Answer::Held {
            holder: "ada's run one".to_owned(),
            ms_left: 1000,
        };
        assert_eq!(ask("two", 10), held);
        assert_eq!(ask("two", 11), Answer::Granted { epoch: 9 });
        assert!(lease.obeys(9, s(20)) && !lease.obeys(8, s(20)) && !lease.obeys(9, s(21)));
    }

    #[test]
    fn what_has_lapsed_is_not_renewed() {
        let mut lease = Lease::default();
        lease.take(&name("ada"), &name("one"), s(10), s(0));
        assert_eq!(lease.renew(1, s(10), s(9)), Answer::Granted { epoch: 1 });
        assert!(matches!(
            lease.renew(0, s(10), s(9)),
            Answer::Refused { .. }
        ));
        assert!(matches!(
            lease.renew(1, s(10), s(19)),
            Answer::Refused { .. }
        ));
    }

    #[test]
    fn an_old_release_frees_nobody() {
        let mut lease = Lease::default();
        lease.take(&name("ada"), &name("one"), s(10), s(0));
        assert_eq!(lease.release(0), Answer::Done);
        assert!(lease.obeys(1, s(1)));
        lease.release(1);
        assert!(!lease.obeys(1, s(1)));
    }

    #[test]
    fn nobody_holds_an_agent_for_ever() {
        let mut lease = Lease::default();
        lease.take(&name("ada"), &name("one"), Duration::MAX, s(0));
        assert!(lease.obeys(1, s(59)) && !lease.obeys(1, s(60)));
    }
}
