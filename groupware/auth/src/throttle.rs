//! Throttles guesses of passwords. Counts failed sign-ins, of known and unknown users alike:
//!
//! - per user and client, so that an attacker locks no other client out;
//! - per client, so that trying many users gains little;
//! - per user over all clients that have failed and from which the user has not signed in, so that guessing
//!   from many addresses gains little, and the user is locked out neither at known addresses nor at new ones.
//!
//! Clients with failures also queue behind those without.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use groupware_runtime::{Client, Limiter, random};

/// A client may fail this many times as often as with one user, and its failures are forgotten that
/// much sooner: one address may have many users.
const USERS_PER_CLIENT: u32 = 10;
/// All clients together from which a user has not signed in may fail this many times as often as one.
const CLIENTS_PER_USER: u32 = 5;
/// Their failures are forgotten this many times sooner.
const CLIENTS_FORGIVEN: u32 = 3;
/// A failure affects a client's rank this many times longer.
const REMEMBERED: u32 = 10;
/// The maximum number of failures that affect the rank.
const SUSPICION: u32 = 8;
/// The maximum number of recorded clients from which users have signed in.
const HOMES: usize = 16_384;

/// A sign-in attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// The user name.
    pub(crate) user: &'a str,
    /// The client.
    pub(crate) client: Client,
}

/// A leaky bucket of failures; after too many, an attempt must wait for the next one to leak.
#[derive(Debug)]
pub(crate) struct Throttle {
    secret: [u8; 32],
    by_user: Limiter<Key>,
    by_client: Limiter<Key>,
    /// Failures per user name over all clients.
    by_name: Limiter<Key>,
    suspects: Limiter<Key>,
    /// Users with the clients from which they have signed in, and the time of the last sign-in.
    homes: Mutex<HashMap<Key, Duration>>,
}

impl Throttle {
    /// Allows a client this many failures as one user; one failure is forgotten per interval.
    pub(crate) fn new(most: u32, forgiveness: Duration) -> Self {
        let most = most.max(1);
        Self {
            secret: random::bytes(),
            by_user: Limiter::new(most, forgiveness),
            by_client: Limiter::new(
                most.saturating_mul(USERS_PER_CLIENT),
                forgiveness / USERS_PER_CLIENT,
            ),
            by_name: Limiter::new(
                most.saturating_mul(CLIENTS_PER_USER),
                forgiveness / CLIENTS_FORGIVEN,
            ),
            suspects: Limiter::new(SUSPICION, forgiveness * REMEMBERED),
            homes: Mutex::default(),
        }
    }

    /// Returns the wait before the next password is checked.
    pub(crate) fn wait(&self, attempt: Attempt<'_>, now: Duration) -> Option<Duration> {
        let own = self.key(Some(attempt.user), attempt);
        let as_user = self.by_user.wait(&own, now);
        // A proxy's address doesn't identify the client.
        if attempt.client.is_shared {
            return as_user;
        }
        let as_client = self.by_client.wait(&self.key(None, attempt), now);
        // The first attempt of a client is always checked: the user may be at a new address.
        let has_failed = || self.suspects.level(&self.site(attempt.client), now) > 0;
        let by_name = match !self.is_home(&own) && has_failed() {
            true => self.by_name.wait(&self.name(attempt.user), now),
            false => None,
        };
        as_user.max(as_client).max(by_name)
    }

    /// Returns the rank in the queue for password checks; lower ranks are served first. A client
    /// from which the user has signed in before has the lowest.
    pub(crate) fn rank(&self, attempt: Attempt<'_>, now: Duration) -> u32 {
        let own = self.key(Some(attempt.user), attempt);
        match attempt.client.is_shared {
            true => 1 + self.suspects.level(&own, now),
            false if self.is_home(&own) => 0,
            false => 1 + self.suspects.level(&self.site(attempt.client), now),
        }
    }

    /// Counts a failure.
    pub(crate) fn failed(&self, attempt: Attempt<'_>, now: Duration) {
        let own = self.key(Some(attempt.user), attempt);
        self.by_user.note(own, now);
        if attempt.client.is_shared {
            return self.suspects.note(own, now);
        }
        self.by_client.note(self.key(None, attempt), now);
        self.suspects.note(self.site(attempt.client), now);
        if !self.is_home(&own) {
            self.by_name.note(self.name(attempt.user), now);
        }
    }

    /// Records a sign-in from this client.
    pub(crate) fn succeeded(&self, attempt: Attempt<'_>, now: Duration) {
        if attempt.client.is_shared {
            return;
        }
        let own = self.key(Some(attempt.user), attempt);
        let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        if homes.len() >= HOMES && !homes.contains_key(&own) {
            let mut times: Vec<_> = homes.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(HOMES / 2);
            let middle = *middle;
            homes.retain(|_, at| *at > middle);
        }
        homes.insert(own, now);
    }

    fn is_home(&self, own: &Key) -> bool {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        homes.contains_key(own)
    }

    /// Returns the site of a client: for IPv6, the 48 bits of one site (RFC 6177), which has 65,536 networks.
    fn site(&self, client: Client) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(b"site ");
        match client.address.to_canonical() {
            std::net::IpAddr::V4(address) => hasher.update(&address.octets()),
            std::net::IpAddr::V6(address) => hasher.update(&address.octets()[..6]),
        };
        short(&hasher)
    }

    fn name(&self, user: &str) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(b"name ");
        hasher.update(user.to_ascii_lowercase().as_bytes());
        short(&hasher)
    }

    /// Names are hashed: users type passwords into the wrong field.
    fn key(&self, user: Option<&str>, attempt: Attempt<'_>) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        match attempt.client.address.to_canonical() {
            std::net::IpAddr::V4(address) => hasher.update(&address.octets()),
            std::net::IpAddr::V6(address) => hasher.update(&address.octets()),
        };
        if let Some(user) = user {
            hasher.update(b" ");
            hasher.update(user.to_ascii_lowercase().as_bytes());
        }
        short(&hasher)
    }
}

