//! A rate limiter by key: a bucket for each key, which leaks at a steady rate (the generic cell rate algorithm), and a
//! bound on the number of buckets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of keys.
const KEYS: usize = 16_384;

/// Limits how often an action may occur, by key.
#[derive(Debug)]
pub struct Limiter<K> {
    /// The capacity of a bucket.
    most: u32,
    /// The time in which one unit leaks out.
    interval: Duration,
    /// The time at which each bucket is empty; empty buckets need no entry.
    empty_at: Mutex<HashMap<K, Duration>>,
}

impl<K: Eq + Hash> Limiter<K> {
    /// Creates buckets with this capacity, from which one unit leaks in each interval.
    pub fn new(most: u32, interval: Duration) -> Self {
        Self {
            most: most.max(1),
            interval: interval.max(Duration::from_nanos(1)),
            empty_at: Mutex::default(),
        }
    }

    /// Adds units to a key's bucket; more units than its capacity fill it. If the table is full of other keys' buckets,
    /// new keys are rejected.
    ///
    /// # Errors
    /// The time until there is room in a full bucket.
    pub fn admit(&self, key: K, many: u32, now: Duration) -> Result<(), Duration> {
        let mut buckets = self.lock();
        if buckets.len() >= KEYS && !buckets.contains_key(&key) {
            buckets.retain(|_, empty_at| *empty_at > now);
            if buckets.len() >= KEYS {
                return Err(Duration::from_secs(1));
            }
        }
        let full_at = buckets.get(&key).map_or(now, |at| *at).max(now);
        let filled = full_at + self.interval * many.min(self.most);
        let latest = now + self.interval * self.most;
        match filled.checked_sub(latest) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                buckets.insert(key, filled);
                Ok(())
            }
        }
    }

    /// Returns the time until a unit fits into a key's bucket, if it doesn't now.
    pub fn wait(&self, key: &K, now: Duration) -> Option<Duration> {
        let empty_at = *self.lock().get(key)?;
        let room_at = empty_at.checked_sub(self.interval * (self.most - 1))?;
        room_at.checked_sub(now).filter(|wait| !wait.is_zero())
    }

    /// Returns the number of units in a key's bucket.
    pub fn level(&self, key: &K, now: Duration) -> u32 {
        let empty_at = self.lock().get(key).copied();
        empty_at.map_or(0, |empty_at| self.count(empty_at, now))
    }

    /// Adds a unit to a key's bucket, unless it is full. If the table is full of other keys' buckets, the emptiest ones
    /// are removed.
    pub fn note(&self, key: K, now: Duration) {
        let mut buckets = self.lock();
        if buckets.len() >= KEYS && !buckets.contains_key(&key) {
            // A client uses many keys, which gains nothing for any one of them. The fullest buckets are the ones to
            // keep.
            for least in [1, 2, self.most] {
                if buckets.len() >= KEYS {
                    buckets.retain(|_, empty_at| self.count(*empty_at, now) >= least);
                }
            }
            if buckets.len() >= KEYS {
                return;
            }
        }
        let empty_at = buckets.entry(key).or_insert(now);
        *empty_at = (*empty_at).max(now);
        if self.count(*empty_at, now) < self.most {
            *empty_at += self.interval;
        }
    }

    /// Returns the number of units in a bucket, including one that is partly leaked.
    fn count(&self, empty_at: Duration, now: Duration) -> u32 {
        let left = empty_at.saturating_sub(now).as_nanos();
        u32::try_from(left.div_ceil(self.interval.as_nanos())).unwrap_or(u32::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Duration>> {
        self.empty_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn who_sends_too_much_waits() {
        // Ten units a second, with a capacity of twenty seconds' worth.
        let limiter = Limiter::new(200, Duration::from_millis(100));
        assert_eq!(limiter.admit("one", 200, s(0)), Ok(()));
        let wait = Duration::from_millis(1100);
        assert_eq!(limiter.admit("one", 11, s(0)), Err(wait));
        assert_eq!(limiter.admit("other", 1, s(0)), Ok(()));
        assert_eq!(limiter.admit("one", 10, s(1)), Ok(()));
        // More units than a bucket holds use all its capacity.
        assert_eq!(limiter.admit("one", 1000, s(1000)), Ok(()));
        let wait = Duration::from_millis(100);
        assert_eq!(limiter.admit("one", 1, s(1000)), Err(wait));
        assert_eq!(limiter.wait(&"one", s(1000)), Some(wait));
    }

    #[test]
    fn what_is_noted_leaks_out_one_by_one() {
        let limiter = Limiter::new(3, s(30));
        for _ in 0..2 {
            limiter.note("one", s(100));
        }
        let noted = [s(100), s(130), s(161)].map(|now| limiter.level(&"one", now));
        assert_eq!(noted, [2, 1, 0]);
        assert_eq!(limiter.wait(&"one", s(100)), None);
        for _ in 0..10 {
            limiter.note("one", s(100));
        }
        assert_eq!(limiter.wait(&"one", s(100)), Some(s(30)));
        assert_eq!(limiter.wait(&"one", s(120)), Some(s(10)));
        assert_eq!(limiter.wait(&"other", s(100)), None);
        assert_eq!(limiter.wait(&"one", s(130)), None);
        limiter.note("one", s(131));
        assert_eq!(limiter.wait(&"one", s(131)), Some(s(29)));
        assert_eq!(limiter.wait(&"one", s(1000)), None);
    }

    #[test]
    fn the_record_is_bounded_and_refuses_others_while_it_is_full() {
        let limiter = Limiter::new(10, Duration::from_millis(100));
        for number in 0..KEYS + 100 {
            let admitted = limiter.admit(number, 1, s(0)).is_ok();
            assert_eq!(admitted, number < KEYS, "{number}");
        }
        assert_eq!(limiter.lock().len(), KEYS);
        assert_eq!(limiter.admit(KEYS, 1, s(1000)), Ok(()));
        assert_eq!(limiter.lock().len(), 1);
    }

    #[test]
    fn the_record_is_bounded_and_keeps_those_who_have_to_wait() {
        let limiter = Limiter::new(2, s(30));
        limiter.note(usize::MAX, s(0));
        limiter.note(usize::MAX, s(0));
        for number in 0..KEYS + 10 {
            limiter.note(number, s(0));
        }
        assert!(limiter.lock().len() <= KEYS);
        assert!(limiter.wait(&usize::MAX, s(0)).is_some());
    }
}
