//! A cache of the sessions in use, so that requests need not read theirs from the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use groupware_people::{Account, SecretHash, Session};

/// Enough shards that concurrent lookups rarely collide.
const SHARDS: usize = 64;

/// A cached session.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) account: Arc<Account>,
    pub(crate) session: Session,
    /// The last use that is stored, or about to be.
    pub(crate) noted: i64,
}

type Shard = HashMap<SecretHash, Cached>;

/// Sessions by the hash of their token, bounded. Evicted sessions remain valid: they are in the store.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    per_shard: usize,
    count: AtomicUsize,
    /// Incremented before a session is removed because it ended.
    ended: AtomicU64,
}

/// A snapshot of the number of ended sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u64);

impl Cache {
    /// With a maximum number of sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            per_shard: most.div_ceil(SHARDS).max(1),
            count: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// Must be called before a session is looked up in the store.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.ended.load(Ordering::SeqCst))
    }

    /// Caches a session that was read from the store at a moment or later. Skips it if any session
    /// ended since, as it may be this one.
    pub(crate) fn remember(&self, hash: SecretHash, cached: Cached, since: Moment) {
        let mut shard = self.shard(&hash);
        if self.ended.load(Ordering::SeqCst) != since.0 {
            return;
        }
        let before = shard.len();
        if before >= self.per_shard {
            make_room(&mut shard, self.per_shard);
        }
        shard.insert(hash, cached);
        let after = shard.len();
        drop(shard);
        self.count.fetch_add(after, Ordering::Relaxed);
        self.count.fetch_sub(before, Ordering::Relaxed);
    }

    /// Calls a function with a session, if it is cached; removes it if the function returns `None`.
    pub(crate) fn with<T>(
        &self,
        hash: &SecretHash,
        work: impl FnOnce(&mut Cached) -> Option<T>,
    ) -> Option<T> {
        let mut shard = self.shard(hash);
        let done = work(shard.get_mut(hash)?);
        if done.is_none() {
            shard.remove(hash);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        done
    }

    /// Removes ended sessions.
    pub(crate) fn forget(&self, ended: &[SecretHash]) {
        if ended.is_empty() {
            return;
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        for hash in ended {
            if self.shard(hash).remove(hash).is_some() {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Removes all sessions: any may have ended.
    pub(crate) fn forget_all(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        for shard in &self.shards {
            let mut shard = lock(shard);
            self.count.fetch_sub(shard.len(), Ordering::Relaxed);
            shard.clear();
        }
    }

    /// The number of sessions, including those not yet known to have ended.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn shard(&self, hash: &SecretHash) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(hash[0]) % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Evicts the sessions that their users have ended, and, if that isn't enough, the eighth that was
/// idle longest: evicting many at once avoids sorting a full shard for every session.
fn make_room(shard: &mut Shard, most: usize) {
    shard.retain(|_, cached| cached.account.admits(cached.session.stamp));
    if shard.len() < most {
        return;
    }
    let mut ages: Vec<_> = shard
        .iter()
        .map(|(hash, cached)| (cached.session.used, *hash))
        .collect();
    ages.sort_unstable();
    for (_, hash) in ages.into_iter().take((most / 8).max(1)) {
        shard.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use groupware_people::{Credentials, UserName};

    use super::*;

    fn cached(used: i64) -> Cached {
        let name = UserName::parse("ada").unwrap();
        Cached {
            account: Arc::new(Account::new(name, 0, Credentials::default())),
            session: Session {
                stamp: 0,
                started_us: 0,
                used,
            },
            noted: used,
        }
    }

    fn hash(number: u32) -> SecretHash {
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_le_bytes());
        hash
    }

    fn has(cache: &Cache, number: u32) -> bool {
        cache.with(&hash(number), |_| Some(())).is_some()
    }

    #[test]
    fn what_ended_while_the_store_was_asked_is_not_remembered() {
        let cache = Cache::new(100);
        let early = cache.moment();
        cache.forget(&[hash(1)]);
        cache.remember(hash(1), cached(0), early);
        assert!(!has(&cache, 1));
        cache.remember(hash(1), cached(0), cache.moment());
        assert!(has(&cache, 1) && cache.count() == 1);
        cache.forget(&[hash(1), hash(2)]);
        assert!(!has(&cache, 1) && cache.count() == 0);
        cache.remember(hash(1), cached(0), cache.moment());
        cache.remember(hash(1), cached(0), cache.moment());
        assert_eq!(cache.count(), 1);
        cache.forget_all();
        assert_eq!((has(&cache, 1), cache.count()), (false, 0));
    }

    #[test]
    fn the_bound_holds_and_the_newest_stay() {
        let cache = Cache::new(SHARDS * 8);
        for number in 0..5000 {
            cache.remember(hash(number), cached(number.into()), cache.moment());
        }
        let held: usize = cache.shards.iter().map(|shard| lock(shard).len()).sum();
        assert!(held <= SHARDS * 8, "{held}");
        assert_eq!(held, cache.count());
        assert!(has(&cache, 4999) && !has(&cache, 0));
    }
}
