//! Slows down who guesses passwords: counts failed sign-ins, of known and unknown users alike, per
//! user and client, so that a stranger locks nobody else out, and per client, so that trying many
//! users gains little.

use std::time::Duration;

use groupware_runtime::{Client, Limiter, random};

/// A client may fail this many times as often as it may with one user, and is forgiven that much
/// sooner: behind one address there may be many people.
const USERS_PER_CLIENT: u32 = 10;

/// Who tries to sign in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// As whom.
    pub(crate) user: &'a str,
    /// From where.
    pub(crate) client: Client,
}

/// Failures leak away one by one; who has too many must wait for the next to leak.
#[derive(Debug)]
pub(crate) struct Throttle {
    secret: [u8; 32],
    by_user: Limiter<Key>,
    by_client: Limiter<Key>,
}

impl Throttle {
    /// Lets a client fail so often as one user; one failure is forgiven in each such time.
    pub(crate) fn new(most: u32, forgiveness: Duration) -> Self {
        let most = most.max(1);
        Self {
            secret: random::bytes(),
            by_user: Limiter::new(most, forgiveness),
            by_client: Limiter::new(
                most.saturating_mul(USERS_PER_CLIENT),
                forgiveness / USERS_PER_CLIENT,
            ),
        }
    }

    /// How long to wait before the next password is looked at.
    pub(crate) fn wait(&self, attempt: Attempt<'_>, now: Duration) -> Option<Duration> {
        let as_user = self
            .by_user
            .wait(&self.key(Some(attempt.user), attempt), now);
        let as_client = || self.by_client.wait(&self.key(None, attempt), now);
        match attempt.client.is_shared {
            true => as_user,
            false => as_user.max(as_client()),
        }
    }

    /// Counts a failure.
    pub(crate) fn failed(&self, attempt: Attempt<'_>, now: Duration) {
        self.by_user
            .note(self.key(Some(attempt.user), attempt), now);
        if !attempt.client.is_shared {
            self.by_client.note(self.key(None, attempt), now);
        }
    }

    /// Names are kept hashed: people type passwords into the wrong field.
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
        hasher.finalize().as_bytes()[..16]
            .try_into()
            .expect("a hash has more than 16 bytes")
    }
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
        for _ in 0..100 {
            throttle.failed(attempt("ada", "192.0.2.66"), s(0));
        }
        assert!(throttle.wait(attempt("ada", "192.0.2.66"), s(0)).is_some());
        assert_eq!(throttle.wait(attempt("ada", "192.0.2.1"), s(0)), None);
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
        // A proxy's address says nothing about who is behind it.
        assert_eq!(throttle.wait(eve(true), s(0)), None);
    }
}
