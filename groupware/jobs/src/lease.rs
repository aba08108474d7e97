//! A job that one of several servers over a store runs: the holder of its lease, which is a record in the store.
//!
//! Servers whose clocks differ by more than a minute may both run it for a while. This is harmless: the job's changes
//! have the same asserts as all others. A lease only saves work.

use std::fmt;
use std::time::Duration;

use groupware_runtime::{clock, random};
use groupware_store::{Batch, CommitError, Store};
use serde::{Deserialize, Serialize};

use crate::runner::{Job, Stop};

/// The partition of the leases. It is no valid user name.
const PARTITION: &str = "$leases";
/// The time that a lease lasts beyond the next run of the job. The lease is renewed before it ends.
const GRACE_S: i64 = 60;
/// The maximum time until the next check whether another server's lease has ended.
const LOOK: Duration = Duration::from_secs(30);

/// The server that runs a job, and the end of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    holder: u64,
    /// Seconds since 1970.
    until: i64,
}

/// A job with the lease it runs under.
pub struct Leased<J: Job> {
    job: J,
    store: Store,
    holder: u64,
    /// The end of the lease while this server holds it.
    held: Option<i64>,
}

impl<J: Job> Leased<J> {
    /// Creates a job that one of the servers over this store runs at a time.
    pub fn new(job: J, store: Store) -> Self {
        Self {
            job,
            store,
            holder: u64::from_le_bytes(random::bytes()),
            held: None,
        }
    }

    /// Extends the lease by this time from now; returns the end of the lease if another server holds it.
    fn hold(&mut self, now: i64, time: Duration) -> Result<Result<(), i64>, CommitError> {
        let time = i64::try_from(time.as_secs()).unwrap_or(i64::MAX / 2);
        if self
            .held
            .is_some_and(|until| until >= now + time + GRACE_S / 2)
        {
            return Ok(Ok(()));
        }
        self.held = None;
        let key = J::NAME.as_bytes();
        let record = self.store.read(|snapshot| snapshot.get(PARTITION, key))?;
        let mut batch = Batch::new();
        match &record {
            None => batch.assert_absent(PARTITION, key),
            Some(record) => {
                // An unreadable lease has no end to wait for.
                let lease = read(&record.value);
                let of_another = lease.filter(|it| it.holder != self.holder && it.until > now);
                if let Some(lease) = of_another {
                    return Ok(Err(lease.until));
                }
                batch.assert_revision(PARTITION, key, record.revision)
            }
        };
        let lease = Lease {
            holder: self.holder,
            until: now + time + GRACE_S,
        };
        let value = serde_json::to_vec(&lease).expect("numbers serialise");
        batch.put(PARTITION, key, value);
        match self.store.commit_blocking(batch) {
            Ok(_) => {
                self.held = Some(lease.until);
                Ok(Ok(()))
            }
            Err(CommitError::Conflict { .. }) => Ok(Err(now)),
            Err(error) => Err(error),
        }
    }

    /// Releases the lease, so that another server can take it at once.
    fn let_go(&mut self) -> Result<(), CommitError> {
        if self.held.take().is_none() {
            return Ok(());
        }
        let key = J::NAME.as_bytes();
        let record = self.store.read(|snapshot| snapshot.get(PARTITION, key))?;
        let Some(record) = record else {
            return Ok(());
        };
        if read(&record.value).is_some_and(|lease| lease.holder == self.holder) {
            let mut batch = Batch::new();
            batch
                .assert_revision(PARTITION, key, record.revision)
                .delete(PARTITION, key);
            self.store.commit_blocking(batch)?;
        }
        Ok(())
    }
}

fn read(value: &[u8]) -> Option<Lease> {
    serde_json::from_slice(value).ok()
}

impl<J: Job> Job for Leased<J> {
    const NAME: &'static str = J::NAME;

    fn first_pause(&self) -> Duration {
        self.job.first_pause()
    }

    fn run(&mut self, stop: &Stop) -> Duration {
        let now = clock::unix_seconds();
        match self.hold(now, Duration::ZERO) {
            Ok(Ok(())) => {}
            Ok(Err(until)) => {
                let rest = Duration::from_secs(until.saturating_sub(now).unsigned_abs());
                return rest.clamp(Duration::from_secs(1), LOOK);
            }
            // The store is unavailable.
            Err(_) => return LOOK,
        }
        let pause = self.job.run(stop);
        // If the renewal fails now, it is retried when the job is due.
        let _ = self.hold(clock::unix_seconds(), pause);
        pause
    }
}

impl<J: Job> Drop for Leased<J> {
    fn drop(&mut self) {
        // If this fails, the lease expires.
        let _ = self.let_go();
    }
}

impl<J: Job> fmt::Debug for Leased<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    /// Does nothing, once an hour.
    struct Hourly;

    impl Job for Hourly {
        const NAME: &'static str = "hourly";

        fn first_pause(&self) -> Duration {
            Duration::ZERO
        }

        fn run(&mut self, _: &Stop) -> Duration {
            HOUR
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    fn two() -> (Leased<Hourly>, Leased<Hourly>) {
        let store = Store::memory(StoreOptions::default()).unwrap();
        (
            Leased::new(Hourly, store.clone()),
            Leased::new(Hourly, store),
        )
    }

    fn hold(leased: &mut Leased<Hourly>, now: i64, time: Duration) -> Result<(), i64> {
        leased.hold(now, time).unwrap()
    }

    #[test]
    fn one_server_does_a_job_until_it_is_gone() {
        let (mut one, mut other) = two();
        assert_eq!(hold(&mut one, 1000, Duration::ZERO), Ok(()));
        assert_eq!(hold(&mut other, 1000, Duration::ZERO), Err(1060));
        assert_eq!(hold(&mut one, 1001, HOUR), Ok(()));
        assert_eq!(hold(&mut other, 4600, Duration::ZERO), Err(4661));
        assert_eq!(hold(&mut one, 4601, Duration::ZERO), Ok(()));
        // A killed server releases nothing.
        one.held = None;
        drop(one);
        assert_eq!(hold(&mut other, 4600, Duration::ZERO), Err(4661));
        assert_eq!(hold(&mut other, 4661, Duration::ZERO), Ok(()));
    }

    #[test]
    fn whoever_ends_lets_the_next_begin() {
        let (mut one, mut other) = two();
        assert_eq!(hold(&mut one, 1000, HOUR), Ok(()));
        drop(one);
        assert_eq!(hold(&mut other, 1000, HOUR), Ok(()));
    }

    #[test]
    fn a_lease_that_lasts_is_not_written_anew() {
        let (mut one, _) = two();
        for now in 0..25 {
            assert_eq!(hold(&mut one, now, Duration::from_secs(1)), Ok(()));
        }
        assert_eq!(one.store.stats().commits, 1);
    }
}