fn short(hasher: &blake3::Hasher) -> Key {
    hasher.finalize().as_bytes()[..16]
        .try_into()
        .expect("a hash has more than 16 bytes")
}

type Key = [u8; 16];

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn attempt<'a>(user: &'a str, address: &str) -> Attempt<'a> {
        let client = Client {
            address: address.parse().unwrap(),
            is_shared: false,
        };
        Attempt { user, client }
    }

    #[test]
    fn too_many_failures_wait_and_are_forgiven_one_by_one() {
        let throttle = Throttle::new(3, s(30));
        let ada = attempt("ada", "192.0.2.1");
        for _ in 0..2 {
            throttle.failed(attempt("Ada", "192.0.2.1"), s(100));
        }
        assert_eq!(throttle.wait(ada, s(100)), None);
        throttle.failed(attempt("aDa", "192.0.2.1"), s(100));
        assert_eq!(throttle.wait(ada, s(100)), Some(s(30)));
        assert_eq!(throttle.wait(ada, s(120)), Some(s(10)));
        assert_eq!(throttle.wait(attempt("eve", "192.0.2.1"), s(100)), None);
        assert_eq!(throttle.wait(ada, s(130)), None);
        throttle.failed(ada, s(131));
        assert_eq!(throttle.wait(ada, s(131)), Some(s(29)));
        assert_eq!(throttle.wait(ada, s(1000)), None);
    }

    #[test]
    fn a_stranger_locks_out_only_the_stranger() {
        let throttle = Throttle::new(3, s(30));
        let stranger = attempt("ada", "192.0.2.66");
        // Even with the maximum number of checked guesses.
        for now in 0..1000 {
            if throttle.wait(stranger, s(now)).is_none() {
                throttle.failed(stranger, s(now));
            }
        }
        assert!(throttle.wait(stranger, s(999)).is_some());
        assert_eq!(throttle.wait(attempt("ada", "192.0.2.1"), s(999)), None);
    }

    #[test]
    fn trying_many_users_is_slowed_down_too() {
        let throttle = Throttle::new(3, s(30));
        let names: Vec<_> = (0..30).map(|number| number.to_string()).collect();
        let eve = |is_shared| {
            let mut eve = attempt("eve", "192.0.2.66");
            eve.client.is_shared = is_shared;
            eve
        };
        for name in &names {
            assert_eq!(throttle.wait(eve(false), s(0)), None);
            throttle.failed(attempt(name, "192.0.2.66"), s(0));
        }
        assert_eq!(throttle.wait(eve(false), s(0)), Some(s(3)));
        assert_eq!(throttle.wait(eve(false), s(3)), None);
        assert_eq!(throttle.wait(attempt("eve", "192.0.2.1"), s(0)), None);
        // A proxy's address doesn't identify the client.
        assert_eq!(throttle.wait(eve(true), s(0)), None);
    }

    #[test]
    fn guesses_from_many_addresses_are_slowed_down_but_not_the_users_own() {
        let throttle = Throttle::new(3, s(30));
        let own = attempt("ada", "203.0.113.1");
        throttle.succeeded(own, s(0));
        let addresses: Vec<_> = (0..200).map(|last| format!("192.0.2.{last}")).collect();
        let is_looked_at = |address: &String, now| {
            let guess = attempt("ADA", address);
            let is_looked_at = throttle.wait(guess, now).is_none();
            if is_looked_at {
                throttle.failed(guess, now);
            }
            is_looked_at
        };
        // One from each.
        let looked_at = addresses.iter().filter(|one| is_looked_at(one, s(0)));
        assert_eq!(looked_at.count(), 200);
        // From then on, one in ten seconds from all of them.
        let later = |now| {
            addresses
                .iter()
                .filter(|one| is_looked_at(one, s(now)))
                .count()
        };
        assert_eq!([5, 10, 11, 30].map(later), [0, 1, 0, 2]);
        assert_eq!(throttle.wait(own, s(30)), None);
        assert_eq!(throttle.wait(attempt("ben", "203.0.113.9"), s(30)), None);
        // The user at a new address is not locked out.
        assert_eq!(throttle.wait(attempt("ada", "203.0.113.9"), s(30)), None);
        assert_eq!(
            (
                throttle.rank(own, s(30)),
                throttle.rank(attempt("ada", "203.0.113.9"), s(30))
            ),
            (0, 1)
        );
        assert!(throttle.rank(attempt("ben", "192.0.2.0"), s(30)) > 1);
        // Networks of one site count together.
        throttle.failed(attempt("eve", "2001:db8:1:2::"), s(30));
        assert_eq!(throttle.rank(attempt("ben", "2001:db8:1:3::"), s(30)), 2);
        assert_eq!(throttle.rank(attempt("ben", "2001:db8:2:3::"), s(30)), 1);
        // A failure at the user's own client affects only that client.
        throttle.failed(own, s(30));
        assert_eq!(throttle.wait(own, s(30)), None);
    }

    #[test]
    fn the_record_of_clients_is_bounded_and_keeps_the_latest() {
        let throttle = Throttle::new(3, s(30));
        for number in 0..=HOMES as u64 {
            let name = number.to_string();
            throttle.succeeded(attempt(&name, "192.0.2.1"), s(number));
        }
        assert!(throttle.homes.lock().unwrap().len() <= HOMES);
        let rank = |number: usize| throttle.rank(attempt(&number.to_string(), "192.0.2.1"), s(0));
        assert_eq!((rank(0), rank(HOMES)), (1, 0));
    }
}
