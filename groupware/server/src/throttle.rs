//! Slows down who guesses passwords: counts failed sign-ins per account, known or not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most accounts with failures on record.
const ACCOUNTS: usize = 16_384;

/// Failures leak away one by one; an account with too many must wait for the next to leak.
#[derive(Debug)]
pub(crate) struct Throttle {
    secret: [u8; 32],
    most: u32,
    forgiveness: Duration,
    failures: Mutex<HashMap<[u8; 16], Failures>>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    /// When the last of them was forgiven or the first was made.
    since: Duration,
}

impl Throttle {
    pub(crate) fn new(most: u32, forgiveness: Duration) -> Self {
        let forgiveness = forgiveness.max(Duration::from_millis(1));
        Self {
            secret: crate::random::bytes(),
            most: most.max(1),
            forgiveness,
            failures: Mutex::default(),
        }
    }

    /// How long this account must wait before the next password is looked at.
    pub(crate) fn wait(&self, user: &str, now: Duration) -> Option<Duration> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failures.get(&self.key(user))?.at(now, self.forgiveness);
        (found.count >= self.most).then(|| (found.since + self.forgiveness).saturating_sub(now))
    }

    pub(crate) fn failed(&self, user: &str, now: Duration) {
        let key = self.key(user);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ACCOUNTS && !failures.contains_key(&key) {
            failures.retain(|_, held| held.at(now, self.forgiveness).count > 0);
            if failures.len() >= ACCOUNTS {
                // Somebody fails with many names: that gains nothing for any one of them. The
                // accounts closest to being locked are the ones to keep.
                failures.retain(|_, held| held.count > 1);
            }
        }
        let held = failures.entry(key).or_insert(Failures {
            count: 0,
            since: now,
        });
        *held = held.at(now, self.forgiveness);
        held.count = held.count.saturating_add(1).min(self.most);
    }

    /// Names are kept hashed: people type passwords into the wrong field.
    fn key(&self, user: &str) -> [u8; 16] {
        let name = user.to_ascii_lowercase();
        let hash = blake3::keyed_hash(&self.secret, name.as_bytes());
        hash.as_bytes()[..16]
            .try_into()
            .expect("a hash has more than 16 bytes")
    }
}

impl Failures {
    /// What is left of the failures at a later time.
    fn at(self, now: Duration, forgiveness: Duration) -> Self {
        let leaked = now.saturating_sub(self.since).as_millis() / forgiveness.as_millis();
        let leaked = u32::try_from(leaked).unwrap_or(u32::MAX);
        match self.count.checked_sub(leaked) {
            Some(count) if count > 0 => Self {
                count,
                since: self.since + forgiveness * leaked,
            },
            _ => Self {
                count: 0,
                since: now,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn too_many_failures_wait_and_are_forgiven_one_by_one() {
        let throttle = Throttle::new(3, s(30));
        for _ in 0..2 {
            throttle.failed("Ada", s(100));
        }
        assert_eq!(throttle.wait("ada", s(100)), None);
        throttle.failed("aDa", s(100));
        assert_eq!(throttle.wait("ada", s(100)), Some(s(30)));
        assert_eq!(throttle.wait("ada", s(120)), Some(s(10)));
        assert_eq!(throttle.wait("eve", s(100)), None);
        assert_eq!(throttle.wait("ada", s(130)), None);
        throttle.failed("ada", s(131));
        assert_eq!(throttle.wait("ada", s(131)), Some(s(29)));
        assert_eq!(throttle.wait("ada", s(1000)), None);
    }

    #[test]
    fn the_record_is_bounded() {
        let throttle = Throttle::new(2, s(30));
        throttle.failed("victim", s(0));
        throttle.failed("victim", s(0));
        for number in 0..ACCOUNTS + 10 {
            throttle.failed(&number.to_string(), s(0));
        }
        assert!(throttle.failures.lock().unwrap().len() <= ACCOUNTS);
        assert!(throttle.wait("victim", s(0)).is_some());
    }
}
