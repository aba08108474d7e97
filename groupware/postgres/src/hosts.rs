//! The hosts of a database, one of which accepts writes: each is tried separately, and the next
//! attempt doesn't start with a host that failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use groupware_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::address::Database;
use crate::tls::Tls;

/// The maximum wait for one of several hosts until it can be used.
const HOST_WITHIN: Duration = Duration::from_secs(2);

/// A database by its hosts, shared by all sessions of one store.
pub(crate) struct Hosts {
    pub(crate) schema: String,
    /// At least one.
    configs: Vec<Config>,
    database: Database,
    /// The host to try first: the last that worked, or the one after the last that failed.
    /// Otherwise an attempt with time for one host only would always try a lost machine.
    first: AtomicUsize,
}

impl Hosts {
    pub(crate) fn of(database: &Database) -> Self {
        Self {
            schema: database.schema.clone(),
            configs: database.by_host(),
            database: database.clone(),
            first: AtomicUsize::new(0),
        }
    }

    /// Returns all hosts, starting with the first to try.
    pub(crate) fn turns(&self) -> impl Iterator<Item = Turn<'_>> {
        let (first, count) = (self.first.load(Relaxed), self.configs.len());
        (0..count).map(move |more| Turn {
            hosts: self,
            at: (first + more) % count,
            is_found: false,
        })
    }

    /// Returns the maximum wait for one host, whatever the failure. All hosts together fit into the
    /// store's maximum wait.
    pub(crate) fn limit(&self, patience: Duration) -> Duration {
        match u32::try_from(self.configs.len()) {
            Ok(1) => patience,
            count => HOST_WITHIN.min(patience / count.unwrap_or(u32::MAX).saturating_add(1)),
        }
    }

    /// Returns the TLS settings for the hosts, if TLS is on.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, StoreError> {
        if self.database.config.get_ssl_mode() == SslMode::Disable {
            return Ok(None);
        }
        let tls = Tls::trusting(self.database.root_cert.as_deref());
        tls.map(Some)
            .map_err(|error| StoreError::Database(Arc::new(error)))
    }
}

/// One attempt to use a host. Unless the host worked by the end of the attempt, which may be the
/// caller's timeout, the next host is tried first.
pub(crate) struct Turn<'a> {
    hosts: &'a Hosts,
    at: usize,
    is_found: bool,
}

impl Turn<'_> {
    pub(crate) fn config(&self) -> &Config {
        &self.hosts.configs[self.at]
    }

    /// Records that the host is available and accepts writes.
    pub(crate) fn found(mut self) {
        self.is_found = true;
        self.hosts.first.store(self.at, Relaxed);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_found {
            let next = (self.at + 1) % self.hosts.configs.len();
            // A concurrent attempt that moved on already takes precedence.
            let first = &self.hosts.first;
            let _ = first.compare_exchange(self.at, next, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str) -> Hosts {
        Hosts::of(&Database::parse(address).unwrap())
    }

    fn order(hosts: &Hosts) -> Vec<u16> {
        // Reading the order is no attempt.
        let turns = hosts.turns().map(|mut turn| {
            turn.is_found = true;
            turn.config().get_ports()[0]
        });
        turns.collect()
    }

    #[test]
    fn who_asks_next_begins_after_a_host_that_failed_and_with_one_that_was_found() {
        let three = hosts("postgres://me@a:1,b:2,c:3/m");
        assert_eq!(order(&three), [1, 2, 3]);
        // Two attempts start at once, and both fail.
        let (one, other) = (three.turns().next(), three.turns().next());
        drop(one);
        assert_eq!(order(&three), [2, 3, 1]);
        drop(other);
        assert_eq!(order(&three), [2, 3, 1]);
        let mut turns = three.turns();
        drop(turns.next());
        turns.next().unwrap().found();
        assert_eq!(order(&three), [3, 1, 2]);
        drop(three.turns().next());
        assert_eq!(order(&three), [1, 2, 3]);
        let one = hosts("postgres://me@a/m");
        drop(one.turns().next());
        assert_eq!(one.turns().count(), 1);
    }

    #[test]
    fn each_of_several_hosts_has_a_part_of_the_patience() {
        let patience = Duration::from_secs(5);
        assert_eq!(hosts("postgres://me@a/m").limit(patience), patience);
        let three = hosts("postgres://me@a,b,c/m");
        assert_eq!(three.limit(patience), patience / 4);
        assert_eq!(three.limit(20 * patience), HOST_WITHIN);
    }
}
